#include "clip_add/clip_add.h"
#include "common/mask.cuh"
#include "common/pointwise.cuh"

namespace fusedops {

void clip_add_cuda(const Operands<1>& operands, const ClipAddParams& params, void* stream) {
  pointwise_cuda<ClipAdd>(operands, params, stream);
}

void clip_add_forward_cuda(const Operands<1>& operands, const ClipAddParams& params,
                           std::uint8_t* inside, void* stream) {
  mask_cuda<ClipAdd>(operands, params, inside, stream);
}

void clip_add_backward_cuda(const Operands<2>& operands, const ClipAddParams& params,
                            void* stream) {
  pointwise_cuda<ClipAddBackward>(operands, params, stream);
}

}  // namespace fusedops
