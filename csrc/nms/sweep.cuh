#pragma once

#include "nms/compare.cuh"

// Which boxes of a panel are kept: 64 at a time, since each depends on all before it.

namespace fusedops {

constexpr int kGatherers = 16;
constexpr int kWordsEach = kPanelWords / kGatherers;
constexpr int kSweepThreads = 32 * (1 + kGatherers);

/// Of a lane's two columns.
struct alignas(16) Two {
  std::uint64_t low, high;
};

/// What a lane takes in at one step, loaded two steps ahead. The warp that decides: the word of the
/// chunk before, that of the chunk itself, and what earlier panels dropped of it.
struct Loaded {
  Two words[kWordsEach];
  unsigned dropped[2];
};

__device__ inline std::uint64_t ballots(bool low, bool high) {
  const unsigned first = __ballot_sync(~0u, low);
  return first | static_cast<std::uint64_t>(__ballot_sync(~0u, high)) << 32;
}

/// One block for a panel, its chunks of 64 boxes one after the other. The first warp decides for a
/// chunk, while the others gather for the next what all but the last decided drop of it: each a
/// sixteenth of the words. So one barrier a chunk is enough, and neither waits for memory.
class Sweep {
 public:
  __device__ Sweep(const std::uint64_t* bits, int columns, int size, const unsigned* dropped)
      : lane_(threadIdx.x % 32),
        gatherer_(static_cast<int>(threadIdx.x) / 32 - 1),
        columns_(columns),
        size_(size),
        bits_(bits + 2 * lane_),
        dropped_(dropped) {}

  __device__ bool decides() const { return gatherer_ < 0; }

  /// For the step of `chunk`.
  __device__ void load(int chunk, Loaded& to) const {
    if (decides()) {
      if (chunk * kTile < size_) {
        to.words[0] = word_of(max(chunk - 1, 0), chunk);
        to.words[1] = word_of(chunk, chunk);
        to.dropped[0] = dropped_[chunk * 2];
        to.dropped[1] = dropped_[chunk * 2 + 1];
      }
      return;
    }
    const bool next = (chunk + 1) * kTile < size_;
#pragma unroll
    for (int k = 0; k < kWordsEach; ++k) {
      const int word = gatherer_ + k * kGatherers;
      to.words[k] = next && word < chunk ? word_of(word, chunk + 1) : Two{0, 0};
    }
  }

  /// Adds to `next` the boxes of the chunk after `chunk` that a kept box before `chunk` drops; what
  /// is kept of `chunk` is only being written.
  __device__ void gather(int chunk, const Loaded& from, const std::uint64_t* kept,
                         unsigned* next) const {
    Two hit{0, 0};
#pragma unroll
    for (int k = 0; k < kWordsEach; ++k) {
      const int at = gatherer_ + k * kGatherers;
      const std::uint64_t word = at < chunk ? kept[at] : 0;
      hit.low |= from.words[k].low & word;
      hit.high |= from.words[k].high & word;
    }
    const std::uint64_t drop = ballots(hit.low != 0, hit.high != 0);
    if (lane_ == 0 && drop != 0) {
      atomicOr(next, static_cast<unsigned>(drop));
      atomicOr(next + 1, static_cast<unsigned>(drop >> 32));
    }
  }

  /// The boxes of `chunk` that are kept, of which `before` has those of the chunk before it, and
  /// `gathered` what all chunks before that one drop.
  ///
  /// Each round takes the boxes that none of the last round's drops. A box is right one round after
  /// all before it that may drop it are, so the rounds end, and only the right answer gives itself:
  /// after as many as boxes hang on each other in a chain, a few as a rule.
  __device__ std::uint64_t decide(int chunk, const Loaded& from, std::uint64_t before,
                                  const unsigned* gathered) const {
    const int left = size_ - chunk * kTile - lane_;
    const unsigned low = (from.dropped[0] | gathered[0]) >> lane_ & 1u;
    const unsigned high = (from.dropped[1] | gathered[1]) >> lane_ & 1u;
    const bool low_left = (left > 0) & (low == 0) & ((from.words[0].low & before) == 0);
    const bool high_left = (left > 32) & (high == 0) & ((from.words[0].high & before) == 0);
    std::uint64_t kept = ballots(low_left, high_left);
    while (true) {
      const std::uint64_t next = ballots(low_left & ((from.words[1].low & kept) == 0),
                                         high_left & ((from.words[1].high & kept) == 0));
      if (next == kept) {
        return kept;
      }
      kept = next;
    }
  }

