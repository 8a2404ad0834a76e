#pragma once

#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/sort.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>
#ifdef FUSEDOPS_WITH_CUDA
#include <c10/cuda/CUDAStream.h>
#endif

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "common/dtype.h"

#define FUSEDOPS_LIBRARY(m) TORCH_LIBRARY_FRAGMENT(fusedops, m)
#define FUSEDOPS_LIBRARY_IMPL(key, m) TORCH_LIBRARY_IMPL(fusedops, key, m)
#define FUSEDOPS_BOX(function) TORCH_FN(function)

namespace fusedops::abi {

using Tensor = at::Tensor;
using Ints = at::IntArrayRef;

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
inline std::int64_t element_size(const Tensor& t) {
  return static_cast<std::int64_t>(t.element_size());
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

inline Tensor empty_strided(const std::int64_t* strides, const Tensor& like) {
  return at::empty_strided(like.sizes(), {strides, like.sizes().size()}, like.options());
}
inline Tensor empty_as(const Tensor& t) {
  return at::empty_strided(t.sizes(), t.strides(), t.options());
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

inline Tensor contiguous(const Tensor& t) {
  return t.contiguous();
}
inline Tensor narrow(const Tensor& t, std::int64_t d, std::int64_t start, std::int64_t length) {
  return t.narrow(d, start, length);
}

inline Tensor empty(const std::vector<std::int64_t>& sizes, const Tensor& like) {
  return at::empty(sizes, like.options());
}
inline Tensor empty_bytes(std::int64_t count, const Tensor& like) {
  return at::empty({count}, like.options().dtype(c10::kByte));
}
inline Tensor empty_float32(const std::vector<std::int64_t>& sizes, const Tensor& like) {
  return at::empty(sizes, like.options().dtype(c10::kFloat));
}
inline Tensor empty_int64(const std::vector<std::int64_t>& sizes, const Tensor& like) {
  return at::empty(sizes, like.options().dtype(c10::kLong));
}

inline bool is_int64(const Tensor& t) {
  return t.scalar_type() == c10::ScalarType::Long;
}

inline bool is_uint8(const Tensor& t) {
  return t.scalar_type() == c10::ScalarType::Byte;
}

inline Tensor argsort_descending(const Tensor& t) {
  return std::get<1>(at::sort(t, /*stable=*/true, /*dim=*/0, /*descending=*/true));
}
inline Tensor matmul(const Tensor& a, const Tensor& b) {
  return at::matmul(a, b);
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

/// An iterator over a tensor of one byte a piece of work.
template <class F>
void parallel_for(std::int64_t n, const F& f) {
  parallel_over(at::empty({n}, c10::kByte), 1, f);
}

#ifdef FUSEDOPS_WITH_CUDA
inline void* current_stream(std::int32_t index) {
  return c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(index)).stream();
}
#endif

}  // namespace fusedops::abi
