#include <type_traits>

#include "common/convert.cuh"
#include "matmul/simt_stage.cuh"
#include "matmul/tile.cuh"

namespace fusedops {
inline namespace matmul_simt_unit {

/// The launch: block tiles of M × N; warps of WarpM × WarpN in it, whose lanes stand LanesM by
/// 32 / LanesM; a stage of operands is Depth of k, and Stages of them are on their way to shared
/// memory or being read. At least Blocks of these are to run on a multiprocessor.
template <int M_, int N_, int WarpM_, int WarpN_, int LanesM_, int Depth_, int Stages_, int Blocks_>
struct SimtShape {
  static constexpr int M = M_, N = N_, WarpM = WarpM_, WarpN = WarpN_, Depth = Depth_;
  static constexpr int Stages = Stages_, Blocks = Blocks_;
  static constexpr int LanesM = LanesM_, LanesN = 32 / LanesM_;
  static constexpr int warps_m = M / WarpM, warps_n = N / WarpN;
  static constexpr int threads = 32 * warps_m * warps_n;
  static_assert(Depth % 2 == 0, "fragments of k and k + 1 alternate");
};

__device__ inline float multiply_add(float x, float y, float sum) {
  return __fmaf_rn(x, y, sum);
}
__device__ inline double multiply_add(double x, double y, double sum) {
  return __fma_rn(x, y, sum);
}

/// Of Count sums those that are within the matrix: `columns` are left of it. Where `aligned`, all
/// or none.
template <int Count, class Storage, class T>
__device__ inline void store_vector(Storage* out, const T* sums, int columns, bool aligned) {
  struct alignas(sizeof(Storage) * Count) Vector {
    Storage at[Count];
  } values;
#pragma unroll
  for (int e = 0; e < Count; ++e) {
    values.at[e] = narrow<Storage>(sums[e]);
  }
  if (aligned && columns > 0) {
    *reinterpret_cast<Vector*>(out) = values;
  } else if (!aligned) {
#pragma unroll
    for (int e = 0; e < Count; ++e) {
      if (e < columns) {
        out[e] = values.at[e];
      }
    }
  }
}

template <class T>
struct alignas(16) Fragment {
  T at[16 / sizeof(T)];
};

/// One load of 16 bytes by its type. Of a struct's copy the compiler of CUDA 12.4 makes one load or
/// several, not the same in every run.
__device__ inline Fragment<float> load_fragment(const float* from) {
  const float4 v = *reinterpret_cast<const float4*>(from);
  return {{v.x, v.y, v.z, v.w}};
}
__device__ inline Fragment<double> load_fragment(const double* from) {
  const double2 v = *reinterpret_cast<const double2*>(from);
  return {{v.x, v.y}};
}

/// One tile of the product a block. Each thread sums WarpM / LanesM × WarpN / LanesN elements in
/// registers, as vectors of 16 bytes that stand a warp's lanes apart; for each k it loads a row and
/// a column of them from shared memory, those of the next k while it multiplies those at hand.
template <class Storage, class Shape, bool AKMajor, bool BKMajor>
__global__ void __launch_bounds__(Shape::threads, Shape::Blocks)
    simt_kernel(Tiling tiling, Operand<Storage> a, bool a_vectors, Operand<Storage> b,
                bool b_vectors, Storage* out, std::int64_t first, bool aligned) {
  using T = Compute<Storage>;
  constexpr int vector = 16 / sizeof(T), depth = Shape::Depth;
  constexpr int vectors_m = Shape::WarpM / Shape::LanesM / vector;
  constexpr int vectors_n = Shape::WarpN / Shape::LanesN / vector;
  constexpr int pitch_a = Line<T, Shape::M>::pitch, pitch_b = Line<T, Shape::N>::pitch;
  alignas(16) __shared__ T stages[Shape::Stages][depth * (pitch_a + pitch_b)];

  const TilePlace place = tile_place<16>(tiling, first + blockIdx.x);
  const std::int64_t first_m = static_cast<std::int64_t>(place.m) * Shape::M;
  const std::int64_t first_n = static_cast<std::int64_t>(place.n) * Shape::N;
  using LoaderA =
      std::conditional_t<AKMajor, KMajorLoader<Storage, T, Shape::M, depth, Shape::threads>,
                         RowMajorLoader<Storage, T, Shape::M, depth, Shape::threads>>;
  using LoaderB =
      std::conditional_t<BKMajor, KMajorLoader<Storage, T, Shape::N, depth, Shape::threads>,
                         RowMajorLoader<Storage, T, Shape::N, depth, Shape::threads>>;
  LoaderA load_a(rows_of(a, tiling, place.batch, first_m), a, tiling.m - first_m, tiling.k,
                 a_vectors);
  LoaderB load_b(rows_of(b, tiling, place.batch, first_n), b, tiling.n - first_n, tiling.k,
                 b_vectors);

  // Eight neighbouring lanes, whose 16 bytes shared memory gives at a time, are 4 × 2 and so read
  // six vectors of the two operands and not nine.
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  constexpr int half = Shape::LanesM == 8 ? 1 : 0;
  const int narrow_lane = (lane & 1) | (lane >> 4 << 1), wide_lane = lane >> 1 & 7;
  const int lane_m = half ? wide_lane : narrow_lane, lane_n = half ? narrow_lane : wide_lane;
  static_assert(Shape::LanesM == 8 || Shape::LanesM == 4);
  const int row_m = warp % Shape::warps_m * Shape::WarpM + lane_m * vector;
  const int row_n = warp / Shape::warps_m * Shape::WarpN + lane_n * vector;

  const std::int64_t steps = (tiling.k + depth - 1) / depth;
  std::int64_t loaded = 0;
  const auto load = [&](int to) {
    if (loaded < steps) {
      load_a.load(stages[to]);
      load_b.load(stages[to] + depth * pitch_a);
    }
    commit_copies();  // also of nothing: waits count groups
    ++loaded;
  };
  Fragment<T> fragment_a[2][vectors_m], fragment_b[2][vectors_n];
  const auto load_fragments = [&](int to, const T* stage, int k) {
#pragma unroll
    for (int i = 0; i < vectors_m; ++i) {
      fragment_a[to][i] = load_fragment(stage + k * pitch_a + row_m + i * Shape::LanesM * vector);
    }
#pragma unroll
    for (int i = 0; i < vectors_n; ++i) {
      fragment_b[to][i] =
          load_fragment(stage + depth * pitch_a + k * pitch_b + row_n + i * Shape::LanesN * vector);
    }
  };

  T sums[vectors_m * vector][vectors_n * vector] = {};
  if (steps > 0) {
    for (int i = 0; i < Shape::Stages - 1; ++i) {
      load(i);
    }
    wait_copies<Shape::Stages - 2>();
    __syncthreads();
    load_fragments(0, stages[0], 0);
  }
  int stage = 0;
  for (std::int64_t i = 0; i < steps; ++i) {
    const int next = stage + 1 == Shape::Stages ? 0 : stage + 1;
#pragma unroll
    for (int k = 0; k < depth; ++k) {
      if (k == 0) {
        load(stage == 0 ? Shape::Stages - 1 : stage - 1);  // left by all at the last barrier
      }
      if (k + 1 == depth) {
        wait_copies<Shape::Stages - 2>();
        __syncthreads();
      }
      load_fragments((k + 1) % 2, stages[k + 1 < depth ? stage : next], (k + 1) % depth);
#pragma unroll
      for (int m = 0; m < vectors_m * vector; ++m) {
#pragma unroll
        for (int n = 0; n < vectors_n * vector; ++n) {
          sums[m][n] = multiply_add(fragment_a[k % 2][m / vector].at[m % vector],
                                    fragment_b[k % 2][n / vector].at[n % vector], sums[m][n]);
        }
      }
    }
    stage = next;
  }

  out += place.batch * tiling.m * tiling.n;
#pragma unroll
  for (int m = 0; m < vectors_m * vector; ++m) {
    const std::int64_t row = first_m + row_m + m / vector * Shape::LanesM * vector + m % vector;
#pragma unroll
    for (int n = 0; n < vectors_n; ++n) {
      const std::int64_t column = first_n + row_n + n * Shape::LanesN * vector;
      if (row < tiling.m) {
        store_vector<vector>(out + row * tiling.n + column, sums[m] + n * vector,
                             clip_to_int(tiling.n - column), aligned);
      }
    }
  }
}

/// Square tiles of 8 × 16 sums a thread: for each k 6 loads of 16 bytes to 128 multiplications.
using LargeFloatTiles = SimtShape<128, 128, 64, 64, 8, 8, 3, 2>;
/// For results of few tiles, for float64, and for what is widened.
using SmallTiles = SimtShape<64, 64, 32, 32, 8, 8, 3, 3>;

template <class Storage, class Shape>
void launch_simt(const MatmulParams& params, cudaStream_t stream) {
  const Tiling tiling = tiling_of(params, Shape::M, Shape::N);
  const auto a = operand_of<Storage>(params.a), b = operand_of<Storage>(params.b);
  const auto out = static_cast<Storage*>(params.out);
  [[maybe_unused]] const bool ak = params.a.k_major, bk = params.b.k_major;
  const bool a_vectors = whole_vectors(params.a, params.m, sizeof(Storage));
  const bool b_vectors = whole_vectors(params.b, params.n, sizeof(Storage));
  const bool aligned =
      params.n * sizeof(Storage) % 16 == 0 && reinterpret_cast<std::uintptr_t>(out) % 16 == 0;
  auto kernel = simt_kernel<Storage, Shape, true, true>;
  // The 16-bit types have it as their only kernel: on cards of this day they do not come here.
  if constexpr (sizeof(Storage) >= 4) {
    kernel = ak   ? bk ? kernel : simt_kernel<Storage, Shape, true, false>
               : bk ? simt_kernel<Storage, Shape, false, true>
                  : simt_kernel<Storage, Shape, false, false>;
  }
  launch_tiles(tile_count(tiling, params), [&](std::int64_t first, unsigned blocks) {
    kernel<<<blocks, Shape::threads, 0, stream>>>(tiling, a, a_vectors, b, b_vectors, out, first,
                                                  aligned);
  });
}

}  // namespace matmul_simt_unit

void matmul_simt_cuda(const MatmulParams& params, void* stream) {
  with_storage(params.dtype, [&](auto tag) {
    using Storage = decltype(tag);
    const auto on = static_cast<cudaStream_t>(stream);
    if constexpr (std::is_same_v<Storage, float>) {
      constexpr std::int64_t few = 192;
      if (tile_count(tiling_of(params, LargeFloatTiles::M, LargeFloatTiles::N), params) >= few) {
        return launch_simt<Storage, LargeFloatTiles>(params, on);
      }
    }
    launch_simt<Storage, SmallTiles>(params, on);
  });
}

}  // namespace fusedops
