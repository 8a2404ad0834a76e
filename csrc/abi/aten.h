#pragma once

#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>
#ifdef FUSEDOPS_WITH_CUDA
#include <c10/cuda/CUDAStream.h>
#endif

#include <cstdint>
#include <string>

#include "common/dtype.h"

#define FUSEDOPS_LIBRARY(m) TORCH_LIBRARY_FRAGMENT(fusedops, m)
#define FUSEDOPS_LIBRARY_IMPL(key, m) TORCH_LIBRARY_IMPL(fusedops, key, m)
#define FUSEDOPS_BOX(function) TORCH_FN(function)

namespace fusedops::abi {

using Tensor = at::Tensor;

class DeviceGuard {
 public:
  explicit DeviceGuard(std::int32_t index)
      : guard_(c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(index))) {}

 private:
  c10::DeviceGuard guard_;
};

inline std::int64_t numel(const Tensor& t) {
  return t.numel();
}
inline std::int64_t dim(const Tensor& t) {
  return t.dim();
}
inline std::int64_t size(const Tensor& t, std::int64_t d) {
  return t.size(d);
}
inline std::int64_t stride(const Tensor& t, std::int64_t d) {
  return t.stride(d);
}

inline bool find_dtype(const Tensor& t, DType& dtype) {
  switch (t.scalar_type()) {
    case c10::ScalarType::Half:
      dtype = DType::Float16;
      return true;
    case c10::ScalarType::BFloat16:
      dtype = DType::BFloat16;
      return true;
    case c10::ScalarType::Float:
      dtype = DType::Float32;
      return true;
    case c10::ScalarType::Double:
      dtype = DType::Float64;
      return true;
    default:
      return false;
  }
}

inline std::string dtype_name(const Tensor& t) {
  return c10::toString(t.scalar_type());
}

inline bool is_cuda(const Tensor& t) {
  return t.is_cuda();
}
inline std::int32_t device_index(const Tensor& t) {
  return t.device().index();
}
inline std::string device_name(const Tensor& t) {
  return t.device().str();
}

inline const void* data(const Tensor& t) {
  return t.const_data_ptr();
}
inline void* mutable_data(const Tensor& t) {
  return t.mutable_data_ptr();
}

inline Tensor empty_like(const Tensor& t) {
  return at::empty_like(t);
}
inline Tensor clone(const Tensor& t) {
  return t.clone();
}
inline void copy(Tensor& to, const Tensor& from) {
  to.copy_(from);
}

/// at::parallel_for is compiled into its caller and would tie this library to an OpenMP runtime,
/// which torch ships under a name that differs between releases. An iterator over `out`, which
/// lies densely and so coalesces to one dimension, runs on the same threads from inside torch.
template <class F>
void parallel_over(const Tensor& out, std::int64_t grain, const F& f) {
  const auto base = static_cast<const char*>(out.const_data_ptr());
  const auto bytes = static_cast<std::int64_t>(out.element_size());
  auto iterator = at::TensorIterator::borrowing_nullary_op(out);
  iterator.for_each(
      [&](char** data, const std::int64_t*, std::int64_t n) {
        const std::int64_t begin = (data[0] - base) / bytes;
        f(begin, begin + n);
      },
      grain);
}

#ifdef FUSEDOPS_WITH_CUDA
inline void* current_stream(std::int32_t index) {
  return c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(index)).stream();
}
#endif

}  // namespace fusedops::abi
