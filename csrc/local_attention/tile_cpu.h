#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "common/convert_cpu.h"
#include "common/older_libm.h"
#include "local_attention/local_attention.h"

// Products of tiles, and what the loops around them need. All is inlined into functions that are
// compiled once an instruction set.

namespace fusedops {

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FUSEDOPS_ATTENTION_LOOP __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FUSEDOPS_ATTENTION_LOOP
#endif
#define FUSEDOPS_INLINE inline __attribute__((always_inline))

/// The compiler makes one register of it, or as many as the processor needs.
template <class T>
struct Lanes {
  typedef T type __attribute__((vector_size(64)));
  /// The same at any element's address.
  typedef T unaligned __attribute__((vector_size(64), aligned(alignof(T)), may_alias));
  static constexpr int count = 64 / sizeof(T);
};

/// Rows and columns of a tile: its parts stay in a processor's first caches.
constexpr int kTile = 64;

FUSEDOPS_INLINE int padded(int columns, int lanes) {
  return (columns + lanes - 1) / lanes * lanes;
}

/// c += a · b for 4 rows of c and `Vectors` vectors of its columns.
template <class T, int Vectors>
FUSEDOPS_INLINE void multiply_block(const T* a, int a_stride, const T* b, int b_stride, T* c,
                                    int c_stride, int depth) {
  using Vector = typename Lanes<T>::type;
  using Unaligned = typename Lanes<T>::unaligned;
  Vector sum[4][Vectors];
  for (int r = 0; r < 4; ++r) {
    for (int n = 0; n < Vectors; ++n) {
      sum[r][n] = *reinterpret_cast<const Unaligned*>(c + r * c_stride + n * Lanes<T>::count);
    }
  }
  for (int k = 0; k < depth; ++k) {
    for (int n = 0; n < Vectors; ++n) {
      const Vector right =
          *reinterpret_cast<const Unaligned*>(b + k * b_stride + n * Lanes<T>::count);
      for (int r = 0; r < 4; ++r) {
        sum[r][n] += a[r * a_stride + k] * right;
      }
    }
  }
  for (int r = 0; r < 4; ++r) {
    for (int n = 0; n < Vectors; ++n) {
      *reinterpret_cast<Unaligned*>(c + r * c_stride + n * Lanes<T>::count) = sum[r][n];
    }
  }
}

/// c += a · b, c being kTile × columns, whole vectors, and a kTile × depth.
template <class T>
FUSEDOPS_INLINE void multiply(const T* a, int a_stride, const T* b, int b_stride, T* c,
                              int c_stride, int columns, int depth) {
  constexpr int lanes = Lanes<T>::count;
  for (int r = 0; r < kTile; r += 4) {
    int n = 0;
    for (; n + 2 * lanes <= columns; n += 2 * lanes) {
      multiply_block<T, 2>(a + r * a_stride, a_stride, b + n, b_stride, c + r * c_stride + n,
                           c_stride, depth);
    }
    for (; n < columns; n += lanes) {
      multiply_block<T, 1>(a + r * a_stride, a_stride, b + n, b_stride, c + r * c_stride + n,
                           c_stride, depth);
    }
  }
}

/// Rows [first, first + count) of a matrix, as kTile rows of `stride`, with zeros around them.
template <class Storage>
FUSEDOPS_INLINE void load_rows(Compute<Storage>* to, int stride, const Storage* from,
                               std::int64_t from_stride, std::int64_t first, int count, int dim) {
  for (int r = 0; r < kTile; ++r) {
    Compute<Storage>* row = to + r * stride;
    const int valid = r < count ? dim : 0;
    const Storage* source = from + (first + (r < count ? r : 0)) * from_stride;
    for (int d = 0; d < valid; ++d) {
      row[d] = widen(source[d]);
    }
    std::fill(row + valid, row + stride, Compute<Storage>(0));
  }
}

/// The transpose of kTile rows: dim rows of kTile. By parts that stay in the first cache's few
/// ways.
template <class T>
FUSEDOPS_INLINE void transpose(T* to, const T* from, int stride, int dim) {
  constexpr int part = 8;
  for (int r = 0; r < kTile; r += part) {
    for (int d = 0; d < dim; ++d) {
      for (int k = 0; k < part; ++k) {
        to[d * kTile + r + k] = from[(r + k) * stride + d];
      }
    }
  }
}

FUSEDOPS_INLINE double exponential(double x) {
  return std::exp(x);
}

/// e^x to two units in the last place, 0 below 2^-125, without a branch or a call, so that loops of
/// it are vectors: 2^n times a polynomial of what is left. Coefficients of Cephes' expf
/// (https://www.netlib.org/cephes/).
FUSEDOPS_INLINE float exponential(float x) {
  constexpr float least = -86.6f;
  const float low = x < least ? least : x;
  const float bounded = low > 89.0f ? 89.0f : low;
  const float shifted = bounded * 1.44269504f + 0x1.8p23f;
  const float n = shifted - 0x1.8p23f;
  const float r = (bounded - n * 0.693359375f) - n * -2.12194440e-4f;
  float y = 1.9875691500e-4f;
  y = y * r + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  y = (y * r) * r + r + 1.0f;
  // The last place of `shifted` counts ones. Half the power, as 2^128 is no number.
  const std::uint32_t power = bits_of(shifted) - 0x4B400000u + 126u;
  const float value = y * float_of(power << 23) * 2.0f;
  return x < least ? 0.0f : value;
}

/// The greatest of kTile numbers times `scale`, which they become; a NaN is not counted.
template <class T>
FUSEDOPS_INLINE T scale_and_find_greatest(T* x, T scale) {
  using Vector = typename Lanes<T>::type;
  constexpr int lanes = Lanes<T>::count;
  Vector most = Vector{} - std::numeric_limits<T>::infinity();
  for (int j = 0; j < kTile; j += lanes) {
    auto& part = *reinterpret_cast<typename Lanes<T>::unaligned*>(x + j);
    const Vector scaled = part * scale;
    part = scaled;
    most = scaled > most ? scaled : most;
  }
  // By halves: one after the other each would wait for the last.
  T each[lanes];
  std::memcpy(each, &most, sizeof most);
  for (int half = lanes / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) {
      each[lane] = each[lane + half] > each[lane] ? each[lane + half] : each[lane];
    }
  }
  return each[0];
}

