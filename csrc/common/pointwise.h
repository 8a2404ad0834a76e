#pragma once

#include <cstdint>

#include "abi/tensor.h"
#include "common/check.h"
#include "common/operands.h"
#include "common/pages.h"

namespace fusedops {

/// An operator's kernels. `cuda` is null in a library built without CUDA.
template <int Arity, class Params>
struct Kernels {
  void (*cpu)(const Operands<Arity>&, const Params&, std::int64_t begin, std::int64_t end);
  void (*cuda)(const Operands<Arity>&, const Params&, void* stream);
};

#ifdef FUSEDOPS_WITH_CUDA
#define FUSEDOPS_KERNELS(name) {&name##_cpu, &name##_cuda}
#else
#define FUSEDOPS_KERNELS(name) {&name##_cpu, nullptr}
#endif

/// Of tensors of one shape. Dimensions of size 1 are never stepped along, so their strides say
/// nothing.
bool same_strides(const Tensor& a, const Tensor& b);

/// Whether the elements fill one run of memory, each once.
bool lies_densely(const Tensor& t);

/// `t`, or where its elements do not lie densely a copy that has empty_like(t)'s strides.
Tensor dense(const Tensor& t);

/// `t`, or where its strides are not those of the dense `like` a copy that has them.
Tensor arranged_like(const Tensor& t, const Tensor& like);

/// As torch::parallel_for's own callers choose it: below this a thread costs more than it saves.
constexpr std::int64_t kGrain = 32768;

/// Runs `kernels` over `operands`, whose output is all of `out`, on `out`'s device.
template <int Arity, class Params>
void run(const Kernels<Arity, Params>& kernels, const Params& params,
         const Operands<Arity>& operands, const Tensor& out) {
#ifdef FUSEDOPS_WITH_CUDA
  if (abi::is_cuda(out)) {
    const std::int32_t device = abi::device_index(out);
    const abi::DeviceGuard guard(device);
    kernels.cuda(operands, params, abi::current_stream(device));
    return;
  }
#endif
  prefer_huge_pages(operands.out, operands.n * size_of(operands.dtype));
  abi::parallel_over(out, kGrain, [&](std::int64_t begin, std::int64_t end) {
    kernels.cpu(operands, params, begin, end);
  });
}

/// The result has the shape, dtype, device and, where `x` lies densely, the strides of `x`.
template <class Params>
Tensor pointwise(const Kernels<1, Params>& kernels, const Params& params, DType dtype,
                 const Tensor& x) {
  const Tensor in = dense(x);
  Tensor out = abi::empty_as(in);
  if (const std::int64_t n = abi::numel(out); n > 0) {
    run(kernels, params, {dtype, n, {abi::data(in)}, abi::mutable_data(out)}, out);
  }
  return out;
}

/// The same for two inputs that `check_like` has passed; `x` gives the strides.
template <class Params>
Tensor pointwise(const Kernels<2, Params>& kernels, const Params& params, DType dtype,
                 const Tensor& x, const Tensor& y) {
  const Tensor first = dense(x);
  const Tensor second = arranged_like(y, first);
  Tensor out = abi::empty_as(first);
  if (const std::int64_t n = abi::numel(out); n > 0) {
    run(kernels, params, {dtype, n, {abi::data(first), abi::data(second)}, abi::mutable_data(out)},
        out);
  }
  return out;
}

}  // namespace fusedops
