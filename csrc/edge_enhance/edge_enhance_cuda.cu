#include <algorithm>
#include <cstdint>

#include "common/convert.cuh"
#include "common/device.h"
#include "edge_enhance/edge_enhance.h"
#include "edge_enhance/reader.cuh"

namespace fusedops {
inline namespace edge_enhance_unit {

constexpr int kEdgeThreads = 128;
/// Rows of the result that a thread computes, at most. It reads 2 * radius more, which the thread
/// above or below reads too.
constexpr std::int64_t kEdgeRows = 16;
/// Rows on their way from memory while one is computed: a multiple of the filter's length. 48 bytes
/// a thread are 48 KiB a multiprocessor at half occupancy, which is above what memory's latency
/// times its bandwidth asks for.
template <int Radius>
constexpr int kEdgeAhead = 2 * Radius + 1;
/// Fewer rows a thread are taken where a launch would have fewer threads than this.
constexpr std::int64_t kEdgeFewThreads = std::int64_t{1} << 17;

template <class T>
struct EdgeFilter {
  T amount;
  T weight[3];
};

template <class Storage, int Size>
struct alignas(Size * sizeof(Storage)) EdgeElements {
  Storage at[Size];
};

// Rounded as written, so that no value depends on its place: on which kernel computes it, or on
// whether its strip is gone through upwards, where `a` and `b` change places.
__device__ inline float fused(float a, float b, float c) {
  return __fmaf_rn(a, b, c);
}
__device__ inline double fused(double a, double b, double c) {
  return __fma_rn(a, b, c);
}
__device__ inline float weighted_pair(float weight, float a, float b) {
  return __fadd_rn(__fmul_rn(weight, a), __fmul_rn(weight, b));
}
__device__ inline double weighted_pair(double weight, double a, double b) {
  return __dadd_rn(__dmul_rn(weight, a), __dmul_rn(weight, b));
}

template <class T, int Size>
__device__ inline void scale(T (&values)[Size], T factor) {
#pragma unroll
  for (int e = 0; e < Size; ++e) {
    values[e] *= factor;
  }
}

/// Reads `in` once but for the strips' margins, writes `out` once, both in global memory.
///
/// A thread goes along a strip, `Reader::size` columns wide. Of each row it sums along the row once
/// and keeps the last sums, from which the sums across rows are made: nothing is shared but the few
/// elements between neighbours, so there is no barrier. Every other strip is gone through upwards.
/// Two threads then read the rows about their common border at one time, at the start or the end
/// of both, and the second finds them in the L2 cache; a strip later they would have left it.
template <template <class, int, bool> class ReaderOf, class Storage, int Radius, bool Adjoint>
__global__ void __launch_bounds__(kEdgeThreads)
    edge_enhance_kernel(EdgePlanes<Storage> planes, EdgeFilter<Compute<Storage>> filter) {
  using Reader = ReaderOf<Storage, Radius, Adjoint>;
  using T = Compute<Storage>;
  constexpr int size = Reader::size;
  constexpr int ahead = kEdgeAhead<Radius>;
  // Threads beyond the last do its work again, for the shuffles' sake, and write nothing.
  const unsigned thread = blockIdx.x * kEdgeThreads + threadIdx.x;
  const unsigned strip = min(thread, planes.threads - 1) / planes.across;
  const unsigned column = min(thread, planes.threads - 1) - strip * planes.across;
  const unsigned plane = strip / planes.strips;
  const int top = static_cast<int>(strip - plane * planes.strips) * planes.rows;
  const int height = planes.height;
  const std::int64_t offset = static_cast<std::int64_t>(plane) * height * planes.width;
  const Reader reader(planes.in + offset, planes, column);
  const auto out = reinterpret_cast<char*>(planes.out + offset + column * std::int64_t{size});
  const int count = min(planes.rows, height - top);
  const int step = strip % 2 == 0 ? 1 : -1;
  const int start = step > 0 ? top : top + count - 1;
  // Beyond the reflected rows any will do: they are of a strip that has ended.
  const auto source = [&](int i) {
    const int y = start + step * (i - Radius);
    return static_cast<unsigned>(reflected(max(-Radius, min(y, height - 1 + Radius)), height));
  };
  const unsigned writes = thread < planes.threads ? count : 0;

  typename Reader::Row rows[ahead];
#pragma unroll
  for (int i = 0; i < ahead; ++i) {
    rows[i] = reader.load(source(i));
  }
  T centre[ahead][size] = {};
  T sums[ahead][size] = {};
  const int last = planes.rows + 2 * Radius;
  for (int begin = 0; begin < last; begin += ahead) {
    // Unrolled, so that each of the arrays' elements has a register.
#pragma unroll
    for (int j = 0; j < ahead; ++j) {
      const int i = begin + j;
      if (i >= last) {  // the same for every thread
        return;
      }
      T x[size + 2 * Radius];
      reader.columns(rows[j], x);
      rows[j] = reader.load(source(i + ahead));
      if (Adjoint) {
        scale(x, border(source(i), height) ? T(2) : T(1));
      }
#pragma unroll
      for (int e = 0; e < size; ++e) {
        centre[j][e] = x[e + Radius];
        T sum = filter.weight[0] * x[e + Radius];
#pragma unroll
        for (int k = 1; k <= Radius; ++k) {
          sum = fused(filter.weight[k], x[e + Radius - k], sum);
          sum = fused(filter.weight[k], x[e + Radius + k], sum);
        }
        sums[j][e] = sum;
      }
      constexpr auto before = [](int j, int rows) { return (j + ahead - rows) % ahead; };
      T result[size];
#pragma unroll
      for (int e = 0; e < size; ++e) {
        T blurred = weighted_pair(filter.weight[1], sums[before(j, Radius + 1)][e],
                                  sums[before(j, Radius - 1)][e]);
        if (Radius == 2) {
          blurred += weighted_pair(filter.weight[2], sums[before(j, 2 * Radius)][e], sums[j][e]);
        }
        blurred = fused(filter.weight[0], sums[before(j, Radius)][e], blurred);
        const T value = centre[before(j, Radius)][e];
        result[e] = fused(filter.amount, value - blurred, value);
      }
      const unsigned row = i - 2 * Radius;
      const int y = start + step * static_cast<int>(row);
      if (Adjoint) {
        scale(result, border(y, height) ? T(0.5) : T(1));
        reader.halve_border(result);
      }
      if (row < writes) {
        EdgeElements<Storage, size> narrowed;
#pragma unroll
        for (int e = 0; e < size; ++e) {
          narrowed.at[e] = narrow<Storage>(result[e]);
        }
        char* const to = out + static_cast<std::uint64_t>(y) * planes.pitch;
        *reinterpret_cast<EdgeElements<Storage, size>*>(to) = narrowed;
      }
    }
  }
}

template <template <class, int, bool> class ReaderOf, class Storage, int Radius, bool Adjoint>
void launch_edge_enhance(const EdgeEnhance& call, cudaStream_t stream) {
  constexpr int size = ReaderOf<Storage, Radius, Adjoint>::size;
  EdgePlanes<Storage> planes{};
  planes.height = static_cast<int>(call.height);
  planes.width = static_cast<int>(call.width);
  planes.pitch = static_cast<unsigned>(call.width * static_cast<std::int64_t>(sizeof(Storage)));
  planes.across = static_cast<unsigned>(call.width / size);
  const auto divide_up = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  std::int64_t rows = kEdgeRows;
  const auto in_plane = [&] { return divide_up(call.height, rows) * planes.across; };
  while (rows > 2 && in_plane() * call.planes < kEdgeFewThreads) {
    rows /= 2;
  }
  planes.strips = static_cast<unsigned>(divide_up(call.height, rows));
  planes.rows = static_cast<int>(divide_up(call.height, planes.strips));
  EdgeFilter<Compute<Storage>> filter{};
  filter.amount = static_cast<Compute<Storage>>(call.amount);
  for (int k = 0; k < 3; ++k) {
    filter.weight[k] = static_cast<Compute<Storage>>(call.weight[k]);
  }
  // Threads are counted in 32 bits, so that a thread finds its place by short divisions.
  constexpr std::int64_t kMostThreads = 0xFFFFFFFF - kEdgeThreads;
  if (in_plane() > kMostThreads) {
    throw std::runtime_error("fusedops: edge_enhance: one plane is more than a launch can hold");
  }
  const std::int64_t most = kMostThreads / in_plane();
  for (std::int64_t done = 0; done < call.planes; done += most) {
    const std::int64_t count = std::min(most, call.planes - done);
    const std::int64_t offset = done * call.height * call.width;
    planes.in = static_cast<const Storage*>(call.in) + offset;
    planes.out = static_cast<Storage*>(call.out) + offset;
    planes.threads = static_cast<unsigned>(count * in_plane());
    const auto blocks = static_cast<unsigned>(divide_up(planes.threads, kEdgeThreads));
    edge_enhance_kernel<ReaderOf, Storage, Radius, Adjoint>
        <<<blocks, kEdgeThreads, 0, stream>>>(planes, filter);
  }
}

template <class Storage, int Radius, bool Adjoint>
void launch_by_layout(const EdgeEnhance& call, cudaStream_t stream) {
  const auto addresses =
      reinterpret_cast<std::uintptr_t>(call.in) | reinterpret_cast<std::uintptr_t>(call.out);
  const std::int64_t row = call.width * static_cast<std::int64_t>(sizeof(Storage));
  if (addresses % kEdgeVectorBytes == 0 && row % kEdgeVectorBytes == 0) {
    launch_edge_enhance<VectorReader, Storage, Radius, Adjoint>(call, stream);
  } else {
    launch_edge_enhance<ElementReader, Storage, Radius, Adjoint>(call, stream);
  }
}

}  // namespace edge_enhance_unit

void edge_enhance_cuda(const EdgeEnhance& call, void* stream) {
  with_storage(call.dtype, [&](auto tag) {
    using Storage = decltype(tag);
    const auto on = static_cast<cudaStream_t>(stream);
    if (call.radius == 1) {
      call.adjoint ? launch_by_layout<Storage, 1, true>(call, on)
                   : launch_by_layout<Storage, 1, false>(call, on);
    } else {
      call.adjoint ? launch_by_layout<Storage, 2, true>(call, on)
                   : launch_by_layout<Storage, 2, false>(call, on);
    }
  });
  check_launch();
}

}  // namespace fusedops
