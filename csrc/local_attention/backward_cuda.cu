#include "local_attention/weights.cuh"

namespace fusedops {
inline namespace backward_unit {

/// A block's four warps have 16 rows each: queries, whose dq they sum over keys, or keys, whose dk
/// and dv they sum over queries. A stage in shared memory is `columns` of the other kind.
template <int Dim, bool OfKeys>
struct Backward {
  static constexpr int rows = 16 * kMmaWarps;
  static constexpr int columns = 64;
  static constexpr int blocks_an_sm = Dim <= 64 ? 3 : 2;
  /// Two tiles of rows, two stages of two tiles of columns and of two numbers a column.
  static constexpr int tiles_bytes = (2 * rows + 4 * columns) * kTileStride<Dim> * 2;
  static constexpr int shared_bytes = tiles_bytes + 4 * columns * static_cast<int>(sizeof(float));
};

/// One of the two factors that a warp's rows bring to its scores and to their changes.
template <class Storage, int Dim, bool Keep>
class RowFragments {
 public:
  __device__ RowFragments(const Storage* tile, int row) : tile_(tile), row_(row) {
    if (Keep) {
#pragma unroll
      for (int d = 0; d < Dim / 16; ++d) {
        load_a<Dim>(kept_[d], tile, row, 16 * d);
      }
    }
  }
  __device__ void at(unsigned (&a)[4], int d) const {
    if (Keep) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        a[e] = kept_[d][e];
      }
    } else {
      load_a<Dim>(a, tile_, row_, 16 * d);
    }
  }

 private:
  const Storage* tile_;
  int row_;
  unsigned kept_[Keep ? Dim / 16 : 1][4];
};

/// The products of a warp's rows with `Part` columns from `column` on of a tile.
template <class Storage, int Dim, int Part, bool Keep>
__device__ inline void products(float (&sums)[Part / 8][4],
                                const RowFragments<Storage, Dim, Keep>& rows, const Storage* tile,
                                int column) {
  clear(sums);
#pragma unroll
  for (int d = 0; d < Dim / 16; ++d) {
    unsigned a[4];
    rows.at(a, d);
#pragma unroll
    for (int n = 0; n < Part / 16; ++n) {
      unsigned b[4];
      load_b_turned<Dim>(b, tile, column + 16 * n, 16 * d);
      mma_m16n8k16<Storage>(sums[2 * n], a, b[0], b[1]);
      mma_m16n8k16<Storage>(sums[2 * n + 1], a, b[2], b[3]);
    }
  }
}

/// sums += weights · the tile's columns from `column` on, the weights rounded.
template <class Storage, int Dim, int Part>
__device__ inline void add_products(float (&sums)[Dim / 8][4], const float (&weights)[Part / 8][4],
                                    const Storage* tile, int column) {
#pragma unroll
  for (int n = 0; n < Part / 16; ++n) {
    unsigned a[4];
    pack_a<Storage>(a, weights, n);
#pragma unroll
    for (int d = 0; d < Dim / 16; ++d) {
      unsigned b[4];
      load_b<Dim>(b, tile, column + 16 * n, 16 * d);
      mma_m16n8k16<Storage>(sums[2 * d], a, b[0], b[1]);
      mma_m16n8k16<Storage>(sums[2 * d + 1], a, b[2], b[3]);
    }
  }
}

/// rowsum(grad · out) of the two rows of which this lane has elements.
template <class Storage, int Dim, bool Keep>
__device__ inline void row_products(float (&sums)[2], const RowFragments<Storage, Dim, Keep>& grad,
                                    const Storage* out, int row) {
  sums[0] = sums[1] = 0;
#pragma unroll
  for (int d = 0; d < Dim / 16; ++d) {
    unsigned a[4], b[4];
    grad.at(a, d);
    load_a<Dim>(b, out, row, 16 * d);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      sums[e % 2] += pair_product<Storage>(a[e], b[e]);
    }
  }
#pragma unroll
  for (float& sum : sums) {
    sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
    sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 2);
  }
}