 private:
  __device__ Two word_of(int word, int chunk) const {
    return *reinterpret_cast<const Two*>(bits_ + (word * columns_ + chunk * kTile));
  }

  int lane_, gatherer_, columns_, size_;
  const std::uint64_t* bits_;
  const unsigned* dropped_;
};

/// Writes the places of the boxes that are kept to `found`, and their indices to `kept_indices`
/// after those of the panels before. `before` is shared memory.
template <class T>
__device__ void write(const Sorted<T>& sorted, int begin, int size,
                      const std::uint64_t (&kept)[kPanelWords], int (&before)[kPanelWords + 1],
                      Found* found, std::int64_t* kept_indices) {
  const int thread = threadIdx.x;
  if (thread <= kPanelWords) {
    int sum = 0;
    for (int word = 0; word < thread; ++word) {
      sum += __popcll(kept[word]);
    }
    before[thread] = sum;
  }
  const std::int64_t base = found->total;
  __syncthreads();
  for (int row = thread; row < size; row += kSweepThreads) {
    const std::uint64_t word = kept[row / kTile];
    const std::uint64_t bit = std::uint64_t{1} << row % kTile;
    if ((word & bit) != 0) {
      const int place = before[row / kTile] + __popcll(word & (bit - 1));
      found->rows[place] = begin + row;
      kept_indices[base + place] = sorted.order[begin + row];
    }
  }
  if (thread == 0) {
    found->total = base + before[kPanelWords];
    found->panel = before[kPanelWords];
  }
}

/// Which of the panel's boxes from `begin` on are kept.
template <class T>
__global__ void __launch_bounds__(kSweepThreads)
    sweep_kernel(Sorted<T> sorted, int begin, const std::uint64_t* bits, int columns, Found* found,
                 std::int64_t* kept_indices) {
  __shared__ std::uint64_t kept[kPanelWords];
  __shared__ int before[kPanelWords + 1];
  __shared__ unsigned gathered[2][2];
  const int size = min(kPanel, sorted.n - begin);
  const int chunks = (size + kTile - 1) / kTile;
  const int thread = threadIdx.x;
  if (thread < kPanelWords) {
    kept[thread] = 0;
  }
  if (thread < 4) {
    gathered[thread / 2][thread % 2] = 0;
  }
  const Sweep sweep(bits, columns, size, sorted.dropped + begin / 32);
  Loaded loaded[2];
  sweep.load(0, loaded[0]);
  sweep.load(1, loaded[1]);
  std::uint64_t last = 0;
  __syncthreads();
  for (int pair = 0; pair < chunks; pair += 2) {
#pragma unroll
    for (int odd = 0; odd < 2; ++odd) {
      const int chunk = pair + odd;
      if (chunk < chunks) {
        if (sweep.decides()) {
          last = sweep.decide(chunk, loaded[odd], last, gathered[odd]);
          __syncwarp();
          if (thread < 2) {
            gathered[odd][thread] = 0;
          }
          if (thread == 0) {
            kept[chunk] = last;
          }
        } else {
          sweep.gather(chunk, loaded[odd], kept, gathered[1 - odd]);
        }
        sweep.load(chunk + 2, loaded[odd]);
        __syncthreads();
      }
    }
  }
  write(sorted, begin, size, kept, before, found, kept_indices);
}

}  // namespace fusedops
