#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "common/pointwise.h"

// Masks of one bit an element, in the order in which the elements lie in memory: element i's is bit
// i % 8 of byte i / 8, as of numpy.packbits(bitorder="little"). The bits after the last are 0.

namespace fusedops {

inline std::int64_t mask_bytes(std::int64_t elements) {
  return (elements + 7) / 8;
}

/// Kernels that write a mask beside their result, or where `Byte` is const read one beside their
/// input. A range of `cpu` begins with a byte.
template <class Params, class Byte>
struct MaskKernels {
  void (*cpu)(const Operands<1>&, const Params&, Byte* mask, std::int64_t begin, std::int64_t end);
  void (*cuda)(const Operands<1>&, const Params&, Byte* mask, void* stream);
};

template <class Params, class Byte>
void run(const MaskKernels<Params, Byte>& kernels, const Params& params,
         const Operands<1>& operands, Byte* bytes, const Tensor& mask) {
#ifdef FUSEDOPS_WITH_CUDA
  if (abi::is_cuda(mask)) {
    const std::int32_t device = abi::device_index(mask);
    const abi::DeviceGuard guard(device);
    kernels.cuda(operands, params, bytes, abi::current_stream(device));
    return;
  }
#endif
  abi::parallel_over(mask, kGrain / 8, [&](std::int64_t begin, std::int64_t end) {
    kernels.cpu(operands, params, bytes, begin * 8, std::min(end * 8, operands.n));
  });
}

/// The result as of `pointwise`, and its mask.
template <class Params>
std::tuple<Tensor, Tensor> pointwise_with_mask(const MaskKernels<Params, std::uint8_t>& kernels,
                                               const Params& params, DType dtype, const Tensor& x) {
  const Tensor in = dense(x);
  Tensor out = abi::empty_as(in);
  const std::int64_t n = abi::numel(out);
  Tensor mask = abi::empty_bytes(mask_bytes(n), out);
  if (n > 0) {
    run(kernels, params, {dtype, n, {abi::data(in)}, abi::mutable_data(out)},
        static_cast<std::uint8_t*>(abi::mutable_data(mask)), mask);
  }
  return {out, mask};
}

}  // namespace fusedops
