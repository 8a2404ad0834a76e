#include <torch/extension.h>

#include "functors.h"
#include "pointwise.h"

namespace usual {

at::Tensor clip_add_cuda(const at::Tensor& x, double min, double max, double bias);
at::Tensor clip_add_backward_cuda(const at::Tensor& grad, const at::Tensor& x, double min,
                                  double max);

at::Tensor clip_add_cpu(const at::Tensor& x, double min, double max, double bias) {
  return unary_cpu<ClipAdd>(x, min, max, bias);
}

at::Tensor clip_add_backward_cpu(const at::Tensor& grad, const at::Tensor& x, double min,
                                 double max) {
  return binary_cpu<ClipAddBackward>(grad, x, min, max);
}

TORCH_LIBRARY_FRAGMENT(usual, m) {
  m.def("clip_add(Tensor x, float min, float max, float bias) -> Tensor");
  m.def("clip_add_backward(Tensor grad, Tensor x, float min, float max) -> Tensor");
}

TORCH_LIBRARY_IMPL(usual, CPU, m) {
  m.impl("clip_add", &clip_add_cpu);
  m.impl("clip_add_backward", &clip_add_backward_cpu);
}

TORCH_LIBRARY_IMPL(usual, CUDA, m) {
  m.impl("clip_add", &clip_add_cuda);
  m.impl("clip_add_backward", &clip_add_backward_cuda);
}

}  // namespace usual
