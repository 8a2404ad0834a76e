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

FUSEDOPS_AVX2 inline void widen_halves(Avx2, const Float16* __restrict__ from, std::int64_t n,
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

// With a mask of all elements, since GCC 12 warns of the value that the other forms leave
// undefined.
constexpr unsigned short kAll = 0xFFFF;

FUSEDOPS_AVX512 inline void widen_halves(Avx512, const Float16* __restrict__ from, std::int64_t n,
                                         float* __restrict__ to) {
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
    _mm512_storeu_ps(to + i, _mm512_maskz_cvtph_ps(kAll, halves));
  }
  for (; i < n; ++i) {
    to[i] = widen(from[i]);
  }
}

// The instruction keeps a NaN's payload, where `narrow` and torch have one NaN of each sign: what
// holds a NaN, which is little, is converted again without it.

FUSEDOPS_AVX2 inline void narrow_halves(Avx2, const float* __restrict__ from, std::int64_t n,
                                        Float16* __restrict__ to) {
  __m256 unordered = _mm256_setzero_ps();
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 value = _mm256_loadu_ps(from + i);
    unordered = _mm256_or_ps(unordered, _mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
  }
  if (_mm256_movemask_ps(unordered) != 0) {
    i = 0;
  }
  for (; i < n; ++i) {
    to[i] = narrow<Float16>(from[i]);
  }
}

FUSEDOPS_AVX512 inline void narrow_halves(Avx512, const float* __restrict__ from, std::int64_t n,
                                          Float16* __restrict__ to) {
  unsigned unordered = 0;
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m512 value = _mm512_loadu_ps(from + i);
    unordered |= _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i),
                        _mm512_maskz_cvtps_ph(kAll, value, _MM_FROUND_TO_NEAREST_INT));
  }
  if (unordered != 0) {
    i = 0;
  }
  for (; i < n; ++i) {
    to[i] = narrow<Float16>(from[i]);
  }
}
#endif

template <class Isa, class Storage>
FUSEDOPS_INLINE void widen_all([[maybe_unused]] Isa isa, const Storage* __restrict__ from,
                               std::int64_t n, Compute<Storage>* __restrict__ to) {
  if constexpr (kConvertsByArray<Isa, Storage>) {
    widen_halves(isa, from, n, to);
  } else {
    for (std::int64_t i = 0; i < n; ++i) {
      to[i] = widen(from[i]);
    }
  }
}

template <class Isa, class Storage>
FUSEDOPS_INLINE void narrow_all([[maybe_unused]] Isa isa, const Compute<Storage>* __restrict__ from,
                                std::int64_t n, Storage* __restrict__ to) {
  if constexpr (kConvertsByArray<Isa, Storage>) {
    narrow_halves(isa, from, n, to);
  } else {
    for (std::int64_t i = 0; i < n; ++i) {
      to[i] = narrow<Storage>(from[i]);
    }
  }
}

}  // namespace fusedops
