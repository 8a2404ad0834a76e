#include "common/hopper.cuh"
#include "matmul/tile.cuh"

// Compiled for 90a alone: wgmma, setmaxnreg and multicast copies exist on SM 9.0 and nowhere else.

namespace fusedops {
inline namespace matmul_sm90a_unit {

constexpr int kTileM = 128, kTileN = 256, kTileK = 64;
constexpr int kStages = 4;
constexpr int kGroup = 128;           // threads of a warpgroup
constexpr int kThreads = 3 * kGroup;  // one copies, two multiply 64 rows each
constexpr int kRowBytes = 128;        // of shared memory, what is exchanged among itself
constexpr int kStageBytesA = kTileM * kRowBytes, kStageBytesB = kTileN * kRowBytes;
constexpr int kStageBytes = kStageBytesA + kStageBytesB;
constexpr int kSharedBytes = 1024 + kStages * kStageBytes + 2 * kStages * sizeof(Barrier);

/// One factor as the TMA unit sees it: {k, rows} or {rows, k} by what is contiguous, then the
/// batch's dimensions, of which those that are broadcast have one element here.
struct Factor {
  CUtensorMap map;
  int batch_moves[kBatchDims];  // 0 where broadcast
};

/// Rows of one box of a factor whose k is contiguous; else boxes are 64 rows × 64 of k.
template <bool KMajor, int Rows>
constexpr int kBoxRows = KMajor ? Rows : 64;

/// Begins the copies of `Rows` rows × 64 of k to shared memory. `ranks`: to these blocks of the
/// cluster, or 0 for this one alone.
template <bool KMajor, int Rows>
__device__ inline void load_factor(char* shared, const Factor& factor, Barrier* barrier, int row,
                                   int k, int outer, int inner, unsigned short ranks) {
#pragma unroll
  for (int i = 0; i < Rows; i += kBoxRows<KMajor, Rows>) {
    const TensorPlace place{{KMajor ? k : row + i, KMajor ? row + i : k,
                             inner * factor.batch_moves[1], outer * factor.batch_moves[0]}};
    if (ranks == 0) {
      tensor_load(shared + i * kRowBytes, factor.map, barrier, place);
    } else {
      tensor_load(shared + i * kRowBytes, factor.map, barrier, place, ranks);
    }
  }
}

struct Ring {
  int stage = 0;
  unsigned phase = 0;

  __device__ void advance() {
    stage = stage + 1 == kStages ? 0 : stage + 1;
    phase ^= stage == 0;
  }
};

/// Writes this warp's 16 rows of sums. Four lanes have a row's columns in pairs; they exchange
/// them, so that each writes 16 bytes of four neighbouring 8 columns.
template <class Storage>
__device__ inline void store_sums(Storage* out, std::int64_t ld, int rows, int columns,
                                  bool aligned, const float (&sums)[kTileN / 2]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = half * 8 + lane / 4;
#pragma unroll
    for (int n = 0; n < kTileN / 8; n += 4) {
      unsigned pairs[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float* pair = sums + (n + i) * 4 + half * 2;
        pairs[i] = pack<Storage>(pair[0], pair[1]);
      }
      transpose_quad(pairs);
      const int column = (n + lane % 4) * 8;
      Storage* to = out + row * ld + column;
      if (aligned && row < rows && column < columns) {
        *reinterpret_cast<uint4*>(to) = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
      } else if (!aligned && row < rows) {
#pragma unroll
        for (int e = 0; e < 8; ++e) {
          if (column + e < columns) {
            to[e] = {static_cast<std::uint16_t>(pairs[e / 2] >> (16 * (e % 2)))};
          }
        }
      }
    }
  }
}

/// A block stays on its multiprocessor and makes one tile after another. One thread of the first
/// warpgroup keeps the ring of stages in shared memory filled; the other two each multiply half of
/// the tile's rows by all its columns out of it, with their sums in registers, and write them while
/// the ring fills for the next tile. Blocks of a cluster make tiles of the same columns: each
/// copies its part of them, to all.
template <class Storage, bool AKMajor, bool BKMajor, int Cluster>
__global__ void __launch_bounds__(kThreads, 1) __cluster_dims__(Cluster, 1, 1)
    wgmma_kernel(Tiling tiling, const __grid_constant__ Factor a, const __grid_constant__ Factor b,
                 Storage* out, std::int64_t tiles, bool aligned) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ char dynamic[];
  // The exchange within 1,024 bytes goes by the address.
  char* shared = dynamic + (1024 - shared_address(dynamic) % 1024) % 1024;
  auto* full = reinterpret_cast<Barrier*>(shared + kStages * kStageBytes);
  Barrier* empty = full + kStages;
  const unsigned rank = Cluster > 1 ? cluster_rank() : 0;
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      barrier_init(full + i, 1);
      barrier_init(empty + i, Cluster * 2 * kGroup / 32);
    }
    barrier_init_fence();
  }
  if (Cluster > 1) {
    cluster_sync();
  } else {
    __syncthreads();
  }

  const std::int64_t first = blockIdx.x / Cluster, step = gridDim.x / Cluster;
  const int depth = static_cast<int>((tiling.k + kTileK - 1) / kTileK);
  const int group = static_cast<int>(threadIdx.x) / kGroup;
  const auto row_of = [&](const TilePlace& place) {
    return (static_cast<std::int64_t>(place.m) * Cluster + rank) * kTileM;
  };
  Ring ring;
  if (group == 0) {
    give_registers<40>();
    if (threadIdx.x == 0) {
      constexpr int share = kTileN / Cluster;
      constexpr unsigned short all = Cluster > 1 ? (1 << Cluster) - 1 : 0;
      for (std::int64_t tile = first; tile < tiles; tile += step) {
        const TilePlace place = tile_place<16 / Cluster>(tiling, tile);
        const int outer = static_cast<int>(place.batch / tiling.inner_batch);
        const int inner = static_cast<int>(place.batch - outer * tiling.inner_batch);
        const int row_a = static_cast<int>(row_of(place));
        const int row_b = static_cast<int>(place.n * kTileN + rank * share);
        for (int k = 0; k < depth; ++k) {
          char* stage = shared + ring.stage * kStageBytes;
          barrier_wait(empty + ring.stage, ring.phase ^ 1);
          barrier_expect(full + ring.stage, kStageBytes);
          load_factor<AKMajor, kTileM>(stage, a, full + ring.stage, row_a, k * kTileK, outer, inner,
                                       0);
          load_factor<BKMajor, share>(stage + kStageBytesA + rank * share * kRowBytes, b,
                                      full + ring.stage, row_b, k * kTileK, outer, inner, all);
          ring.advance();
        }
      }
    }
    __syncwarp();
  } else {
    take_registers<232>();
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp_row = (group - 1) * 64 + static_cast<int>(threadIdx.x) % kGroup / 32 * 16;
    const auto release = [&](int stage) {
      if (lane < Cluster) {
        barrier_arrive(empty + stage, lane);
      }
    };
    for (std::int64_t tile = first; tile < tiles; tile += step) {
      float sums[kTileN / 2];
      for (int k = 0; k < depth; ++k) {
        const char* stage = shared + ring.stage * kStageBytes;
        const auto from_a = wgmma_descriptor<AKMajor>(stage + (group - 1) * 64 * kRowBytes);
        const auto from_b = wgmma_descriptor<BKMajor>(stage + kStageBytesA);
        barrier_wait(full + ring.stage, ring.phase);
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < kTileK / 16; ++i) {
          // 16 of k are 32 bytes of each row, or 16 rows; the descriptor counts in 16 bytes.
          wgmma_m64n256k16<Storage, AKMajor, BKMajor>(sums, from_a + i * (AKMajor ? 2 : 128),
                                                      from_b + i * (BKMajor ? 2 : 128),
                                                      k > 0 || i > 0);
        }
        wgmma_commit();
        wgmma_wait<0>();  // meanwhile the other warpgroup's products keep the tensor cores busy
        release(ring.stage);
        ring.advance();
      }
      wgmma_results(sums);
      const TilePlace place = tile_place<16 / Cluster>(tiling, tile);
      const std::int64_t row = row_of(place) + warp_row;
      const std::int64_t column = static_cast<std::int64_t>(place.n) * kTileN;
      store_sums(out + (place.batch * tiling.m + row) * tiling.n + column, tiling.n,
                 clip_to_int(tiling.m - row), clip_to_int(tiling.n - column), aligned, sums);
    }
  }
  if (Cluster > 1) {
    cluster_sync();  // a block that has ended can be neither copied to nor arrived at
  }
