#include "functors.h"
#include "pointwise.cuh"

namespace usual {

at::Tensor vector_add_cuda(const at::Tensor& x, const at::Tensor& y) {
  return binary_cuda<VectorAdd>(x, y);
}

}  // namespace usual
