#include "common/mask.cuh"
#include "common/pointwise.cuh"
#include "scale_clamp_add/scale_clamp_add.h"

namespace fusedops {

void scale_clamp_add_cuda(const Operands<1>& operands, const ScaleClampAddParams& params,
                          void* stream) {
  pointwise_cuda<ScaleClampAdd>(operands, params, stream);
}

void scale_clamp_add_forward_cuda(const Operands<1>& operands, const ScaleClampAddParams& params,
                                  std::uint8_t* inside, void* stream) {
  mask_cuda<ScaleClampAdd>(operands, params, inside, stream);
}

void scale_clamp_add_backward_cuda(const Operands<2>& operands, const ScaleClampAddParams& params,
                                   void* stream) {
  pointwise_cuda<ScaleClampAddBackward>(operands, params, stream);
}

}  // namespace fusedops