#endif
}

/// Whether the TMA unit can address `operand`; `factor` is then how.
bool make_factor(const MatmulOperand& operand, const MatmulParams& params, std::int64_t rows,
                 int box_rows, Factor& factor) {
  constexpr std::int64_t element = 2;
  const std::uint64_t inner = operand.k_major ? params.k : rows;
  const std::uint64_t outer = operand.k_major ? rows : params.k;
  if (!whole_vectors(operand, 0, element) || (outer > 1 && operand.ld == 0)) {
    return false;
  }
  // A dimension of one element needs a step all the same.
  const std::uint64_t line = outer > 1 ? operand.ld * element : 16;
  std::uint64_t sizes[4] = {inner, outer, 1, 1}, steps[3] = {line, line, line};
  for (int d = 0; d < kBatchDims; ++d) {
    factor.batch_moves[d] = operand.batch_stride[d] != 0;
    if (factor.batch_moves[d] != 0) {
      sizes[3 - d] = params.batch[d];
      steps[2 - d] = operand.batch_stride[d] * element;
    }
  }
  const std::uint32_t box[4] = {64, operand.k_major ? static_cast<std::uint32_t>(box_rows) : 64, 1,
                                1};
  return encode_tensor_map(factor.map, params.dtype == DType::BFloat16, operand.data, sizes, steps,
                           box);
}

