#pragma once

#include "local_attention/tiles.cuh"

// Between the products: what the kernels on tensor cores make of their sums, in the layout of
// mma.m16n8k16, which a warp's part of wgmma.m64nNk16 has too.

namespace fusedops {

/// The greatest score so far of each of a fragment's two rows, its sum of weights by lane, and the
/// weighted sum of values.
template <int Dim>
struct Running {
  float most[2], total[2];
  float out[Dim / 8][4];
};

template <int Dim>
__device__ inline void begin_rows(Running<Dim>& running) {
  running.most[0] = running.most[1] = -INFINITY;
  running.total[0] = running.total[1] = 0;
  clear(running.out);
}

/// Where a warp's scores are, and which of them count: columns [row - before, row + after] of a
/// row, and none from `end` on.
struct Mask {
  int first_row, first_column, before, after, end;

  /// Of the element `e` of fragment `n`.
  __device__ bool counts(int n, int e) const {
    const int lane = threadIdx.x % 32;
    const int row = first_row + lane / 4 + e / 2 * 8;
    const int column = first_column + 8 * n + lane % 4 * 2 + e % 2;
    return column >= row - before && column <= row + after && column < end;
  }
};

/// From scores to weights, in place, and the factors that this puts to the rows' earlier sums.
template <int Dim, int N>
__device__ inline void weigh(float (&s)[N][4], Running<Dim>& running, float (&factors)[2],
                             float scale_log2, const Mask& mask, bool masked) {
  if (masked) {
#pragma unroll
    for (int n = 0; n < N; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        s[n][e] = mask.counts(n, e) ? s[n][e] : -INFINITY;
      }
    }
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float most = running.most[half];
#pragma unroll
    for (int n = 0; n < N; ++n) {
      most = fmaxf(most, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
    }
    most = fmaxf(most, __shfl_xor_sync(0xFFFFFFFFu, most, 1));
    most = fmaxf(most, __shfl_xor_sync(0xFFFFFFFFu, most, 2));
    // A row that meets no column yet has no maximum to subtract.
    const float shift = most == -INFINITY ? 0.0f : most * scale_log2;
    factors[half] = exp2_approx(running.most[half] * scale_log2 - shift);
    running.most[half] = most;
    float total = 0;
#pragma unroll
    for (int n = 0; n < N; ++n) {
#pragma unroll
      for (int e = 2 * half; e < 2 * half + 2; ++e) {
        s[n][e] = exp2_approx(s[n][e] * scale_log2 - shift);
        total += s[n][e];
      }
    }
    running.total[half] = running.total[half] * factors[half] + total;
  }
}

template <int Dim>
__device__ inline void rescale(Running<Dim>& running, const float (&factors)[2]) {
#pragma unroll
  for (int n = 0; n < Dim / 8; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      running.out[n][e] *= factors[e / 2];
    }
  }
}

/// The elements of fragments 2n and 2n + 1, rounded: a fragment `a` of the next product.
template <class Storage, int N>
__device__ inline void pack_a(unsigned (&a)[4], const float (&weights)[N][4], int n) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float* pair = weights[2 * n + i / 2] + i % 2 * 2;
    a[i] = pack<Storage>(pair[0], pair[1]);
  }
}

/// Writes lse of a warp's 16 rows, which begin at `first`, and leaves in `total` what the rows are
/// to be multiplied by. Not 0 where they are unfinished.
template <int Dim>
__device__ inline float end_rows(Running<Dim>& running, const LocalAttention& call,
                                 const AttentionPlace<int>& at, int first, float scale_log2) {
  const int lane = threadIdx.x % 32;
  const int rows = static_cast<int>(call.rows);
  float bad = 0;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float& total = running.total[half];
    total += __shfl_xor_sync(0xFFFFFFFFu, total, 1);
    total += __shfl_xor_sync(0xFFFFFFFFu, total, 2);
    const int row = first + lane / 4 + 8 * half;
    if (lane % 4 == 0 && row < rows) {
      static_cast<float*>(call.lse)[(at.batch * call.heads + at.head) * call.rows + row] =
          running.most[half] * scale_log2 * kLn2 + logf(total);
    }
    // Without a finite score the sum is 0.
    bad += row < rows && !(total > 0) ? 1.0f : 0.0f;
    total = 1 / total;
  }
  return bad + unfinished(running.out, first, rows);
}

/// From scores to weights, in place, by the rows' lse in powers of 2 or, `OfKeys`, the columns'
/// lse.
template <bool OfKeys, int N>
__device__ inline void weigh_again(float (&weights)[N][4], const float (&row_lse)[2],
                                   const float* column_lse, float scale_log2, const Mask& mask,
                                   bool masked) {
#pragma unroll
  for (int n = 0; n < N; ++n) {
    float2 own;
    if (OfKeys) {
      own = *reinterpret_cast<const float2*>(column_lse + 8 * n + threadIdx.x % 4 * 2);
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const float log_sum = OfKeys ? (e % 2 == 0 ? own.x : own.y) * kLog2e : row_lse[e / 2];
      weights[n][e] = exp2_approx(weights[n][e] * scale_log2 - log_sum);
    }
  }
  if (masked) {
#pragma unroll
    for (int n = 0; n < N; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        weights[n][e] = mask.counts(n, e) ? weights[n][e] : 0.0f;
      }
    }
  }
}

/// From products with grad to the scores' gradients, in place.
template <bool OfKeys, int N>
__device__ inline void to_slopes(float (&slopes)[N][4], const float (&weights)[N][4],
                                 const float (&row_delta)[2], const float* column_delta) {
#pragma unroll
  for (int n = 0; n < N; ++n) {
    float2 own;
    if (OfKeys) {
      own = *reinterpret_cast<const float2*>(column_delta + 8 * n + threadIdx.x % 4 * 2);
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const float subtracted = OfKeys ? (e % 2 == 0 ? own.x : own.y) : row_delta[e / 2];
      slopes[n][e] = weights[n][e] * (slopes[n][e] - subtracted);
    }
  }
}

/// The block's `Rows` rows without tensor cores; threads that this has no use for are to have
/// ended.
template <class Storage, int Rows>
__device__ inline void plain_forward(const LocalAttention& call, const AttentionPlace<int>& at,
                                     void* shared) {
  auto& plain_shared = *static_cast<plain::Shared<float>*>(shared);
  for (int row = 0; row < Rows; row += plain::kRows<float>) {
    plain::forward<Storage>(call, at.batch, at.head, at.first + row, plain_shared);
  }
}
template <class Storage, bool OfKeys, int Rows>
__device__ inline void plain_backward(const LocalAttention& call, const AttentionPlace<int>& at,
                                      void* shared) {
  auto& plain_shared = *static_cast<plain::Shared<float>*>(shared);
  for (int row = 0; row < Rows; row += plain::kRows<float>) {
    plain::backward<Storage, OfKeys>(call, at.batch, at.head, at.first + row, plain_shared);
  }
}

}  // namespace fusedops
