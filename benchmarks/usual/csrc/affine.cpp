#include <torch/extension.h>

#include "functors.h"
#include "pointwise.h"

namespace usual {

at::Tensor affine_cuda(const at::Tensor& x, double a, double b);

at::Tensor affine_cpu(const at::Tensor& x, double a, double b) {
  return unary_cpu<Affine>(x, a, b);
}

TORCH_LIBRARY_FRAGMENT(usual, m) {
  m.def("affine(Tensor x, float a, float b) -> Tensor");
}

TORCH_LIBRARY_IMPL(usual, CPU, m) {
  m.impl("affine", &affine_cpu);
}

TORCH_LIBRARY_IMPL(usual, CUDA, m) {
  m.impl("affine", &affine_cuda);
}

}  // namespace usual
