#include "local_attention/stages.cuh"

// Compiled for 90a alone: wgmma exists on SM 9.0 and nowhere else.

namespace fusedops {
inline namespace backward_sm90a_unit {

/// A block is a warpgroup and has 64 rows: queries, whose dq it sums over keys, or keys, whose dk
/// and dv it sums over queries.
template <bool OfKeys>
struct Backward {
  static constexpr int blocks_an_sm = OfKeys ? 3 : 4;
  static constexpr int stages = OfKeys ? 3 : 2;
  static constexpr int tiles_bytes = (2 + 2 * stages) * kTileBytes;
  /// lse and delta of a stage's columns.
  static constexpr int numbers = OfKeys ? 2 * kTileRows : 0;
  static constexpr int numbers_bytes = stages * numbers * static_cast<int>(sizeof(float));
  static constexpr int shared_bytes =
      1024 + tiles_bytes + numbers_bytes + (2 * stages + 1) * static_cast<int>(sizeof(Barrier));
  static_assert(tiles_bytes >= static_cast<int>(sizeof(plain::Shared<float>)));
};

struct BackwardCall {
  LocalAttention call;
  TiledTensor q, k, v, grad;
};

/// rowsum(grad · out) of row `row`, which four lanes share.
template <class Storage>
__device__ inline float row_product(const LocalAttention& call, const AttentionPlace<int>& at,
                                    int row) {
  const Storage* grad = call.grad.matrix<Storage>(at.batch, at.head) + row * call.grad.row;
  const Storage* out = call.out.matrix<Storage>(at.batch, at.head) + row * call.out.row;
  float sum = 0;
#pragma unroll
  for (int d = threadIdx.x % 4 * 8; d < kTileDim; d += 32) {
    if (row < call.rows && d < call.dim) {
      const uint4 a = *reinterpret_cast<const uint4*>(grad + d);
      const uint4 b = *reinterpret_cast<const uint4*>(out + d);
      const unsigned pairs_a[4] = {a.x, a.y, a.z, a.w}, pairs_b[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        sum += pair_product<Storage>(pairs_a[i], pairs_b[i]);
      }
    }
  }
  sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
  return sum + __shfl_xor_sync(0xFFFFFFFFu, sum, 2);
}

/// As the kernel for all devices.
template <class Storage, bool OfKeys>
__global__ void __launch_bounds__(kGroupThreads, Backward<OfKeys>::blocks_an_sm)
    attention_backward_sm90a_kernel(const FUSEDOPS_CONSTANT BackwardCall tiled,
                                    std::int64_t first_block) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using Tiles = Backward<OfKeys>;
  extern __shared__ unsigned char dynamic[];
  // The exchange within 1,024 bytes goes by the address.
  unsigned char* shared = dynamic + (1024 - shared_address(dynamic) % 1024) % 1024;
  unsigned char* row_tile = shared;
  unsigned char* row2_tile = row_tile + kTileBytes;
  float* numbers = reinterpret_cast<float*>(shared + Tiles::tiles_bytes);
  const Stages<Tiles::stages, kGroupThreads, OfKeys> stages{
      row2_tile + kTileBytes,
      reinterpret_cast<Barrier*>(shared + Tiles::tiles_bytes + Tiles::numbers_bytes)};
  Barrier* rows_full = stages.full + 2 * Tiles::stages;

  const LocalAttention& call = tiled.call;
  const AttentionPlace<int> at(call, first_block + blockIdx.x, kTileRows);
  const int rows = static_cast<int>(call.rows);
  const int window = static_cast<int>(call.window);
  const int ahead = call.causal ? 0 : window;
  const int before = OfKeys ? ahead : window;
  const int after = OfKeys ? window : ahead;
  const int begin = max(0, at.first - before);
  const int end = min(rows, at.first + kTileRows + after);
  const int tiles = (end - begin + kTileRows - 1) / kTileRows;
  const std::int64_t matrix = (at.batch * call.heads + at.head) * call.rows;
  const float* lse = static_cast<const float*>(call.lse) + matrix;
  float* delta = static_cast<float*>(call.delta) + matrix;
  const auto load = [&](int i) {
    const int column = begin + i * kTileRows;
    if (threadIdx.x == 0) {
      stages.load(i, OfKeys ? tiled.q : tiled.k, OfKeys ? tiled.grad : tiled.v, at, column);
    }
    if (OfKeys && threadIdx.x < Tiles::numbers) {
      const int own = column + static_cast<int>(threadIdx.x) % kTileRows;
      const float* from = threadIdx.x < kTileRows ? lse : delta;
      cp_async_4(numbers + stages.place(i) * Tiles::numbers + threadIdx.x,
                 own < end ? from + own : from, own < end);
      barrier_arrive_copied(stages.full + stages.place(i));
    }
  };
  if (threadIdx.x == 0) {
    stages.init(1 + Tiles::numbers);
    barrier_init(rows_full, 1);
    barrier_init_fence();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    barrier_expect(rows_full, 2 * kTileBytes);
    load_rows(row_tile, OfKeys ? tiled.k : tiled.q, rows_full, at, at.first);
    load_rows(row2_tile, OfKeys ? tiled.v : tiled.grad, rows_full, at, at.first);
  }
  for (int i = 0; i < min(Tiles::stages, tiles); ++i) {
    load(i);
  }
  __syncwarp();
  const auto refill = [&](int i) {
    if ((OfKeys || threadIdx.x == 0) && i + Tiles::stages < tiles) {
      stages.wait_empty(i);
      load(i + Tiles::stages);
    }
    __syncwarp();
  };

  const int lane = threadIdx.x % 32;
  const int warp = warp_index();
  const int warp_row = at.first + warp * 16;
  const int warp_last = warp_row + 15;
  const float scale_log2 = static_cast<float>(call.scale) * kLog2e;
  float row_lse[2] = {}, row_delta[2] = {};
  if (!OfKeys) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = warp_row + lane / 4 + 8 * half;
      row_delta[half] = row_product<Storage>(call, at, row);
      if (row < rows) {
        row_lse[half] = lse[row] * kLog2e;
        if (call.grad_lse != nullptr) {
          row_delta[half] -= static_cast<const float*>(call.grad_lse)[matrix + row];
        }
        if (lane % 4 == 0) {
          delta[row] = row_delta[half];
        }
      }
    }
  }
  barrier_wait(rows_full, 0);
  const std::uint64_t row_factor = wgmma_descriptor<true>(row_tile);
  const std::uint64_t row2_factor = wgmma_descriptor<true>(row2_tile);
  const std::uint64_t columns = wgmma_descriptor<true>(stages.tiles);
  const std::uint64_t columns2 = wgmma_descriptor<true>(stages.tiles + kTileBytes);
  const std::uint64_t turned = wgmma_descriptor<false>(stages.tiles);
  const std::uint64_t turned2 = wgmma_descriptor<false>(stages.tiles + kTileBytes);
  float sums[kTileDim / 8][4], sums2[kTileDim / 8][4];
  clear(sums);
  clear(sums2);

  // Beside its purpose, a branch: without one the compiler would wait for all products before the
  // weights.
  const auto await_next = [&](int i) {
    if (i + 1 < tiles) {
      stages.wait(i + 1);
    }
  };

  stages.wait(0);
