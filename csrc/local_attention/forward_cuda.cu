#include "local_attention/weights.cuh"

namespace fusedops {
inline namespace forward_unit {

/// A block's four warps have 16 · fragments queries each, and take `columns` keys at a time.
template <int Dim>
struct Forward {
  /// Two fragments of rows share what is read of a tile, where registers hold them.
  static constexpr int fragments = Dim <= 64 ? 2 : 1;
  static constexpr int rows = 16 * fragments * kMmaWarps;
  static constexpr int columns = 64;
  static constexpr int blocks_an_sm = 2;
  /// Queries, then two stages of keys and of values.
  static constexpr int shared_bytes = (rows + 4 * columns) * kTileStride<Dim> * 2;
};

/// A tile of keys and values, for one warp.
template <class Storage, int Dim>
__device__ inline void meet_tile(const unsigned (&q)[Forward<Dim>::fragments][Dim / 16][4],
                                 const Storage* keys, const Storage* values,
                                 Running<Dim> (&running)[Forward<Dim>::fragments], float scale_log2,
                                 Mask mask, bool masked) {
  constexpr int fragments = Forward<Dim>::fragments;
  constexpr int columns = Forward<Dim>::columns;
  float s[fragments][columns / 8][4];
#pragma unroll
  for (int f = 0; f < fragments; ++f) {
    clear(s[f]);
  }
#pragma unroll
  for (int d = 0; d < Dim / 16; ++d) {
#pragma unroll
    for (int n = 0; n < columns / 16; ++n) {
      unsigned b[4];
      load_b_turned<Dim>(b, keys, 16 * n, 16 * d);
#pragma unroll
      for (int f = 0; f < fragments; ++f) {
        mma_m16n8k16<Storage>(s[f][2 * n], q[f][d], b[0], b[1]);
        mma_m16n8k16<Storage>(s[f][2 * n + 1], q[f][d], b[2], b[3]);
      }
    }
  }
  // The accumulators of two products are, rounded, a fragment `a` of the next.
  unsigned p[fragments][columns / 16][4];
#pragma unroll
  for (int f = 0; f < fragments; ++f) {
    float factors[2];
    weigh(s[f], running[f], factors, scale_log2, mask, masked);
    rescale(running[f], factors);
    mask.first_row += 16;
#pragma unroll
    for (int n = 0; n < columns / 16; ++n) {
      pack_a<Storage>(p[f][n], s[f], n);
    }
  }
#pragma unroll
  for (int n = 0; n < columns / 16; ++n) {
#pragma unroll
    for (int d = 0; d < Dim / 16; ++d) {
      unsigned b[4];
      load_b<Dim>(b, values, 16 * n, 16 * d);
#pragma unroll
      for (int f = 0; f < fragments; ++f) {
        mma_m16n8k16<Storage>(running[f].out[2 * d], p[f][n], b[0], b[1]);
        mma_m16n8k16<Storage>(running[f].out[2 * d + 1], p[f][n], b[2], b[3]);
      }
    }
  }
}

/// Reads a block of queries once, and of keys and values what the block meets; writes out and lse.
template <class Storage, int Dim>
__global__ void __launch_bounds__(kMmaThreads, Forward<Dim>::blocks_an_sm)
    attention_forward_kernel(const FUSEDOPS_CONSTANT LocalAttention call, std::int64_t first_block,
                             bool vectors) {
#if __CUDA_ARCH__ >= 800
  using Tiles = Forward<Dim>;
  constexpr int fragments = Tiles::fragments;
  constexpr int stride = kTileStride<Dim>;
  extern __shared__ __align__(16) unsigned char shared[];
  Storage* queries = reinterpret_cast<Storage*>(shared);
  Storage* keys = queries + Tiles::rows * stride;
  Storage* values = keys + 2 * Tiles::columns * stride;

  const AttentionPlace<int> at(call, first_block + blockIdx.x, Tiles::rows);
  const int first = at.first;
  const int rows = static_cast<int>(call.rows);
  const int before = static_cast<int>(call.window);
  const int after = call.causal ? 0 : before;
  const int begin = max(0, first - before);
  const int end = min(rows, first + Tiles::rows + after);
  const Storage* k = call.k.matrix<Storage>(at.batch, at.head);
  const Storage* v = call.v.matrix<Storage>(at.batch, at.head);
  const auto load = [&](int column, int stage) {
    load_tile<Dim, Tiles::columns>(keys + stage * Tiles::columns * stride, k, call.k.row, column,
                                   end, call.dim, vectors);
    load_tile<Dim, Tiles::columns>(values + stage * Tiles::columns * stride, v, call.v.row, column,
                                   end, call.dim, vectors);
    cp_async_commit();
  };
  load_tile<Dim, Tiles::rows>(queries, call.q.matrix<Storage>(at.batch, at.head), call.q.row, first,
                              rows, call.dim, vectors);
  load(begin, 0);
  cp_async_wait<0>();
  __syncthreads();

  const int warp = threadIdx.x / 32;
  const int warp_row = first + warp * 16 * fragments;
  const int warp_last = warp_row + 16 * fragments - 1;
  // Maxima are of unscaled scores, which a negative scale would turn round.
  const unsigned sign = call.scale < 0 ? 0x80008000u : 0;
  const float scale_log2 = fabsf(static_cast<float>(call.scale)) * kLog2e;
  unsigned q[fragments][Dim / 16][4];
  Running<Dim> running[fragments];
#pragma unroll
  for (int f = 0; f < fragments; ++f) {
#pragma unroll
    for (int d = 0; d < Dim / 16; ++d) {
      load_a<Dim>(q[f][d], queries, (warp * fragments + f) * 16, 16 * d);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        q[f][d][e] ^= sign;
      }
    }
    begin_rows(running[f]);
  }

  int stage = 0;
  for (int column = begin; column < end; column += Tiles::columns) {
    // The next tile arrives while this one is used; the barrier frees its place, too.
    cp_async_wait<0>();
    __syncthreads();
    if (column + Tiles::columns < end) {
      load(column + Tiles::columns, stage ^ 1);
    }
    const int last = column + Tiles::columns - 1;
    if (column <= warp_last + after && last >= warp_row - before) {
      const bool masked = column < warp_last - before || last > warp_row + after || last >= rows;
      meet_tile<Storage, Dim>(q, keys + stage * Tiles::columns * stride,
                              values + stage * Tiles::columns * stride, running, scale_log2,
                              {warp_row, column, before, after, rows}, masked);
    }
    stage ^= 1;
  }

  float bad = 0;
#pragma unroll
  for (int f = 0; f < fragments; ++f) {
    bad += end_rows(running[f], call, at, warp_row + 16 * f, scale_log2);
  }
  if (__syncthreads_or(bad != 0)) {
    plain_forward<Storage, Tiles::rows>(call, at, shared);
    return;
  }
#pragma unroll
  for (int f = 0; f < fragments; ++f) {
    store_rows<Storage, Dim>(call.out, at.batch, at.head, warp_row + 16 * f, rows, call.dim,
                             vectors, running[f].out, running[f].total[0], running[f].total[1],
                             queries + (warp * fragments + f) * 16 * stride);
  }
#endif
}

template <class Storage, int Dim>
void launch(const LocalAttention& call, void* stream) {
  using Tiles = Forward<Dim>;
  static_assert(Tiles::shared_bytes >= static_cast<int>(sizeof(plain::Shared<float>)));
  const auto kernel = attention_forward_kernel<Storage, Dim>;
  allow_shared_memory(kernel, Tiles::shared_bytes);
  const bool vectors = call.dim % 8 == 0 && on_vectors(call.q) && on_vectors(call.k) &&
                       on_vectors(call.v) && on_vectors(call.out);
  attention_grids(call, Tiles::rows, [&](unsigned grid, std::int64_t first) {
    kernel<<<grid, kMmaThreads, Tiles::shared_bytes, static_cast<cudaStream_t>(stream)>>>(
        call, first, vectors);
  });
}

}  // namespace forward_unit

void local_attention_forward_mma(const LocalAttention& call, void* stream) {
  const bool half = call.dtype == DType::Float16;
  if (call.dim <= 64) {
    half ? launch<Float16, 64>(call, stream) : launch<BFloat16, 64>(call, stream);
  } else {
    half ? launch<Float16, 128>(call, stream) : launch<BFloat16, 128>(call, stream);
  }
}

}  // namespace fusedops
