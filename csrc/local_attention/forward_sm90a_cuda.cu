#include "local_attention/stages.cuh"

// Compiled for 90a alone: wgmma exists on SM 9.0 and nowhere else.

namespace fusedops {
inline namespace forward_sm90a_unit {

/// Of a block, 64 queries each, which share what is read of keys and values.
constexpr int kGroups = 2;
constexpr int kBlocksAnSm = 2;
constexpr int kStages = 4;
constexpr int kRows = kGroups * kTileRows;
constexpr int kThreads = kGroups * kGroupThreads;
constexpr int kTilesBytes = (kGroups + 2 * kStages) * kTileBytes;
constexpr int kSharedBytes = 1024 + kTilesBytes + (2 * kStages + 1) * sizeof(Barrier);
static_assert(kStages >= 4 && kTilesBytes >= static_cast<int>(sizeof(plain::Shared<float>)));

struct ForwardCall {
  LocalAttention call;
  TiledTensor q, k, v;
};

/// As the kernel for all devices. A tile's values are added while the next tile's scores become
/// weights.
template <class Storage>
__global__ void __launch_bounds__(kThreads, kBlocksAnSm)
    attention_forward_sm90a_kernel(const FUSEDOPS_CONSTANT ForwardCall tiled,
                                   std::int64_t first_block) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ unsigned char dynamic[];
  // The exchange within 1,024 bytes goes by the address.
  unsigned char* shared = dynamic + (1024 - shared_address(dynamic) % 1024) % 1024;
  unsigned char* queries = shared;
  const Stages<kStages, kThreads> stages{shared + kGroups * kTileBytes,
                                         reinterpret_cast<Barrier*>(shared + kTilesBytes)};
  Barrier* queries_full = stages.full + 2 * kStages;

  const LocalAttention& call = tiled.call;
  const AttentionPlace<int> at(call, first_block + blockIdx.x, kRows);
  const int rows = static_cast<int>(call.rows);
  const int before = static_cast<int>(call.window);
  const int after = call.causal ? 0 : before;
  const int begin = max(0, at.first - before);
  const int end = min(rows, at.first + kRows + after);
  const int tiles = (end - begin + kTileRows - 1) / kTileRows;
  const auto load = [&](int i) { stages.load(i, tiled.k, tiled.v, at, begin + i * kTileRows); };
  if (threadIdx.x == 0) {
    stages.init(1);
    barrier_init(queries_full, 1);
    barrier_init_fence();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    barrier_expect(queries_full, kGroups * kTileBytes);
    for (int group = 0; group < kGroups; ++group) {
      load_rows(queries + group * kTileBytes, tiled.q, queries_full, at,
                at.first + group * kTileRows);
    }
    for (int i = 0; i < min(kStages, tiles); ++i) {
      load(i);
    }
  }
  __syncwarp();
  // Another tile takes the place of the one before the last, which every warp will soon have left.
  const auto refill = [&](int i) {
    if (threadIdx.x == 0 && i >= 2 && i - 2 + kStages < tiles) {
      stages.wait_empty(i - 2);
      load(i - 2 + kStages);
    }
    __syncwarp();
  };
  const auto pass = [&](int i) {
    stages.wait(i);
    stages.release(i);
    refill(i);
  };

  const int warp = warp_index();
  const int warp_row = at.first + warp * 16;
  const int warp_last = warp_row + 15;
  const Met met(at.first + warp / 4 * kTileRows, rows, before, after, begin, tiles);
  const float scale_log2 = static_cast<float>(call.scale) * kLog2e;
  barrier_wait(queries_full, 0);
  unsigned p[kTileRows / 16][4];
  Running<kTileDim> running;
  begin_rows(running);
  float s[kTileRows / 8][4], factors[2];
  const std::uint64_t q = wgmma_descriptor<true>(queries + warp / 4 * kTileBytes);
  const std::uint64_t keys = wgmma_descriptor<true>(stages.tiles);
  const std::uint64_t values = wgmma_descriptor<false>(stages.tiles + kTileBytes);
  const auto to_weights = [&](int i) {
    const int column = begin + i * kTileRows;
    const int last = column + kTileRows - 1;
    const bool masked = column < warp_last - before || last > warp_row + after || last >= rows;
    weigh(s, running, factors, scale_log2, {warp_row, column, before, after, rows}, masked);
  };
  const auto pack_weights = [&] {
#pragma unroll
    for (int n = 0; n < kTileRows / 16; ++n) {
      pack_a<Storage>(p[n], s, n);
    }
  };

  // Beside its purpose, a branch: without one the compiler would wait for the products before this
  // in place of after the weights.
  const auto await_next = [&](int i) {
    if (i + 1 < met.end) {
      stages.wait(i + 1);
    }
  };

  int i = 0;
  for (; i < met.first; ++i) {
    pass(i);
  }
  if (met.first < met.end) {
    stages.wait(i);
    wgmma_fence();
    tile_products<Storage>(s, q, stages.at(keys, i));
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_results(s);
    to_weights(i);
    pack_weights();
    await_next(i);
#pragma unroll 1
    for (++i; i < met.end; ++i) {
      wgmma_fence();
      tile_products<Storage>(s, q, stages.at(keys, i));
      wgmma_commit();
      add_tile_products<Storage>(running.out, p, stages.at(values, i - 1));
      wgmma_commit();
      wgmma_wait<1>();
      wgmma_results(s);
      to_weights(i);
      wgmma_results(s);
      await_next(i);
      wgmma_wait<0>();
      wgmma_results(running.out);
      stages.release(i - 1);
      rescale(running, factors);
      pack_weights();
      refill(i);
    }
    wgmma_fence();
    add_tile_products<Storage>(running.out, p, stages.at(values, i - 1));
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_results(running.out);
    stages.release(i - 1);
  }
  for (; i < tiles; ++i) {
    pass(i);
  }

  const float bad = end_rows(running, call, at, warp_row, scale_log2);
  if (__syncthreads_or(bad != 0)) {
    if (threadIdx.x < plain::kThreads) {
      plain_forward<Storage, kRows>(call, at, shared);
    }
    return;
  }
  store_rows<Storage, kTileDim>(call.out, at.batch, at.head, warp_row, rows, call.dim, true,
                                running.out, running.total[0], running.total[1],
                                reinterpret_cast<Storage*>(shared) + warp * 16 * kTileStride<64>);
#endif
}

template <class Storage>
void launch(const ForwardCall& tiled, void* stream) {
  const auto kernel = attention_forward_sm90a_kernel<Storage>;
  allow_shared_memory(kernel, kSharedBytes);
  attention_grids(tiled.call, kRows, [&](unsigned grid, std::int64_t first) {
    kernel<<<grid, kThreads, kSharedBytes, static_cast<cudaStream_t>(stream)>>>(tiled, first);
  });
}

}  // namespace forward_sm90a_unit

bool local_attention_forward_sm90a(const LocalAttention& call, void* stream) {
  // Maxima are of unscaled scores, which a negative scale would turn round.
  bool fits = on_sm90() && call.dim <= kTileDim && call.dim % 8 == 0 && call.scale >= 0;
  for (const AttentionTensor* t : {&call.q, &call.k, &call.v, &call.out}) {
    fits = fits && on_vectors(*t);
  }
  ForwardCall tiled{call, {}, {}, {}};
  if (!fits || !tile_tensor(tiled.q, call, call.q) || !tile_tensor(tiled.k, call, call.k) ||
      !tile_tensor(tiled.v, call, call.v)) {
    return false;
  }
  call.dtype == DType::Float16 ? launch<Float16>(tiled, stream) : launch<BFloat16>(tiled, stream);
  return true;
}

}  // namespace fusedops
