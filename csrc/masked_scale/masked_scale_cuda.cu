#include "common/mask.cuh"
#include "masked_scale/masked_scale.h"

namespace fusedops {

void masked_scale_cuda(const Operands<1>& operands, const MaskedScaleParams& params,
                       const std::uint8_t* mask, void* stream) {
  mask_cuda<MaskedScale>(operands, params, mask, stream);
}

}  // namespace fusedops
