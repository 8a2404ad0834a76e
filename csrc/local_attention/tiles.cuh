#pragma once

#include <cstdint>

#include "common/mma.cuh"
#include "local_attention/launch.cuh"
#include "local_attention/plain.cuh"

// What the two kernels on tensor cores share: tiles of rows in shared memory, and the fragments of
// them that mma.m16n8k16 takes.

namespace fusedops {

constexpr int kMmaWarps = 4;
constexpr int kMmaThreads = 32 * kMmaWarps;
constexpr float kLog2e = 1.4426950408889634f;
constexpr float kLn2 = 0.6931471805599453f;

/// Elements from one row of a tile to the next: an odd number of 16-byte units, so that the eight
/// rows that ldmatrix reads at a time are in different banks.
template <int Dim>
constexpr int kTileStride = Dim + 8;

/// Reads rows [first, first + Rows) of a matrix into a tile, zeros beyond `end` and from `dim` on.
/// Where `vectors`, rows are on 16 bytes and dim is a multiple of 8, and the copies are this
/// thread's open group.
template <int Dim, int Rows, class Storage>
__device__ inline void load_tile(Storage* tile, const Storage* from, std::int64_t stride, int first,
                                 int end, int dim, bool vectors) {
  constexpr int units = Dim / 8;
  constexpr int step = kMmaThreads / units;
  static_assert(kMmaThreads % units == 0 && Rows % step == 0);
  const int d = threadIdx.x % units * 8;
  int row = threadIdx.x / units;
  Storage* target = tile + row * kTileStride<Dim> + d;
  const Storage* source = from + (first + row) * stride + d;
  const int valid_rows = d < dim ? end - first : 0;
  if (vectors) {
#pragma unroll
    for (int i = 0; i < Rows / step; ++i) {
      const bool valid = row + i * step < valid_rows;
      cp_async_16(target + i * step * kTileStride<Dim>, valid ? source : from, valid);
      source += step * stride;
    }
    return;
  }
#pragma unroll 1
  for (; row < Rows; row += step) {
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      target[e] = row < valid_rows && d + e < dim ? source[e] : Storage{0};
    }
    target += step * kTileStride<Dim>;
    source += step * stride;
  }
}

/// The fragment `a` of the tile's rows [row, row + 16) and columns [d, d + 16).
template <int Dim, class Storage>
__device__ inline void load_a(unsigned (&a)[4], const Storage* tile, int row, int d) {
  const int lane = threadIdx.x % 32;
  ldmatrix_x4(a, tile + (row + lane % 16) * kTileStride<Dim> + d + lane / 16 * 8);
}

/// Two fragments `b` of the transpose, columns [row, row + 8) and the next 8: b[0], b[1] and b[2],
/// b[3].
template <int Dim, class Storage>
__device__ inline void load_b_turned(unsigned (&b)[4], const Storage* tile, int row, int d) {
  const int lane = threadIdx.x % 32;
  ldmatrix_x4(b, tile + (row + lane / 16 * 8 + lane % 8) * kTileStride<Dim> + d + lane / 8 % 2 * 8);
}

/// Two fragments `b` of rows [row, row + 16), columns [d, d + 8) and the next 8.
template <int Dim, class Storage>
__device__ inline void load_b(unsigned (&b)[4], const Storage* tile, int row, int d) {
  const int lane = threadIdx.x % 32;
  ldmatrix_x4_trans(b, tile + (row + lane % 16) * kTileStride<Dim> + d + lane / 16 * 8);
}

/// The sum of the products of two pairs.
template <class Storage>
__device__ inline float pair_product(unsigned a, unsigned b) {
  const auto low = [](unsigned pair) {
    return widen(Storage{static_cast<unsigned short>(pair & 0xFFFFu)});
  };
  return low(a) * low(b) + low(a >> 16) * low(b >> 16);
}

/// Sets to zero.
template <int N>
__device__ inline void clear(float (&d)[N][4]) {
#pragma unroll
  for (int n = 0; n < N; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      d[n][e] = 0;
    }
  }
}

/// Writes a warp's 16 rows of results, times `low` for its first 8 and `high` for the rest, to
/// `to`, by way of the 16 rows of shared memory at `tile`, which no other warp uses.
template <class Storage, int Dim>
__device__ inline void store_rows(const AttentionTensor& to, std::int64_t b, std::int64_t h,
                                  int first, int rows, int dim, bool vectors,
                                  const float (&d)[Dim / 8][4], float low, float high,
                                  Storage* tile) {
  constexpr int stride = kTileStride<Dim>;
  const int lane = threadIdx.x % 32;
  __syncwarp();
#pragma unroll
  for (int n = 0; n < Dim / 8; ++n) {
    Storage* at = tile + lane / 4 * stride + 8 * n + lane % 4 * 2;
    *reinterpret_cast<unsigned*>(at) = pack<Storage>(d[n][0] * low, d[n][1] * low);
    *reinterpret_cast<unsigned*>(at + 8 * stride) = pack<Storage>(d[n][2] * high, d[n][3] * high);
  }
  __syncwarp();
  Storage* out = to.matrix<Storage>(b, h);
#pragma unroll
  for (int i = 0; i < 16 * Dim / 8 / 32; ++i) {
    const int unit = i * 32 + lane;
    const int row = unit / (Dim / 8);
    const int at = unit % (Dim / 8) * 8;
    if (first + row < rows && at < dim) {
      Storage* target = out + (first + row) * to.row + at;
      const Storage* source = tile + row * stride + at;
      if (vectors) {
        *reinterpret_cast<uint4*>(target) = *reinterpret_cast<const uint4*>(source);
      } else {
        for (int e = 0; e < 8 && at + e < dim; ++e) {
          target[e] = source[e];
        }
      }
    }
  }
}

/// 0 where the 16 rows are finite, with those from `rows` on left out; else NaN.
template <int N>
__device__ inline float unfinished(const float (&d)[N][4], int first, int rows) {
  float sum = 0;
#pragma unroll
  for (int n = 0; n < N; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const bool counts = first + static_cast<int>(threadIdx.x % 32) / 4 + e / 2 * 8 < rows;
      sum = counts ? sum + d[n][e] * 0.0f : sum;
    }
  }
  return sum;
}

/// Whether every row of `t` begins on 16 bytes.
inline bool on_vectors(const AttentionTensor& t) {
  const auto address = reinterpret_cast<std::uintptr_t>(t.data);
  return address % 16 == 0 && t.batch % 8 == 0 && t.head % 8 == 0 && t.row % 8 == 0;
}

}  // namespace fusedops
