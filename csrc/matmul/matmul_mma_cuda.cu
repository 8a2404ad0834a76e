#include <array>
#include <atomic>

#include "common/mma.cuh"
#include "matmul/mma_stage.cuh"
#include "matmul/tile.cuh"

namespace fusedops {
inline namespace matmul_mma_unit {

/// The launch: block tiles of M × N, warps of WarpM × WarpN in it, and how many stages of operands
/// are on their way to shared memory at one time.
template <int M_, int N_, int WarpM_, int WarpN_, int Stages_>
struct MmaShape {
  static constexpr int M = M_, N = N_, WarpM = WarpM_, WarpN = WarpN_, Stages = Stages_;
  static constexpr int warps_m = M / WarpM, warps_n = N / WarpN;
  static constexpr int threads = 32 * warps_m * warps_n;
  static constexpr int stage_chunks = (M + N) * kDepth / kChunk;
  static constexpr int shared_bytes = Stages * stage_chunks * 16;
};

/// Fragments of 16 rows × 16 k: as the first factor of mma_m16n8k16 takes them, or, with `Second`,
/// as the second factors of two, of 8 rows each.
template <int Rows, bool KMajor, bool Second>
__device__ inline void load_fragment(unsigned (&fragment)[4], const uint4* stage, int row, int k) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int matrix = lane / 8, r = lane % 8;
  // Matrices 0 to 3 of `a` go through the rows first, those of `b` through k first.
  const int row_part = Second ? matrix >> 1 : matrix & 1;
  const int k_part = Second ? matrix & 1 : matrix >> 1;
  using Layout = StageLayout<Rows, KMajor>;
  if constexpr (KMajor) {
    ldmatrix_x4(fragment, stage + Layout::chunk(row + row_part * 8 + r, k + k_part * 8));
  } else {
    ldmatrix_x4_trans(fragment, stage + Layout::chunk(row + row_part * 8, k + k_part * 8 + r));
  }
}

/// Writes the warps' sums to `out`, the tile's first element, by way of shared memory, so that
/// whole rows of the tile are written at a time.
template <class Storage, class Shape, int WarpM, int WarpN>
__device__ inline void store_tile(Storage* out, std::int64_t ld, int rows, int columns,
                                  bool aligned, int row_m, int row_n, uint4* tile,
                                  const float (&sums)[WarpM][WarpN][4]) {
  constexpr int in_row = Shape::N / kChunk;
  const auto place = [](int row, int chunk) { return row * in_row + (chunk ^ (row & 7)); };
  const int lane = static_cast<int>(threadIdx.x) % 32;
  __syncthreads();  // the last fragments are loaded
#pragma unroll
  for (int m = 0; m < WarpM; ++m) {
#pragma unroll
    for (int n = 0; n < WarpN; ++n) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int chunk = place(row_m + m * 16 + half * 8 + lane / 4, row_n / kChunk + n);
        reinterpret_cast<unsigned*>(tile + chunk)[lane % 4] =
            pack<Storage>(sums[m][n][half * 2], sums[m][n][half * 2 + 1]);
      }
    }
  }
  __syncthreads();
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < Shape::M * in_row; i += Shape::threads) {
    const int row = i / in_row, column = i % in_row * kChunk;
    const uint4* from = tile + place(row, i % in_row);
    Storage* to = out + row * ld + column;
    if (row < rows && aligned && column < columns) {
      *reinterpret_cast<uint4*>(to) = *from;
    } else if (row < rows && !aligned) {
      for (int e = 0; e < kChunk && column + e < columns; ++e) {
        to[e] = reinterpret_cast<const Storage*>(from)[e];
      }
    }
  }
}

