#include "affine/affine.h"

#include "common/pointwise.h"

namespace fusedops {
namespace {

Tensor affine(const Tensor& x, double a, double b) {
  const DType dtype = check_dtype("affine", "x", x);
  const Kernels<1, AffineParams> kernels = FUSEDOPS_KERNELS(affine);
  return pointwise(kernels, {a, b}, dtype, x);
}

FUSEDOPS_LIBRARY(m) {
  m.def("affine(Tensor x, float a, float b) -> Tensor");
}

FUSEDOPS_LIBRARY_IMPL(CPU, m) {
  m.impl("affine", FUSEDOPS_BOX(affine));
}

#ifdef FUSEDOPS_WITH_CUDA
FUSEDOPS_LIBRARY_IMPL(CUDA, m) {
  m.impl("affine", FUSEDOPS_BOX(affine));
}
#endif

}  // namespace
}  // namespace fusedops