#pragma unroll 1
  for (int i = 0; i < tiles; ++i) {
    float weights[kTileRows / 8][4], slopes[kTileRows / 8][4];
    wgmma_fence();
    tile_products<Storage>(weights, row_factor, stages.at(columns, i));
    wgmma_commit();
    tile_products<Storage>(slopes, row2_factor, stages.at(columns2, i));
    wgmma_commit();
    wgmma_wait<1>();
    wgmma_results(weights);
    const int column = begin + i * kTileRows;
    const int last = column + kTileRows - 1;
    const bool masked = column < warp_last - before || last > warp_row + after || last >= rows;
    const float* own = numbers + stages.place(i) * Tiles::numbers;
    weigh_again<OfKeys>(weights, row_lse, own, scale_log2, {warp_row, column, before, after, rows},
                        masked);
    wgmma_results(weights);
    await_next(i);
    wgmma_wait<0>();
    wgmma_results(slopes);
    to_slopes<OfKeys>(slopes, weights, row_delta, own + kTileRows);
    unsigned packed[kTileRows / 16][4], packed2[kTileRows / 16][4];
#pragma unroll
    for (int n = 0; n < kTileRows / 16; ++n) {
      pack_a<Storage>(packed[n], slopes, n);
      pack_a<Storage>(packed2[n], weights, n);
    }
    wgmma_fence();
    add_tile_products<Storage>(sums, packed, stages.at(turned, i));
    if constexpr (OfKeys) {
      add_tile_products<Storage>(sums2, packed2, stages.at(turned2, i));
    }
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_results(sums);
    wgmma_results(sums2);
    stages.release(i);
    refill(i);
  }

  const float bad = unfinished(sums, warp_row, rows) + unfinished(sums2, warp_row, rows);
  if (__syncthreads_or(bad != 0)) {
    if (threadIdx.x < plain::kThreads) {
      plain_backward<Storage, OfKeys, kTileRows>(call, at, shared);
    }
    return;
  }
  const float scale = static_cast<float>(call.scale);
  Storage* staged = reinterpret_cast<Storage*>(shared) + warp * 16 * kTileStride<kTileDim>;
  store_rows<Storage, kTileDim>(OfKeys ? call.dk : call.dq, at.batch, at.head, warp_row, rows,
                                call.dim, true, sums, scale, scale, staged);
  if constexpr (OfKeys) {
    store_rows<Storage, kTileDim>(call.dv, at.batch, at.head, warp_row, rows, call.dim, true, sums2,
                                  1.0f, 1.0f, staged);
  }
