#pragma once

#include <cstdint>

namespace fusedops {

enum class DType { Float16, BFloat16, Float32, Float64 };

/// The 16-bit formats as stored. Kernels widen them to float, compute, and round once.
struct Float16 {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};

template <class Storage>
struct ComputeType {
  using type = float;
};
template <>
struct ComputeType<double> {
  using type = double;
};
/// What arithmetic on `Storage` is done in: double for double, float for everything else.
template <class Storage>
using Compute = typename ComputeType<Storage>::type;

/// Calls `f` with a value of the storage type that `dtype` names.
template <class F>
void with_storage(DType dtype, F&& f) {
  switch (dtype) {
    case DType::Float16:
      return f(Float16{});
    case DType::BFloat16:
      return f(BFloat16{});
    case DType::Float32:
      return f(float{});
    case DType::Float64:
      return f(double{});
  }
}

/// Bytes of an element.
inline std::int64_t size_of(DType dtype) {
  std::int64_t bytes = 0;
  with_storage(dtype, [&](auto tag) { bytes = sizeof(tag); });
  return bytes;
}

}  // namespace fusedops
