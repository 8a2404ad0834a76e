#pragma once

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <stdexcept>

#include "kernels.h"

// What operators need of torch, by its stable ABI.

namespace faultops {

using torch::stable::Tensor;

/// Defines an operator and its clean twin, of the same schema.
#define FAULTOPS_PAIR(m, name, schema) \
  m.def(#name schema);                 \
  m.def(#name "_clean" schema)

/// The block that follows gives operators of the library `m` their kernels, on both devices.
#ifdef FAULTOPS_WITH_CUDA
#define FAULTOPS_IMPL(m)                                   \
  void implement(torch::stable::detail::StableLibrary& m); \
  STABLE_TORCH_LIBRARY_IMPL(faultops, CPU, cpu) {          \
    implement(cpu);                                        \
  }                                                        \
  STABLE_TORCH_LIBRARY_IMPL(faultops, CUDA, cuda) {        \
    implement(cuda);                                       \
  }                                                        \
  void implement(torch::stable::detail::StableLibrary& m)
#else
#define FAULTOPS_IMPL(m)                                   \
  void implement(torch::stable::detail::StableLibrary& m); \
  STABLE_TORCH_LIBRARY_IMPL(faultops, CPU, cpu) {          \
    implement(cpu);                                        \
  }                                                        \
  void implement(torch::stable::detail::StableLibrary& m)
#endif

inline DType dtype_of(const Tensor& t) {
  using torch::headeronly::ScalarType;
  switch (t.scalar_type()) {
    case ScalarType::Float:
      return DType::Float32;
    case ScalarType::Double:
      return DType::Float64;
    default:
      throw std::runtime_error("faultops: x must be a float32 or float64 tensor");
  }
}

#ifdef FAULTOPS_WITH_CUDA
inline void* current_stream(const Tensor& t) {
  void* stream = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(t.get_device_index(), &stream));
  return stream;
}
#endif

/// Runs `kernels` on the device of `out`, on its current stream.
inline void run(const Kernels& kernels, Call call, [[maybe_unused]] const Tensor& out) {
#ifdef FAULTOPS_WITH_CUDA
  if (out.is_cuda()) {
    const torch::stable::accelerator::DeviceGuard guard(out.get_device_index());
    call.stream = current_stream(out);
    kernels.cuda(call);
    return;
  }
#endif
  kernels.cpu(call);
}

/// The call that reads `x` and writes `out`, which both lie contiguously.
inline Call call_of(const Tensor& x, Tensor& out) {
  Call call{};
  call.dtype = dtype_of(x);
  call.n = x.numel();
  call.x = x.const_data_ptr();
  call.out = out.mutable_data_ptr();
  return call;
}

/// A result of the shape of `x`, of which `kernels` compute each element. It lies contiguously.
inline Tensor map(const Kernels& kernels, const Tensor& x) {
  const Tensor in = torch::stable::contiguous(x);
  Tensor out = torch::stable::empty_like(in);
  if (in.numel() > 0) {
    run(kernels, call_of(in, out), out);
  }
  return out;
}

inline Tensor twice(const Tensor& x) {
  return map(FAULTOPS_KERNELS(twice, twice), x);
}

}  // namespace faultops