/// One tile of the product a block. Operands pass through a ring of stages in shared memory; each
/// warp multiplies its part of the tile out of them, the fragments of the next 16 k being loaded
/// while those at hand are multiplied.
template <class Storage, class Shape, bool AKMajor, bool BKMajor, class LoaderA, class LoaderB>
__device__ inline void mma_tile(Storage* out, const Tiling& tiling, std::int64_t first_m,
                                std::int64_t first_n, bool aligned, LoaderA& a, LoaderB& b) {
  extern __shared__ uint4 stages[];
  constexpr int warp_m = Shape::WarpM / 16, warp_n = Shape::WarpN / 8, steps = kDepth / 16;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int row_m = warp % Shape::warps_m * Shape::WarpM;
  const int row_n = warp / Shape::warps_m * Shape::WarpN;
  const auto stage_of = [&](int i) { return stages + i * Shape::stage_chunks; };
  const std::int64_t depth = (tiling.k + kDepth - 1) / kDepth;

  std::int64_t loaded = 0;
  const auto load = [&](int to) {
    if (loaded < depth) {
      a.load(stage_of(to));
      b.load(stage_of(to) + StageLayout<Shape::M, AKMajor>::chunks);
    }
    cp_async_commit();  // also of nothing: waits count groups
    ++loaded;
  };
  unsigned fragment_a[2][warp_m][4], fragment_b[2][warp_n / 2][4];
  const auto load_fragments = [&](int to, const uint4* stage, int k) {
#pragma unroll
    for (int i = 0; i < warp_m; ++i) {
      load_fragment<Shape::M, AKMajor, false>(fragment_a[to][i], stage, row_m + i * 16, k);
    }
    stage += StageLayout<Shape::M, AKMajor>::chunks;
#pragma unroll
    for (int i = 0; i < warp_n / 2; ++i) {
      load_fragment<Shape::N, BKMajor, true>(fragment_b[to][i], stage, row_n + i * 16, k);
    }
  };

  float sums[warp_m][warp_n][4] = {};
  if (depth > 0) {
    for (int i = 0; i < Shape::Stages - 1; ++i) {
      load(i);
    }
    cp_async_wait<Shape::Stages - 2>();
    __syncthreads();
    load_fragments(0, stage_of(0), 0);
  }
  int stage = 0;
  for (std::int64_t i = 0; i < depth; ++i) {
    const int next = stage + 1 == Shape::Stages ? 0 : stage + 1;
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      if (step == 0) {
        load(stage == 0 ? Shape::Stages - 1 : stage - 1);  // left by all at the last barrier
      }
      if (step + 1 == steps) {
        cp_async_wait<Shape::Stages - 2>();
        __syncthreads();
      }
      const bool same = step + 1 < steps;
      load_fragments((step + 1) % 2, stage_of(same ? stage : next), same ? (step + 1) * 16 : 0);
#pragma unroll
      for (int m = 0; m < warp_m; ++m) {
#pragma unroll
        for (int n = 0; n < warp_n; ++n) {
          const auto& pair = fragment_b[step % 2][n / 2];
          mma_m16n8k16<Storage>(sums[m][n], fragment_a[step % 2][m], pair[n % 2 * 2],
                                pair[n % 2 * 2 + 1]);
        }
      }
    }
    stage = next;
  }

  store_tile<Storage, Shape>(out + first_m * tiling.n + first_n, tiling.n,
                             clip_to_int(tiling.m - first_m), clip_to_int(tiling.n - first_n),
                             aligned, row_m, row_n, stages, sums);
}

template <class Storage, class Shape, bool AKMajor, bool BKMajor, class LoaderA, class LoaderB>
__device__ inline void mma_block(const Tiling& tiling, const Operand<Storage>& a,
                                 const Operand<Storage>& b, Storage* out, std::int64_t tile,
                                 bool aligned) {
  const TilePlace place = tile_place<16>(tiling, tile);
  const std::int64_t m = static_cast<std::int64_t>(place.m) * Shape::M;
  const std::int64_t n = static_cast<std::int64_t>(place.n) * Shape::N;
  LoaderA load_a(rows_of(a, tiling, place.batch, m), a, tiling.m - m, tiling.k);
  LoaderB load_b(rows_of(b, tiling, place.batch, n), b, tiling.n - n, tiling.k);
  mma_tile<Storage, Shape, AKMajor, BKMajor>(out + place.batch * tiling.m * tiling.n, tiling, m, n,
                                             aligned, load_a, load_b);
}

template <class Storage, class Shape, bool AKMajor, bool BKMajor>
__global__ void __launch_bounds__(Shape::threads)
    mma_kernel(Tiling tiling, Operand<Storage> a, Operand<Storage> b, Storage* out,
               std::int64_t first, bool aligned) {
#if __CUDA_ARCH__ >= 800
  mma_block<Storage, Shape, AKMajor, BKMajor,
            VectorLoader<Storage, Shape::M, AKMajor, Shape::threads>,
            VectorLoader<Storage, Shape::N, BKMajor, Shape::threads>>(tiling, a, b, out,
                                                                      first + blockIdx.x, aligned);
#endif
}

