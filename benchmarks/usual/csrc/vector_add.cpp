#include <torch/extension.h>

#include "functors.h"
#include "pointwise.h"

namespace usual {

at::Tensor vector_add_cuda(const at::Tensor& x, const at::Tensor& y);

at::Tensor vector_add_cpu(const at::Tensor& x, const at::Tensor& y) {
  return binary_cpu<VectorAdd>(x, y);
}

TORCH_LIBRARY_FRAGMENT(usual, m) {
  m.def("vector_add(Tensor x, Tensor y) -> Tensor");
}

TORCH_LIBRARY_IMPL(usual, CPU, m) {
  m.impl("vector_add", &vector_add_cpu);
}

TORCH_LIBRARY_IMPL(usual, CUDA, m) {
  m.impl("vector_add", &vector_add_cuda);
}

}  // namespace usual
