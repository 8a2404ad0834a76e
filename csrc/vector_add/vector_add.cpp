#include "vector_add/vector_add.h"

#include "common/pointwise.h"

namespace fusedops {
namespace {

Tensor vector_add(const Tensor& x, const Tensor& y) {
  const DType dtype = check_dtype("vector_add", "x", x);
  check_like("vector_add", "y", y, "x", x);
  const Kernels<2, VectorAddParams> kernels = FUSEDOPS_KERNELS(vector_add);
  return pointwise(kernels, {}, dtype, x, y);
}

FUSEDOPS_LIBRARY(m) {
  m.def("vector_add(Tensor x, Tensor y) -> Tensor");
}

FUSEDOPS_LIBRARY_IMPL(CPU, m) {
  m.impl("vector_add", FUSEDOPS_BOX(vector_add));
}

#ifdef FUSEDOPS_WITH_CUDA
FUSEDOPS_LIBRARY_IMPL(CUDA, m) {
  m.impl("vector_add", FUSEDOPS_BOX(vector_add));
}
#endif

}  // namespace
}  // namespace fusedops
