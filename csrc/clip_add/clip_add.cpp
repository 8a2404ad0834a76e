#include "clip_add/clip_add.h"

#include "common/mask.h"
#include "common/pointwise.h"

namespace fusedops {
namespace {

Tensor clip_add(const Tensor& x, double min, double max, double bias) {
  const DType dtype = check_dtype("clip_add", "x", x);
  const Kernels<1, ClipAddParams> kernels = FUSEDOPS_KERNELS(clip_add);
  return pointwise(kernels, {min, max, bias}, dtype, x);
}

std::tuple<Tensor, Tensor> clip_add_forward(const Tensor& x, double min, double max, double bias) {
  const DType dtype = check_dtype("clip_add_forward", "x", x);
  const MaskKernels<ClipAddParams, std::uint8_t> kernels = FUSEDOPS_KERNELS(clip_add_forward);
  return pointwise_with_mask(kernels, {min, max, bias}, dtype, x);
}

Tensor clip_add_backward(const Tensor& grad, const Tensor& x, double min, double max) {
  const DType dtype = check_dtype("clip_add_backward", "x", x);
  check_like("clip_add_backward", "grad", grad, "x", x);
  const Kernels<2, ClipAddParams> kernels = FUSEDOPS_KERNELS(clip_add_backward);
  return pointwise(kernels, {min, max, 0}, dtype, x, grad);
}

FUSEDOPS_LIBRARY(m) {
  m.def("clip_add(Tensor x, float min, float max, float bias) -> Tensor");
  m.def(
      "clip_add_forward(Tensor x, float min, float max, float bias) -> (Tensor out, Tensor "
      "inside)");
  m.def("clip_add_backward(Tensor grad, Tensor x, float min, float max) -> Tensor");
}

FUSEDOPS_LIBRARY_IMPL(CPU, m) {
  m.impl("clip_add", FUSEDOPS_BOX(clip_add));
  m.impl("clip_add_forward", FUSEDOPS_BOX(clip_add_forward));
  m.impl("clip_add_backward", FUSEDOPS_BOX(clip_add_backward));
}

#ifdef FUSEDOPS_WITH_CUDA
FUSEDOPS_LIBRARY_IMPL(CUDA, m) {
  m.impl("clip_add", FUSEDOPS_BOX(clip_add));
  m.impl("clip_add_forward", FUSEDOPS_BOX(clip_add_forward));
  m.impl("clip_add_backward", FUSEDOPS_BOX(clip_add_backward));
}
#endif

}  // namespace
}  // namespace fusedops
