#include <torch/extension.h>

#include "functors.h"
#include "pointwise.h"

namespace usual {

at::Tensor scale_clamp_add_cuda(const at::Tensor& x, double scale, double min, double max,
                                double bias);
at::Tensor scale_clamp_add_backward_cuda(const at::Tensor& grad, const at::Tensor& x, double scale,
                                         double min, double max);

at::Tensor scale_clamp_add_cpu(const at::Tensor& x, double scale, double min, double max,
                               double bias) {
  return unary_cpu<ScaleClampAdd>(x, scale, min, max, bias);
}

at::Tensor scale_clamp_add_backward_cpu(const at::Tensor& grad, const at::Tensor& x, double scale,
                                        double min, double max) {
  return binary_cpu<ScaleClampAddBackward>(grad, x, scale, min, max);
}

TORCH_LIBRARY_FRAGMENT(usual, m) {
  m.def("scale_clamp_add(Tensor x, float scale, float min, float max, float bias) -> Tensor");
  m.def(
      "scale_clamp_add_backward(Tensor grad, Tensor x, float scale, float min, float max) -> "
      "Tensor");
}

TORCH_LIBRARY_IMPL(usual, CPU, m) {
  m.impl("scale_clamp_add", &scale_clamp_add_cpu);
  m.impl("scale_clamp_add_backward", &scale_clamp_add_backward_cpu);
}

TORCH_LIBRARY_IMPL(usual, CUDA, m) {
  m.impl("scale_clamp_add", &scale_clamp_add_cuda);
  m.impl("scale_clamp_add_backward", &scale_clamp_add_backward_cuda);
}

}  // namespace usual
