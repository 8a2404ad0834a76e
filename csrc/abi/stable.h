#pragma once

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/dtype.h"

#define FUSEDOPS_LIBRARY(m) STABLE_TORCH_LIBRARY_FRAGMENT(fusedops, m)
#define FUSEDOPS_LIBRARY_IMPL(key, m) STABLE_TORCH_LIBRARY_IMPL(fusedops, key, m)
#define FUSEDOPS_BOX(function) TORCH_BOX(&function)

namespace fusedops::abi {

using Tensor = torch::stable::Tensor;
using Ints = std::vector<std::int64_t>;
using DeviceGuard = torch::stable::accelerator::DeviceGuard;

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
  using torch::headeronly::ScalarType;
  switch (t.scalar_type()) {
    case ScalarType::Half:
      dtype = DType::Float16;
      return true;
    case ScalarType::BFloat16:
      dtype = DType::BFloat16;
      return true;
    case ScalarType::Float:
      dtype = DType::Float32;
      return true;
    case ScalarType::Double:
      dtype = DType::Float64;
      return true;
    default:
      return false;
  }
}

inline std::string dtype_name(const Tensor& t) {
  return torch::headeronly::toString(t.scalar_type());
}

inline bool is_cuda(const Tensor& t) {
  return t.is_cuda();
}
inline std::int32_t device_index(const Tensor& t) {
  return t.get_device_index();
}

inline std::string device_name(const Tensor& t) {
  if (t.is_cpu()) {
    return "cpu";
  }
  if (t.is_cuda()) {
    return "cuda:" + std::to_string(t.get_device_index());
  }
  return "another device";
}

inline const void* data(const Tensor& t) {
  return t.const_data_ptr();
}
inline void* mutable_data(const Tensor& t) {
  return t.mutable_data_ptr();
}

// Not by the dispatcher, which finds an operator by its name at each call.
inline Tensor empty_strided(std::int64_t dims, const std::int64_t* sizes,
                            const std::int64_t* strides, std::int32_t dtype, const Tensor& like) {
  std::int32_t device = 0;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(like.get(), &device));
  AtenTensorHandle made = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(dims, sizes, strides, dtype, device,
                                                  like.get_device_index(), &made));
  return Tensor(made);
}
inline Tensor empty_strided(const std::int64_t* strides, const Tensor& like) {
  std::int32_t dtype = 0;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(like.get(), &dtype));
  return empty_strided(like.dim(), like.sizes().data(), strides, dtype, like);
}
inline Tensor empty_as(const Tensor& t) {
  return empty_strided(t.strides().data(), t);
}
inline Tensor empty_like(const Tensor& t) {
  return torch::stable::empty_like(t);
}
inline Tensor clone(const Tensor& t) {
  return torch::stable::clone(t);
}
inline void copy(Tensor& to, const Tensor& from) {
  torch::stable::copy_(to, from);
}

inline Tensor contiguous(const Tensor& t) {
  return torch::stable::contiguous(t);
}
inline Tensor narrow(const Tensor& t, std::int64_t d, std::int64_t start, std::int64_t length) {
  Tensor self = t;
  return torch::stable::narrow(self, d, start, length);
}

inline Tensor empty(const std::vector<std::int64_t>& sizes, const Tensor& like) {
  return torch::stable::new_empty(like, sizes);
}
inline Tensor empty_bytes(std::int64_t count, const Tensor& like) {
  const std::int64_t stride = 1;
  return empty_strided(1, &count, &stride, aoti_torch_dtype_uint8(), like);
}
inline Tensor empty_float32(const std::vector<std::int64_t>& sizes, const Tensor& like) {
  return torch::stable::new_empty(like, sizes, torch::headeronly::ScalarType::Float);
}
inline Tensor empty_int64(const std::vector<std::int64_t>& sizes, const Tensor& like) {
  return torch::stable::new_empty(like, sizes, torch::headeronly::ScalarType::Long);
}

inline bool is_int64(const Tensor& t) {
  return t.scalar_type() == torch::headeronly::ScalarType::Long;
}

inline bool is_uint8(const Tensor& t) {
  return t.scalar_type() == torch::headeronly::ScalarType::Byte;
}

inline Tensor argsort_descending(const Tensor& t) {
  using torch::stable::detail::from;
  std::array<StableIValue, 4> stack{from(t), from(std::optional<bool>(true)), from(std::int64_t{0}),
                                    from(true)};
  TORCH_ERROR_CODE_CHECK(
      torch_call_dispatcher("aten::sort", "stable", stack.data(), TORCH_ABI_VERSION));
  // Both results are owned from here on, the sorted values too.
  const auto values = torch::stable::detail::to<Tensor>(stack[0]);
  return torch::stable::detail::to<Tensor>(stack[1]);
}
inline Tensor matmul(const Tensor& a, const Tensor& b) {
  return torch::stable::matmul(a, b);
}

template <class F>
void parallel_over(const Tensor& out, std::int64_t grain, const F& f) {
  torch::stable::parallel_for(0, out.numel(), grain, f);
}

template <class F>
void parallel_for(std::int64_t n, const F& f) {
  torch::stable::parallel_for(0, n, 1, f);
}

#ifdef FUSEDOPS_WITH_CUDA
inline void* current_stream(std::int32_t index) {
  void* stream = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(index, &stream));
  return stream;
}
#endif

}  // namespace fusedops::abi
