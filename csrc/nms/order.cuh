#pragma once

#include "nms/boxes.cuh"

// Sorting by falling score.

namespace fusedops {

constexpr int kOrderThreads = 256;
constexpr int kBoxesPerWarp = 4;
constexpr int kBoxesPerBlock = kOrderThreads / 32 * kBoxesPerWarp;

template <class Storage>
struct Unsorted {
  const Storage* boxes;
  const Storage* scores;
  const std::int64_t* classes;
};

/// Unsigned integers in the order that torch.sort states: any NaN is the greatest, and -0 is 0.
__device__ inline std::uint32_t sort_key(float score) {
  const auto bits = static_cast<std::uint32_t>(__float_as_int(score));
  const std::uint32_t sign = 0x80000000u;
  const std::uint32_t key = bits == sign ? sign : (bits & sign) != 0 ? ~bits : bits | sign;
  return score != score ? ~0u : key;
}
__device__ inline std::uint64_t sort_key(double score) {
  const auto bits = static_cast<std::uint64_t>(__double_as_longlong(score));
  const std::uint64_t sign = std::uint64_t{1} << 63;
  const std::uint64_t key = bits == sign ? sign : (bits & sign) != 0 ? ~bits : bits | sign;
  return score != score ? ~std::uint64_t{0} : key;
}

template <class Storage, class T>
__device__ void place(const Unsorted<Storage>& from, const Sorted<T>& to, std::int64_t index,
                      int position) {
  const Storage* box = from.boxes + 4 * index;
  to.boxes[position] = {widen(box[0]), widen(box[1]), widen(box[2]), widen(box[3])};
  to.order[position] = index;
  if (from.classes != nullptr) {
    to.classes[position] = from.classes[index];
  }
}

/// What the sweeps begin with: nothing kept, nothing dropped. There are more threads than words.
template <class T>
__device__ void clear(const Sorted<T>& to, std::int64_t* total, int thread) {
  if (thread < dropped_words(to.n)) {
    to.dropped[thread] = 0;
  }
  if (thread == 0) {
    *total = 0;
  }
}

/// For few boxes: a box's place is the number of boxes before it, for which a warp reads every
/// score once for four boxes. All scores stay in L1, and the n^2 comparisons spread over the
/// device.
template <class Storage, class T = Compute<Storage>>
__global__ void __launch_bounds__(kOrderThreads)
    rank_kernel(Unsorted<Storage> from, Sorted<T> to, std::int64_t* total) {
  using Key = decltype(sort_key(T{}));
  const int thread = blockIdx.x * kOrderThreads + threadIdx.x;
  clear(to, total, thread);
  const int first = thread / 32 * kBoxesPerWarp;
  const int lane = thread % 32;
  Key keys[kBoxesPerWarp];
  int before[kBoxesPerWarp];
#pragma unroll
  for (int e = 0; e < kBoxesPerWarp; ++e) {
    keys[e] = first + e < to.n ? sort_key(widen(from.scores[first + e])) : 0;
    before[e] = 0;
  }
#pragma unroll 4
  for (int other = lane; other < to.n; other += 32) {
    const Key key = sort_key(widen(from.scores[other]));
#pragma unroll
    for (int e = 0; e < kBoxesPerWarp; ++e) {
      before[e] += key > keys[e] || (key == keys[e] && other < first + e);
    }
  }
  int position = 0;
#pragma unroll
  for (int e = 0; e < kBoxesPerWarp; ++e) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
      before[e] += __shfl_xor_sync(~0u, before[e], step);
    }
    position = lane == e ? before[e] : position;
  }
  if (lane < kBoxesPerWarp && first + lane < to.n) {
    place(from, to, first + lane, position);
  }
}

/// The same where the order is known: a thread a box.
template <class Storage, class T = Compute<Storage>>
__global__ void __launch_bounds__(kOrderThreads)
    gather_kernel(Unsorted<Storage> from, const std::int64_t* order, Sorted<T> to,
                  std::int64_t* total) {
  const int position = blockIdx.x * kOrderThreads + threadIdx.x;
  clear(to, total, position);
  if (position < to.n) {
    place(from, to, order[position], position);
  }
}

}  // namespace fusedops
