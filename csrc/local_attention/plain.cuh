#pragma once

#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdint>

#include "common/convert.cuh"
#include "local_attention/local_attention.h"

// Attention without tensor cores, for the dtypes and devices that have none, and for rows that met
// a NaN or an infinity: here a row meets its own columns alone.

namespace fusedops::plain {

constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
/// A lane has one column of a tile, and every 32nd element of a row.
constexpr int kColumns = 32;
constexpr int kParts = kAttentionDim / 32;
/// A warp's rows, which share what it reads of a tile; one for double, for shared memory.
template <class T>
constexpr int kWarpRows = sizeof(T) == 8 ? 1 : 4;
template <class T>
constexpr int kRows = kWarps * kWarpRows<T>;

/// At most 41 KiB. One more element a row of the tile: lanes read down its columns.
template <class T>
struct Shared {
  T tile[kColumns][kAttentionDim + 1];
  T rows[2][kRows<T>][kAttentionDim];
};

/// Rows [first, first + Count) of a matrix, zeros beyond `end` and beyond `dim` up to a whole part.
template <int Count, class Storage, class T, int Width>
__device__ void load(T (&to)[Count][Width], const Storage* from, std::int64_t stride,
                     std::int64_t first, std::int64_t end, int dim) {
  const int width = (dim + 31) / 32 * 32;
  for (int i = threadIdx.x; i < Count * width; i += kThreads) {
    const int row = i / width;
    const int d = i % width;
    to[row][d] = first + row < end && d < dim ? widen(from[(first + row) * stride + d]) : T(0);
  }
}

/// The products of this warp's rows with this lane's column.
template <int Rows, class T>
__device__ void dots(T (&sums)[Rows], const T (*rows)[kAttentionDim],
                     const T (&tile)[kColumns][kAttentionDim + 1], int dim) {
#pragma unroll
  for (int r = 0; r < Rows; ++r) {
    sums[r] = 0;
  }
  for (int d = 0; d < dim; ++d) {
    const T element = tile[threadIdx.x % 32][d];
#pragma unroll
    for (int r = 0; r < Rows; ++r) {
      sums[r] += rows[r][d] * element;
    }
  }
}

/// Adds to this warp's rows the tile's, each times the weight that its lane holds; columns that a
/// row does not meet are left out.
template <int Rows, class T>
__device__ void add_weighted(T (&sums)[Rows][kParts], const T (&weights)[Rows],
                             const T (&tile)[kColumns][kAttentionDim + 1], AttentionBand meets,
                             std::int64_t row, std::int64_t column, int columns, int dim) {
  for (int j = 0; j < columns; ++j) {
#pragma unroll
    for (int r = 0; r < Rows; ++r) {
      const T weight = __shfl_sync(0xFFFFFFFFu, weights[r], j);
      if (meets.holds(row + r, column + j)) {
#pragma unroll
        for (int part = 0; part < kParts; ++part) {
          if (32 * part < dim) {
            sums[r][part] += weight * tile[j][threadIdx.x % 32 + 32 * part];
          }
        }
      }
    }
  }
}

template <class T>
__device__ T warp_sum(T value) {
#pragma unroll
  for (int lane = 16; lane > 0; lane /= 2) {
    value += __shfl_xor_sync(0xFFFFFFFFu, value, lane);
  }
  return value;
}

/// Of the numbers: NaN only where every lane has it. The same in each lane, as branches ask.
template <class T>
__device__ T warp_greatest(T value) {
#pragma unroll
  for (int lane = 16; lane > 0; lane /= 2) {
    const T other = __shfl_xor_sync(0xFFFFFFFFu, value, lane);
    value = other > value || value != value ? other : value;
  }
  return value;
}

template <class Storage, class T>
__device__ void store(const AttentionTensor& to, std::int64_t b, std::int64_t h, std::int64_t row,
                      const T (&values)[kParts], T factor, int dim) {
  Storage* out = to.matrix<Storage>(b, h) + row * to.row;
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
    const int d = threadIdx.x % 32 + 32 * part;
    if (d < dim) {
      out[d] = narrow<Storage>(values[part] * factor);
    }
  }
}

/// Rows [first, first + kRows) of the matrix (b, h), by kThreads threads. `shared` may be in use
/// before the call by threads that have not come to it, and is after it by none. Never inlined: its
/// callers on tensor cores have no register to spare.
template <class Storage>
__device__ __noinline__ void forward(const LocalAttention& call, std::int64_t b, std::int64_t h,
                                     std::int64_t first, Shared<Compute<Storage>>& shared) {
  using T = Compute<Storage>;
  constexpr int rows = kWarpRows<T>;
  const int warp = threadIdx.x / 32;
  const std::int64_t row = first + warp * rows;
  const AttentionBand keys = band(call, false);
  const std::int64_t begin = first > keys.before ? first - keys.before : 0;
  std::int64_t end = first + kRows<T> + keys.after;
  end = end < call.rows ? end : call.rows;
  const T scale = static_cast<T>(call.scale);
  const T infinity = static_cast<T>(INFINITY);
  T most[rows], total[rows], sums[rows][kParts], weights[rows];
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    most[r] = -infinity;
    total[r] = 0;
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      sums[r][part] = 0;
    }
  }
  __syncthreads();
  load(shared.rows[0], call.q.matrix<Storage>(b, h), call.q.row, first, call.rows, call.dim);
  for (std::int64_t column = begin; column < end; column += kColumns) {
    const int columns = static_cast<int>(end - column < kColumns ? end - column : kColumns);
    load(shared.tile, call.k.matrix<Storage>(b, h), call.k.row, column, end, call.dim);
    __syncthreads();
    dots(weights, &shared.rows[0][warp * rows], shared.tile, call.dim);
    __syncthreads();
    load(shared.tile, call.v.matrix<Storage>(b, h), call.v.row, column, end, call.dim);
    const std::int64_t own = column + threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      const bool met = own < end && keys.holds(row + r, own);
      const T score = met ? weights[r] * scale : -infinity;
      const T tile_most = warp_greatest(score);
      const T greatest = tile_most > most[r] ? tile_most : most[r];
      const T shift = greatest == -infinity ? T(0) : greatest;
      const T factor = exp(most[r] - shift);
      weights[r] = met ? exp(score - shift) : T(0);
      total[r] = total[r] * factor + weights[r];
      most[r] = greatest;
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        sums[r][part] *= factor;
      }
    }
    __syncthreads();
    add_weighted(sums, weights, shared.tile, keys, row, column, columns, call.dim);
    __syncthreads();
  }
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    const T lanes = warp_sum(total[r]);
    // Without a finite score, -inf - -inf: NaN, as from softmax.
    const T sum = most[r] == -infinity ? most[r] - most[r] : lanes;
    if (row + r < call.rows) {
      store<Storage>(call.out, b, h, row + r, sums[r], 1 / sum, call.dim);
      if (threadIdx.x % 32 == 0) {
        static_cast<T*>(call.lse)[(b * call.heads + h) * call.rows + row + r] = most[r] + log(sum);
      }
    }
  }
}

