#include "common/mask_cpu.h"
#include "masked_scale/masked_scale.h"

namespace fusedops {

void masked_scale_cpu(const Operands<1>& operands, const MaskedScaleParams& params,
                      const std::uint8_t* mask, std::int64_t begin, std::int64_t end) {
  mask_reading_cpu<MaskedScale>(operands, params, mask, begin, end);
}

}  // namespace fusedops
