#pragma once

#include "common/dtype.h"

// Inline PTX and bit arithmetic in place of cuda_fp16.h and cuda_bf16.h, whose tens of thousands
// of lines would be most of what each kernel file compiles.

namespace fusedops {

__device__ inline float widen(float value) {
  return value;
}
__device__ inline double widen(double value) {
  return value;
}

__device__ inline float widen(BFloat16 value) {
  return __uint_as_float(static_cast<unsigned>(value.bits) << 16);
}

__device__ inline float widen(Float16 value) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits));
  return wide;
}

template <class Storage>
__device__ Storage narrow(Compute<Storage> value);

template <>
__device__ inline float narrow<float>(float value) {
  return value;
}

template <>
__device__ inline double narrow<double>(double value) {
  return value;
}

template <>
__device__ inline Float16 narrow<Float16>(float value) {
  Float16 half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half.bits) : "f"(value));
  return half;
}

/// Rounds to nearest, ties to even. The instruction exists from SM 8.0 on.
template <>
__device__ inline BFloat16 narrow<BFloat16>(float value) {
#if __CUDA_ARCH__ >= 800
  BFloat16 result;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
  return result;
#else
  const unsigned bits = __float_as_uint(value);
  const unsigned rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  return {static_cast<unsigned short>(value != value ? 0x7FC0u : rounded)};
#endif
}

}  // namespace fusedops
