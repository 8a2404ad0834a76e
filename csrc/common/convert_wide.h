#pragma once

#include <cstdint>

#include "common/convert_cpu.h"
#include "common/wide.h"
#ifdef FUSEDOPS_X86
#include <immintrin.h>
#endif

// Conversions of arrays for loops of common/wide.h. Float16 has instructions of its own from AVX2's
// F16C on, which no compiler makes of the arithmetic in convert_cpu.h; all else it does well.

namespace fusedops {

/// Whether `widen_all` and `narrow_all` are faster than `widen` and `narrow` in the loop itself.
template <class Isa, class Storage>
constexpr bool kConvertsByArray = false;

#ifdef FUSEDOPS_X86
template <>
inline constexpr bool kConvertsByArray<Avx2, Float16> = true;
template <>
inline constexpr bool kConvertsByArray<Avx512, Float16> = true;

FUSEDOPS_AVX2 inline void widen_halves(const Float16* __restrict__ from, std::int64_t n,
                                       float* __restrict__ to) {
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(halves));
  }
  for (; i < n; ++i) {
    to[i] = widen(from[i]);
  }
}

/// The instruction would keep a NaN's payload; `narrow` and torch have one NaN of each sign.
FUSEDOPS_AVX2 inline void narrow_halves(const float* __restrict__ from, std::int64_t n,
                                        Float16* __restrict__ to) {
  const __m256 quiet = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FC00000));
  const __m256 sign = _mm256_set1_ps(-0.0f);
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 value = _mm256_loadu_ps(from + i);
    const __m256 nan = _mm256_or_ps(_mm256_and_ps(value, sign), quiet);
    const __m256 one_nan = _mm256_blendv_ps(value, nan, _mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(one_nan, _MM_FROUND_TO_NEAREST_INT));
  }
  for (; i < n; ++i) {
    to[i] = narrow<Float16>(from[i]);
  }
}
#endif

template <class Isa, class Storage>
FUSEDOPS_INLINE void widen_all(Isa, const Storage* __restrict__ from, std::int64_t n,
                               Compute<Storage>* __restrict__ to) {
  if constexpr (kConvertsByArray<Isa, Storage>) {
    widen_halves(from, n, to);
  } else {
    for (std::int64_t i = 0; i < n; ++i) {
      to[i] = widen(from[i]);
    }
  }
}

template <class Isa, class Storage>
FUSEDOPS_INLINE void narrow_all(Isa, const Compute<Storage>* __restrict__ from, std::int64_t n,
                                Storage* __restrict__ to) {
  if constexpr (kConvertsByArray<Isa, Storage>) {
    narrow_halves(from, n, to);
  } else {
    for (std::int64_t i = 0; i < n; ++i) {
      to[i] = narrow<Storage>(from[i]);
    }
  }
}

}  // namespace fusedops