/// As `forward`, dq of rows that are queries, or `OfKeys` dk and dv of rows that are keys. The
/// first writes delta too, which the second reads.
template <class Storage, bool OfKeys>
__device__ __noinline__ void backward(const LocalAttention& call, std::int64_t b, std::int64_t h,
                                      std::int64_t first, Shared<Compute<Storage>>& shared) {
  using T = Compute<Storage>;
  constexpr int rows = kWarpRows<T>;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const std::int64_t row = first + warp * rows;
  const AttentionTensor& row_tensor = OfKeys ? call.k : call.q;
  const AttentionTensor& row2_tensor = OfKeys ? call.v : call.grad;
  const AttentionTensor& column_tensor = OfKeys ? call.q : call.k;
  const AttentionTensor& column2_tensor = OfKeys ? call.grad : call.v;
  const std::int64_t values = (b * call.heads + h) * call.rows;
  const T* lse = static_cast<const T*>(call.lse) + values;
  T* delta = static_cast<T*>(call.delta) + values;
  const AttentionBand meets = band(call, OfKeys);
  const std::int64_t begin = first > meets.before ? first - meets.before : 0;
  std::int64_t end = first + kRows<T> + meets.after;
  end = end < call.rows ? end : call.rows;
  const T scale = static_cast<T>(call.scale);
  T sums[rows][kParts], sums2[rows][kParts], slopes[rows], weights[rows], row_lse[rows],
      row_delta[rows];
  __syncthreads();
  load(shared.rows[0], row_tensor.matrix<Storage>(b, h), row_tensor.row, first, call.rows,
       call.dim);
  load(shared.rows[1], row2_tensor.matrix<Storage>(b, h), row2_tensor.row, first, call.rows,
       call.dim);
  __syncthreads();
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    row_lse[r] = row_delta[r] = 0;
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      sums[r][part] = sums2[r][part] = 0;
    }
    if (!OfKeys && row + r < call.rows) {
      const Storage* out = call.out.matrix<Storage>(b, h) + (row + r) * call.out.row;
      T product = 0;
      for (int d = lane; d < call.dim; d += 32) {
        product += shared.rows[1][warp * rows + r][d] * widen(out[d]);
      }
      const T* grad_lse = static_cast<const T*>(call.grad_lse);
      row_lse[r] = lse[row + r];
      row_delta[r] = warp_sum(product) - (grad_lse == nullptr ? T(0) : grad_lse[values + row + r]);
      if (lane == 0) {
        delta[row + r] = row_delta[r];
      }
    }
  }
  for (std::int64_t column = begin; column < end; column += kColumns) {
    const int columns = static_cast<int>(end - column < kColumns ? end - column : kColumns);
    const std::int64_t own = column + lane;
    const Storage* data = column_tensor.matrix<Storage>(b, h);
    load(shared.tile, data, column_tensor.row, column, end, call.dim);
    __syncthreads();
    dots(weights, &shared.rows[0][warp * rows], shared.tile, call.dim);
    __syncthreads();
    load(shared.tile, column2_tensor.matrix<Storage>(b, h), column2_tensor.row, column, end,
         call.dim);
    __syncthreads();
    dots(slopes, &shared.rows[1][warp * rows], shared.tile, call.dim);
    const T own_lse = OfKeys && own < end ? lse[own] : T(0);
    const T own_delta = OfKeys && own < end ? delta[own] : T(0);
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      const bool met = own < end && meets.holds(row + r, own);
      weights[r] = met ? exp(weights[r] * scale - (OfKeys ? own_lse : row_lse[r])) : T(0);
      slopes[r] = met ? weights[r] * (slopes[r] - (OfKeys ? own_delta : row_delta[r])) : T(0);
    }
    if (OfKeys) {
      add_weighted(sums2, weights, shared.tile, meets, row, column, columns, call.dim);
    }
    __syncthreads();
    load(shared.tile, data, column_tensor.row, column, end, call.dim);
    __syncthreads();
    add_weighted(sums, slopes, shared.tile, meets, row, column, columns, call.dim);
    __syncthreads();
  }
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    if (row + r < call.rows) {
      store<Storage>(OfKeys ? call.dk : call.dq, b, h, row + r, sums[r], scale, call.dim);
      if (OfKeys) {
        store<Storage>(call.dv, b, h, row + r, sums2[r], T(1), call.dim);
      }
    }
  }
}

}  // namespace fusedops::plain
