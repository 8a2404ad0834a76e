#include "masked_scale/masked_scale.h"

#include <string>

#include "common/mask.h"

namespace fusedops {
namespace {

void check_mask(const Tensor& mask, const Tensor& grad) {
  check_device("masked_scale", "mask", mask, "grad", grad);
  if (!abi::is_uint8(mask)) {
    refuse("masked_scale", "mask", "be a uint8 tensor", abi::dtype_name(mask));
  }
  const std::int64_t bytes = mask_bytes(abi::numel(grad));
  if (abi::dim(mask) != 1 || abi::size(mask, 0) != bytes) {
    refuse("masked_scale", "mask",
           "have a bit for each element of grad, the shape [" + std::to_string(bytes) + "]",
           shape_name(mask));
  }
}

Tensor masked_scale(const Tensor& grad, const Tensor& mask, abi::Ints stride, double scale) {
  const DType dtype = check_dtype("masked_scale", "grad", grad);
  check_mask(mask, grad);
  if (static_cast<std::int64_t>(stride.size()) != abi::dim(grad)) {
    refuse("masked_scale", "stride",
           "have a number for each dimension of grad, " + std::to_string(abi::dim(grad)),
           std::to_string(stride.size()));
  }
  Tensor out = abi::empty_strided(stride.data(), grad);
  if (!lies_densely(out)) {
    refuse("masked_scale", "stride", "be that of elements that fill one run of memory",
           "another for the shape " + shape_name(grad));
  }
  if (const std::int64_t n = abi::numel(out); n > 0) {
    const Tensor in = arranged_like(grad, out);
    const Tensor bytes = abi::contiguous(mask);
    const MaskKernels<MaskedScaleParams, const std::uint8_t> kernels =
        FUSEDOPS_KERNELS(masked_scale);
    run(kernels, {scale}, {dtype, n, {abi::data(in)}, abi::mutable_data(out)},
        static_cast<const std::uint8_t*>(abi::data(bytes)), bytes);
  }
  return out;
}

FUSEDOPS_LIBRARY(m) {
  m.def("masked_scale(Tensor grad, Tensor mask, SymInt[] stride, float scale) -> Tensor");
}

FUSEDOPS_LIBRARY_IMPL(CPU, m) {
  m.impl("masked_scale", FUSEDOPS_BOX(masked_scale));
}

#ifdef FUSEDOPS_WITH_CUDA
FUSEDOPS_LIBRARY_IMPL(CUDA, m) {
  m.impl("masked_scale", FUSEDOPS_BOX(masked_scale));
}
#endif

}  // namespace
}  // namespace fusedops
