#pragma once

#include <algorithm>
#include <cstdint>

#include "common/device.h"
#include "matmul/matmul.h"

// What the kernels of matmul share: which tile of the result a block makes, and where its operands
// lie.

namespace fusedops {

/// Element (row, k) is data[row * row_step + k * k_step]; one of the steps is 1.
template <class Storage>
struct Operand {
  const Storage* data;
  std::int64_t row_step, k_step;
  std::int64_t batch_stride[kBatchDims];
};

template <class Storage>
Operand<Storage> operand_of(const MatmulOperand& operand) {
  return {static_cast<const Storage*>(operand.data),
          operand.k_major ? operand.ld : 1,
          operand.k_major ? 1 : operand.ld,
          {operand.batch_stride[0], operand.batch_stride[1]}};
}

/// The problem as tiles: `tiles_m` × `tiles_n` for each matrix of the batch, in one line.
struct Tiling {
  std::int64_t m, n, k;
  std::int64_t inner_batch;
  unsigned tiles_m, tiles_n;
};

inline Tiling tiling_of(const MatmulParams& params, int tile_m, int tile_n) {
  return {params.m,
          params.n,
          params.k,
          params.batch[1],
          static_cast<unsigned>((params.m + tile_m - 1) / tile_m),
          static_cast<unsigned>((params.n + tile_n - 1) / tile_n)};
}

inline std::int64_t tile_count(const Tiling& tiling, const MatmulParams& params) {
  return static_cast<std::int64_t>(tiling.tiles_m) * tiling.tiles_n * params.batch[0] *
         params.batch[1];
}

struct TilePlace {
  std::int64_t batch;
  unsigned m, n;  // in tiles
};

/// Tiles run down `Group` rows of tiles before the next column, so that those in flight at one time
/// make a block of the result about as high as it is wide, and find most of what they read in L2.
template <unsigned Group>
__host__ __device__ inline TilePlace tile_place(const Tiling& tiling, std::int64_t index) {
  const std::int64_t matrix = static_cast<std::int64_t>(tiling.tiles_m) * tiling.tiles_n;
  const std::int64_t batch = index / matrix;
  const std::int64_t tile = index - batch * matrix;
  const std::int64_t strip = static_cast<std::int64_t>(Group) * tiling.tiles_n;
  const auto first = static_cast<unsigned>(tile / strip) * Group;
  const auto within = static_cast<unsigned>(tile % strip);
  const unsigned rows = tiling.tiles_m - first < Group ? tiling.tiles_m - first : Group;
  return {batch, first + within % rows, within / rows};
}

/// Row `first_row` of the batch's matrix.
template <class Storage>
__device__ inline const Storage* rows_of(const Operand<Storage>& operand, const Tiling& tiling,
                                         std::int64_t batch, std::int64_t first_row) {
  const std::int64_t outer = batch / tiling.inner_batch;
  const std::int64_t inner = batch - outer * tiling.inner_batch;
  return operand.data + outer * operand.batch_stride[0] + inner * operand.batch_stride[1] +
         first_row * operand.row_step;
}

/// Transposes the 4 × 4 registers of each four neighbouring lanes: afterwards lane q holds in
/// registers[s] what lane s held in registers[q].
__device__ inline void transpose_quad(unsigned (&registers)[4]) {
  const unsigned lane = threadIdx.x % 4;
#pragma unroll
  for (int bit = 1; bit <= 2; bit *= 2) {
    const bool high = (lane & bit) != 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if ((i & bit) == 0) {
        unsigned& low_half = registers[i];
        unsigned& high_half = registers[i | bit];
        const unsigned other = __shfl_xor_sync(0xFFFFFFFFu, high ? low_half : high_half, bit);
        (high ? low_half : high_half) = other;
      }
    }
  }
}

/// `left` may be beyond int: no tile needs to know more than that it is whole.
__host__ __device__ inline int clip_to_int(std::int64_t left) {
  return left < (1 << 30) ? static_cast<int>(left) : 1 << 30;
}

/// Whether every row of the operand's contiguous dimension is whole vectors of 16 bytes on 16.
inline bool whole_vectors(const MatmulOperand& operand, std::int64_t contiguous,
                          std::int64_t element) {
  const auto address = reinterpret_cast<std::uintptr_t>(operand.data);
  const std::int64_t steps = operand.ld | operand.batch_stride[0] | operand.batch_stride[1];
  return address % 16 == 0 && ((steps | contiguous) * element) % 16 == 0;
}

/// Calls `launch(first, blocks)` for one block a tile, in as many grids as that takes.
template <class Launch>
void launch_tiles(std::int64_t tiles, const Launch& launch) {
  constexpr std::int64_t most = 1 << 30;
  for (std::int64_t first = 0; first < tiles; first += most) {
    launch(first, static_cast<unsigned>(std::min(most, tiles - first)));
    check_launch();
  }
}

}  // namespace fusedops