/// dq and delta, or `OfKeys` dk and dv, of a block of rows, which is read once, and of what the
/// rows meet. Weights are computed anew from lse.
template <class Storage, int Dim, bool OfKeys>
__global__ void __launch_bounds__(kMmaThreads, Backward<Dim, OfKeys>::blocks_an_sm)
    attention_backward_kernel(const FUSEDOPS_CONSTANT LocalAttention call, std::int64_t first_block,
                              bool vectors) {
#if __CUDA_ARCH__ >= 800
  using Tiles = Backward<Dim, OfKeys>;
  constexpr int stride = kTileStride<Dim>;
  // Columns that a warp takes at a time: what its registers hold.
  constexpr int part = Dim <= 64 ? 32 : 16;
  static_assert(Tiles::columns % part == 0);
  // Whether the rows' own fragments stay in registers.
  constexpr bool keep = Dim <= 64 || !OfKeys;
  extern __shared__ __align__(16) unsigned char shared[];
  Storage* row_tile = reinterpret_cast<Storage*>(shared);
  Storage* row2_tile = row_tile + Tiles::rows * stride;
  Storage* column_tiles = row2_tile + Tiles::rows * stride;
  Storage* column2_tiles = column_tiles + 2 * Tiles::columns * stride;
  float* column_values = reinterpret_cast<float*>(shared + Tiles::tiles_bytes);

  const AttentionPlace<int> at(call, first_block + blockIdx.x, Tiles::rows);
  const int first = at.first;
  const int rows = static_cast<int>(call.rows);
  const int window = static_cast<int>(call.window);
  const int ahead = call.causal ? 0 : window;
  const int before = OfKeys ? ahead : window;
  const int after = OfKeys ? window : ahead;
  const int begin = max(0, first - before);
  const int end = min(rows, first + Tiles::rows + after);
  const std::int64_t values = (at.batch * call.heads + at.head) * call.rows;
  const float* lse = static_cast<const float*>(call.lse) + values;
  float* delta = static_cast<float*>(call.delta) + values;
  const AttentionTensor& column_tensor = OfKeys ? call.q : call.k;
  const AttentionTensor& column2_tensor = OfKeys ? call.grad : call.v;
  const Storage* column_data = column_tensor.matrix<Storage>(at.batch, at.head);
  const Storage* column2_data = column2_tensor.matrix<Storage>(at.batch, at.head);
  const auto load = [&](int column, int stage) {
    load_tile<Dim, Tiles::columns>(column_tiles + stage * Tiles::columns * stride, column_data,
                                   column_tensor.row, column, end, call.dim, vectors);
    load_tile<Dim, Tiles::columns>(column2_tiles + stage * Tiles::columns * stride, column2_data,
                                   column2_tensor.row, column, end, call.dim, vectors);
    if (OfKeys) {
      static_assert(2 * Tiles::columns == kMmaThreads);
      const int own = column + static_cast<int>(threadIdx.x) % Tiles::columns;
      const float* from = threadIdx.x < Tiles::columns ? lse : delta;
      cp_async_4(column_values + stage * kMmaThreads + threadIdx.x, own < end ? from + own : from,
                 own < end);
    }
    cp_async_commit();
  };
  const AttentionTensor& row_tensor = OfKeys ? call.k : call.q;
  const AttentionTensor& row2_tensor = OfKeys ? call.v : call.grad;
  load_tile<Dim, Tiles::rows>(row_tile, row_tensor.matrix<Storage>(at.batch, at.head),
                              row_tensor.row, first, rows, call.dim, vectors);
  load_tile<Dim, Tiles::rows>(row2_tile, row2_tensor.matrix<Storage>(at.batch, at.head),
                              row2_tensor.row, first, rows, call.dim, vectors);
  // The second stage's place is free until the loop begins.
  Storage* out_tile = column_tiles + Tiles::columns * stride;
  if (!OfKeys) {
    static_assert(Tiles::rows <= Tiles::columns);
    load_tile<Dim, Tiles::rows>(out_tile, call.out.matrix<Storage>(at.batch, at.head), call.out.row,
                                first, rows, call.dim, vectors);
  }
  load(begin, 0);
  cp_async_wait<0>();
  __syncthreads();

  const int lane = threadIdx.x % 32;
  const int tile_row = static_cast<int>(threadIdx.x) / 32 * 16;
  const int warp_row = first + tile_row;
  const int warp_last = warp_row + 15;
  const RowFragments<Storage, Dim, keep> row_fragments(row_tile, tile_row);
  const RowFragments<Storage, Dim, keep> row2_fragments(row2_tile, tile_row);
  const float scale_log2 = static_cast<float>(call.scale) * kLog2e;
  float row_lse[2] = {}, row_delta[2] = {};
  if (!OfKeys) {
    row_products<Storage, Dim>(row_delta, row2_fragments, out_tile, tile_row);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = warp_row + lane / 4 + 8 * half;
      if (row < rows) {
        row_lse[half] = lse[row] * kLog2e;
        if (call.grad_lse != nullptr) {
          row_delta[half] -= static_cast<const float*>(call.grad_lse)[values + row];
        }
        if (lane % 4 == 0) {
          delta[row] = row_delta[half];
        }
      }
    }
  }
  float sums[Dim / 8][4], sums2[OfKeys ? Dim / 8 : 1][4];
  clear(sums);
  clear(sums2);

  int stage = 0;
  for (int column = begin; column < end; column += Tiles::columns) {
    cp_async_wait<0>();
    __syncthreads();
    if (column + Tiles::columns < end) {
      load(column + Tiles::columns, stage ^ 1);
    }
    const Storage* tile = column_tiles + stage * Tiles::columns * stride;
    const Storage* tile2 = column2_tiles + stage * Tiles::columns * stride;
    const float* numbers = column_values + stage * kMmaThreads;
#pragma unroll 1
    for (int in_tile = 0; in_tile < Tiles::columns; in_tile += part) {
      const int from = column + in_tile;
      const int last = from + part - 1;
      if (from > warp_last + after || last < warp_row - before || from >= end) {
        continue;
      }
      float weights[part / 8][4], slopes[part / 8][4];
      products<Storage, Dim, part>(weights, row_fragments, tile, in_tile);
      products<Storage, Dim, part>(slopes, row2_fragments, tile2, in_tile);
      const bool masked = from < warp_last - before || last > warp_row + after || last >= rows;
      weigh_again<OfKeys>(weights, row_lse, numbers + in_tile, scale_log2,
                          {warp_row, from, before, after, rows}, masked);
      to_slopes<OfKeys>(slopes, weights, row_delta, numbers + Tiles::columns + in_tile);
      add_products<Storage, Dim, part>(sums, slopes, tile, in_tile);
      if constexpr (OfKeys) {
        add_products<Storage, Dim, part>(sums2, weights, tile2, in_tile);
      }
    }
    stage ^= 1;
  }

  const float bad = unfinished(sums, warp_row, rows) + unfinished(sums2, warp_row, rows);
  if (__syncthreads_or(bad != 0)) {
    plain_backward<Storage, OfKeys, Tiles::rows>(call, at, shared);
    return;
  }
  const float scale = static_cast<float>(call.scale);
  store_rows<Storage, Dim>(OfKeys ? call.dk : call.dq, at.batch, at.head, warp_row, rows, call.dim,
                           vectors, sums, scale, scale, row_tile + tile_row * stride);
  if constexpr (OfKeys) {
    store_rows<Storage, Dim>(call.dv, at.batch, at.head, warp_row, rows, call.dim, vectors, sums2,
                             1.0f, 1.0f, row2_tile + tile_row * stride);
  }