#endif
}

template <class Storage, bool OfKeys>
void launch(const BackwardCall& tiled, void* stream) {
  using Tiles = Backward<OfKeys>;
  const auto kernel = attention_backward_sm90a_kernel<Storage, OfKeys>;
  allow_shared_memory(kernel, Tiles::shared_bytes);
  attention_grids(tiled.call, kTileRows, [&](unsigned grid, std::int64_t first) {
    kernel<<<grid, kGroupThreads, Tiles::shared_bytes, static_cast<cudaStream_t>(stream)>>>(tiled,
                                                                                            first);
  });
}

template <class Storage>
void launch_both(const BackwardCall& tiled, void* stream) {
  launch<Storage, false>(tiled, stream);
  launch<Storage, true>(tiled, stream);
}

}  // namespace backward_sm90a_unit

bool local_attention_backward_sm90a(const LocalAttention& call, void* stream) {
  bool fits = on_sm90() && call.dim <= kTileDim && call.dim % 8 == 0;
  for (const AttentionTensor* t :
       {&call.q, &call.k, &call.v, &call.grad, &call.out, &call.dq, &call.dk, &call.dv}) {
    fits = fits && on_vectors(*t);
  }
  BackwardCall tiled{call, {}, {}, {}, {}};
  if (!fits || !tile_tensor(tiled.q, call, call.q) || !tile_tensor(tiled.k, call, call.k) ||
      !tile_tensor(tiled.v, call, call.v) || !tile_tensor(tiled.grad, call, call.grad)) {
    return false;
  }
  if (call.dtype == DType::Float16) {
    launch_both<Float16>(tiled, stream);
  } else {
    launch_both<BFloat16>(tiled, stream);
  }
  return true;
}

}  // namespace fusedops
