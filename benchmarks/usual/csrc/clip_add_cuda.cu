#include "functors.h"
#include "pointwise.cuh"

namespace usual {

at::Tensor clip_add_cuda(const at::Tensor& x, double min, double max, double bias) {
  return unary_cuda<ClipAdd>(x, min, max, bias);
}

at::Tensor clip_add_backward_cuda(const at::Tensor& grad, const at::Tensor& x, double min,
                                  double max) {
  return binary_cuda<ClipAddBackward>(grad, x, min, max);
}

}  // namespace usual