template <class T>
FUSEDOPS_INLINE T sum_of_tile(const T* x) {
  using Vector = typename Lanes<T>::type;
  constexpr int lanes = Lanes<T>::count;
  Vector total = {};
  for (int j = 0; j < kTile; j += lanes) {
    total += *reinterpret_cast<const typename Lanes<T>::unaligned*>(x + j);
  }
  T each[lanes];
  std::memcpy(each, &total, sizeof total);
  for (int half = lanes / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) {
      each[lane] += each[lane + half];
    }
  }
  return each[0];
}

/// Whether every one of `count` numbers is finite.
template <class T>
FUSEDOPS_INLINE bool finite(const T* x, int count) {
  T sum = 0;
  for (int i = 0; i < count; ++i) {
    sum += x[i] * 0;
  }
  return sum == 0;
}

/// A block of rows of one matrix.
struct AttentionBlock {
  std::int64_t batch, head, first;
  int count;

  AttentionBlock(const LocalAttention& call, std::int64_t number) {
    const std::int64_t blocks = (call.rows + kTile - 1) / kTile;
    const std::int64_t matrix = number / blocks;
    batch = matrix / call.heads;
    head = matrix % call.heads;
    first = number % blocks * kTile;
    count = static_cast<int>(std::min<std::int64_t>(kTile, call.rows - first));
  }
  /// Of this block's first row in a tensor with one number a row.
  std::int64_t values(const LocalAttention& call) const {
    return (batch * call.heads + head) * call.rows;
  }
};

}  // namespace fusedops