template <class Storage, class Shape>
__global__ void __launch_bounds__(Shape::threads)
    mma_elements_kernel(Tiling tiling, Operand<Storage> a, Operand<Storage> b, Storage* out,
                        std::int64_t first, bool aligned) {
#if __CUDA_ARCH__ >= 800
  mma_block<Storage, Shape, true, true, ElementLoader<Storage, Shape::M, Shape::threads>,
            ElementLoader<Storage, Shape::N, Shape::threads>>(tiling, a, b, out, first + blockIdx.x,
                                                              aligned);
#endif
}

/// Two blocks of four warps share a multiprocessor; each warp's 64 × 64 keep 4 KiB of fragments for
/// 32 products, which shared memory can bring as fast as the tensor cores take them.
using LargeTiles = MmaShape<128, 128, 64, 64, 3>;
/// For results of few tiles, to be spread over more multiprocessors.
using SmallTiles = MmaShape<64, 64, 32, 32, 4>;

template <class Storage>
using MmaKernel = void (*)(Tiling, Operand<Storage>, Operand<Storage>, Storage*, std::int64_t,
                           bool);

template <class Storage, class Shape>
void launch_mma(MmaKernel<Storage> kernel, const MatmulParams& params, cudaStream_t stream) {
  const Tiling tiling = tiling_of(params, Shape::M, Shape::N);
  const auto a = operand_of<Storage>(params.a), b = operand_of<Storage>(params.b);
  const auto out = static_cast<Storage*>(params.out);
  const bool aligned = params.n % kChunk == 0 && reinterpret_cast<std::uintptr_t>(out) % 16 == 0;
  allow_shared_memory(kernel, Shape::shared_bytes);
  launch_tiles(tile_count(tiling, params), [&](std::int64_t first, unsigned blocks) {
    kernel<<<blocks, Shape::threads, Shape::shared_bytes, stream>>>(tiling, a, b, out, first,
                                                                    aligned);
  });
}

template <class Storage, class Shape>
void launch_vectors(const MatmulParams& params, cudaStream_t stream) {
  const bool ak = params.a.k_major, bk = params.b.k_major;
  launch_mma<Storage, Shape>(
      ak   ? bk ? mma_kernel<Storage, Shape, true, true> : mma_kernel<Storage, Shape, true, false>
        : bk ? mma_kernel<Storage, Shape, false, true>
           : mma_kernel<Storage, Shape, false, false>,
      params, stream);
}

/// Whether the code that a launch on the current device would run was compiled for SM 8.0 or later:
/// a card that has tensor cores may run what was built for one that has not. Asked once a device.
bool compiled_with_tensor_cores() {
  static std::array<std::atomic<int>, 64> known{};  // 0: not asked yet
  std::atomic<int>& version = known[static_cast<std::size_t>(current_device()) % known.size()];
  if (version == 0) {
    cudaFuncAttributes attributes;
    check_cuda(cudaFuncGetAttributes(&attributes, mma_kernel<BFloat16, LargeTiles, true, true>),
               "what the CUDA kernel was compiled for is not known");
    version = attributes.ptxVersion;
  }
  return version >= 80;
}

template <class Storage>
void launch_mma_of(const MatmulParams& params, cudaStream_t stream) {
  const bool vectors =
      whole_vectors(params.a, params.a.k_major ? params.k : params.m, sizeof(Storage)) &&
      whole_vectors(params.b, params.b.k_major ? params.k : params.n, sizeof(Storage));
  // Two large tiles run on a multiprocessor at a time, and the largest cards have over a hundred.
  constexpr std::int64_t few = 192;
  if (!vectors) {
    launch_mma<Storage, LargeTiles>(mma_elements_kernel<Storage, LargeTiles>, params, stream);
  } else if (tile_count(tiling_of(params, LargeTiles::M, LargeTiles::N), params) < few) {
    launch_vectors<Storage, SmallTiles>(params, stream);
  } else {
    launch_vectors<Storage, LargeTiles>(params, stream);
  }
}

}  // namespace matmul_mma_unit

bool matmul_mma_cuda(const MatmulParams& params, void* stream) {
  if (!compiled_with_tensor_cores()) {
    return false;
  }
  if (params.dtype == DType::Float16) {
    launch_mma_of<Float16>(params, static_cast<cudaStream_t>(stream));
  } else {
    launch_mma_of<BFloat16>(params, static_cast<cudaStream_t>(stream));
  }
  return true;
}

}  // namespace fusedops