template <class Storage, bool AKMajor, bool BKMajor, int Cluster>
bool launch_wgmma(const MatmulParams& params, int multiprocessors, cudaStream_t stream) {
  Factor a, b;
  if (!make_factor(params.a, params, params.m, kTileM, a) ||
      !make_factor(params.b, params, params.n, kTileN / Cluster, b)) {
    return false;
  }
  const Tiling tiling = tiling_of(params, kTileM * Cluster, kTileN);
  const std::int64_t tiles = tile_count(tiling, params);
  const auto out = static_cast<Storage*>(params.out);
  const bool aligned = params.n % 8 == 0 && reinterpret_cast<std::uintptr_t>(out) % 16 == 0;
  const auto kernel = wgmma_kernel<Storage, AKMajor, BKMajor, Cluster>;
  allow_shared_memory(kernel, kSharedBytes);
  const auto blocks =
      static_cast<unsigned>(std::min<std::int64_t>(tiles, multiprocessors / Cluster) * Cluster);
  kernel<<<blocks, kThreads, kSharedBytes, stream>>>(tiling, a, b, out, tiles, aligned);
  check_launch();
  return true;
}

constexpr int kCluster = 2;

template <class Storage>
bool launch_wgmma_of(const MatmulParams& params, int multiprocessors, cudaStream_t stream) {
  const auto launch = params.a.k_major   ? params.b.k_major
                                               ? launch_wgmma<Storage, true, true, kCluster>
                                               : launch_wgmma<Storage, true, false, kCluster>
                        : params.b.k_major ? launch_wgmma<Storage, false, true, kCluster>
                                         : launch_wgmma<Storage, false, false, kCluster>;
  return launch(params, multiprocessors, stream);
}

/// These tiles are worth their size where clusters of them occupy half of the multiprocessors, and
/// are more than half filled.
bool worth_it(const MatmulParams& params, int multiprocessors) {
  constexpr std::int64_t rows = kTileM * kCluster, columns = kTileN;
  const Tiling tiling = tiling_of(params, rows, columns);
  const std::int64_t padded = tiling.tiles_m * rows * tiling.tiles_n * columns;
  return 2 * kCluster * tile_count(tiling, params) >= multiprocessors &&
         2 * params.m * params.n > padded;
}

}  // namespace matmul_sm90a_unit

bool matmul_sm90a_cuda(const MatmulParams& params, void* stream) {
  const int multiprocessors = device_attribute(cudaDevAttrMultiProcessorCount);
  constexpr std::int64_t most = std::int64_t{1} << 31;
  const bool addressable = params.m < most && params.n < most && params.k < most &&
                           params.batch[0] < most && params.batch[1] < most;
  if (!on_sm90() || params.k == 0 || !addressable || !worth_it(params, multiprocessors)) {
    return false;
  }
  const auto on = static_cast<cudaStream_t>(stream);
  return params.dtype == DType::Float16 ? launch_wgmma_of<Float16>(params, multiprocessors, on)
                                        : launch_wgmma_of<BFloat16>(params, multiprocessors, on);
}

}  // namespace fusedops
