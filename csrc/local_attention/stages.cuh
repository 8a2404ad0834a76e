#pragma once

#include "common/hopper.cuh"
#include "local_attention/weights.cuh"

// What the kernels of SM 9.0 share: tiles of 64 rows of at most 64 elements, which the TMA unit
// brings to shared memory and out of which a warpgroup multiplies.

namespace fusedops {

/// Rows of a tile, and of a warpgroup.
constexpr int kTileRows = 64;
constexpr int kTileDim = 64;
constexpr int kTileBytes = kTileRows * kTileDim * 2;
constexpr int kGroupThreads = 128;

/// A tensor as the TMA unit sees it. A dimension that is broadcast has one element there, and does
/// not move.
struct TiledTensor {
  CUtensorMap map;
  int head_moves, batch_moves;
};

/// False where the TMA unit cannot address the tensor, whose rows are on 16 bytes.
inline bool tile_tensor(TiledTensor& tiled, const LocalAttention& call, const AttentionTensor& t) {
  const auto count = [](std::int64_t size) { return static_cast<std::uint64_t>(size); };
  const auto step = [](std::int64_t elements) {
    return static_cast<std::uint64_t>(elements == 0 ? 16 : 2 * elements);
  };
  if (call.rows > 1 && t.row == 0) {
    return false;
  }
  tiled.head_moves = t.head != 0;
  tiled.batch_moves = t.batch != 0;
  return encode_tensor_map(tiled.map, call.dtype == DType::BFloat16, t.data,
                           {count(call.dim), count(call.rows), count(t.head != 0 ? call.heads : 1),
                            count(t.batch != 0 ? call.batches : 1)},
                           {step(t.row), step(t.head), step(t.batch)}, {kTileDim, kTileRows, 1, 1});
}

/// Begins the copy of the tile whose first row is `row`, zeros beyond the tensor.
__device__ inline void load_rows(unsigned char* tile, const TiledTensor& from, Barrier* barrier,
                                 const AttentionPlace<int>& at, int row) {
  tensor_load(tile, from.map, barrier,
              {{0, row, at.head * from.head_moves, at.batch * from.batch_moves}});
}

/// sums = rows · tileᵀ for a warpgroup's 64 rows, which are a tile, too.
///
/// They stay in shared memory though they are the same for every tile: ptxas 13.0 has given
/// weights, the factor in registers of the products after these, the registers that the rows were
/// kept in.
template <class Storage>
__device__ inline void tile_products(float (&sums)[8][4], std::uint64_t rows, std::uint64_t tile) {
#pragma unroll
  for (int d = 0; d < kTileDim / 16; ++d) {
    wgmma_m64n64k16<Storage, true>(sums, wgmma_advance(rows, 2 * d), wgmma_advance(tile, 2 * d),
                                   d > 0);
  }
}

/// sums += weights · tile, the weights packed.
template <class Storage>
__device__ inline void add_tile_products(float (&sums)[8][4], const unsigned (&weights)[4][4],
                                         std::uint64_t tile) {
#pragma unroll
  for (int n = 0; n < kTileRows / 16; ++n) {
    wgmma_m64n64k16<Storage, false>(sums, weights[n], wgmma_advance(tile, 128 * n), 1);
  }
}

/// A ring of pairs of tiles in shared memory. Its `full` barriers wait for the copies, `empty` ones
/// for who uses them: the warps, or each thread where threads read for themselves what lies beside
/// the tiles.
template <int Count, int Threads, bool Each = false>
struct Stages {
  unsigned char* tiles;
  Barrier* full;

  static __device__ int place(int i) { return static_cast<unsigned>(i) % Count; }
  static __device__ unsigned parity(int i) { return static_cast<unsigned>(i) / Count % 2; }
  /// Of the pair `i`, from the descriptor of the first pair's.
  static __device__ std::uint64_t at(std::uint64_t descriptor, int i) {
    return wgmma_advance(descriptor, place(i) * (2 * kTileBytes / 16));
  }

  __device__ Barrier* empty() const { return full + Count; }
  __device__ void init(unsigned arrivals) const {
    for (int i = 0; i < Count; ++i) {
      barrier_init(full + i, arrivals);
      barrier_init(empty() + i, Each ? Threads : Threads / 32);
    }
  }
  /// Begins the copies of the pair `i`, of which this is one of the arrivals.
  __device__ void load(int i, const TiledTensor& first, const TiledTensor& second,
                       const AttentionPlace<int>& at, int row) const {
    unsigned char* pair = tiles + place(i) * 2 * kTileBytes;
    barrier_expect(full + place(i), 2 * kTileBytes);
    load_rows(pair, first, full + place(i), at, row);
    load_rows(pair + kTileBytes, second, full + place(i), at, row);
  }
  __device__ void wait(int i) const { barrier_wait(full + place(i), parity(i)); }
  /// This warp, or thread, has done with the pair `i`.
  __device__ void release(int i) const {
    __syncwarp();
    if (Each || threadIdx.x % 32 == 0) {
      barrier_arrive(empty() + place(i));
    }
  }
  /// Until every one has.
  __device__ void wait_empty(int i) const { barrier_wait(empty() + place(i), parity(i)); }
};

/// This thread's warp, which the compiler then knows to be one for all of its lanes.
__device__ inline int warp_index() {
  return __shfl_sync(0xFFFFFFFFu, static_cast<int>(threadIdx.x) / 32, 0);
}

/// The tiles that a warpgroup's rows meet, of those whose columns begin at `begin`.
struct Met {
  int first, end;

  __device__ Met(int row, int rows, int before, int after, int begin, int tiles) {
    const bool any = row < rows;
    first = any ? max(0, row - before - begin) / kTileRows : 0;
    end = any ? min(tiles, (row + kTileRows - 1 + after - begin) / kTileRows + 1) : 0;
  }
};

}  // namespace fusedops