#endif
}

template <class Storage, int Dim, bool OfKeys>
void launch(const LocalAttention& call, void* stream) {
  using Tiles = Backward<Dim, OfKeys>;
  static_assert(Tiles::shared_bytes >= static_cast<int>(sizeof(plain::Shared<float>)));
  const auto kernel = attention_backward_kernel<Storage, Dim, OfKeys>;
  allow_shared_memory(kernel, Tiles::shared_bytes);
  bool vectors = call.dim % 8 == 0;
  for (const AttentionTensor* t :
       {&call.q, &call.k, &call.v, &call.grad, &call.out, &call.dq, &call.dk, &call.dv}) {
    vectors = vectors && on_vectors(*t);
  }
  attention_grids(call, Tiles::rows, [&](unsigned grid, std::int64_t first) {
    kernel<<<grid, kMmaThreads, Tiles::shared_bytes, static_cast<cudaStream_t>(stream)>>>(
        call, first, vectors);
  });
}

template <class Storage, int Dim>
void launch_both(const LocalAttention& call, void* stream) {
  launch<Storage, Dim, false>(call, stream);
  launch<Storage, Dim, true>(call, stream);
}

}  // namespace backward_unit

void local_attention_backward_mma(const LocalAttention& call, void* stream) {
  const bool half = call.dtype == DType::Float16;
  if (call.dim <= 64) {
    half ? launch_both<Float16, 64>(call, stream) : launch_both<BFloat16, 64>(call, stream);
  } else {
    half ? launch_both<Float16, 128>(call, stream) : launch_both<BFloat16, 128>(call, stream);
  }
}

}  // namespace fusedops
