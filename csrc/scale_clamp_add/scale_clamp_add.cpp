#include "scale_clamp_add/scale_clamp_add.h"

#include "common/mask.h"
#include "common/pointwise.h"

namespace fusedops {
namespace {

Tensor scale_clamp_add(const Tensor& x, double scale, double min, double max, double bias) {
  const DType dtype = check_dtype("scale_clamp_add", "x", x);
  const Kernels<1, ScaleClampAddParams> kernels = FUSEDOPS_KERNELS(scale_clamp_add);
  return pointwise(kernels, {scale, min, max, bias}, dtype, x);
}

std::tuple<Tensor, Tensor> scale_clamp_add_forward(const Tensor& x, double scale, double min,
                                                   double max, double bias) {
  const DType dtype = check_dtype("scale_clamp_add_forward", "x", x);
  const MaskKernels<ScaleClampAddParams, std::uint8_t> kernels =
      FUSEDOPS_KERNELS(scale_clamp_add_forward);
  return pointwise_with_mask(kernels, {scale, min, max, bias}, dtype, x);
}

Tensor scale_clamp_add_backward(const Tensor& grad, const Tensor& x, double scale, double min,
                                double max) {
  const DType dtype = check_dtype("scale_clamp_add_backward", "x", x);
  check_like("scale_clamp_add_backward", "grad", grad, "x", x);
  const Kernels<2, ScaleClampAddParams> kernels = FUSEDOPS_KERNELS(scale_clamp_add_backward);
  return pointwise(kernels, {scale, min, max, 0}, dtype, x, grad);
}

FUSEDOPS_LIBRARY(m) {
  m.def("scale_clamp_add(Tensor x, float scale, float min, float max, float bias) -> Tensor");
  m.def(
      "scale_clamp_add_forward(Tensor x, float scale, float min, float max, float bias) -> (Tensor "
      "out, Tensor inside)");
  m.def(
      "scale_clamp_add_backward(Tensor grad, Tensor x, float scale, float min, float max) -> "
      "Tensor");
}

FUSEDOPS_LIBRARY_IMPL(CPU, m) {
  m.impl("scale_clamp_add", FUSEDOPS_BOX(scale_clamp_add));
  m.impl("scale_clamp_add_forward", FUSEDOPS_BOX(scale_clamp_add_forward));
  m.impl("scale_clamp_add_backward", FUSEDOPS_BOX(scale_clamp_add_backward));
}

#ifdef FUSEDOPS_WITH_CUDA
FUSEDOPS_LIBRARY_IMPL(CUDA, m) {
  m.impl("scale_clamp_add", FUSEDOPS_BOX(scale_clamp_add));
  m.impl("scale_clamp_add_forward", FUSEDOPS_BOX(scale_clamp_add_forward));
  m.impl("scale_clamp_add_backward", FUSEDOPS_BOX(scale_clamp_add_backward));
}
#endif

}  // namespace
}  // namespace fusedops
