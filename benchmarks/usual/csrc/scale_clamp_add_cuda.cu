#include "functors.h"
#include "pointwise.cuh"

namespace usual {

at::Tensor scale_clamp_add_cuda(const at::Tensor& x, double scale, double min, double max,
                                double bias) {
  return unary_cuda<ScaleClampAdd>(x, scale, min, max, bias);
}

at::Tensor scale_clamp_add_backward_cuda(const at::Tensor& grad, const at::Tensor& x, double scale,
                                         double min, double max) {
  return binary_cuda<ScaleClampAddBackward>(grad, x, scale, min, max);
}

}  // namespace usual
