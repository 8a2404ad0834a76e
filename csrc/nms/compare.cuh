#pragma once

#include "nms/boxes.cuh"

// The two kernels that hold boxes against boxes. A thread has one box in registers, the one that
// may be dropped, and meets those of a tile one after the other.

namespace fusedops {

/// Boxes are swept in panels: within a panel by a bit for each pair, and what a panel keeps drops
/// later boxes at once. A panel's bits are 2 MiB, whatever the number of boxes.
constexpr int kPanel = 4096;
constexpr int kTile = 64;
constexpr int kPanelWords = kPanel / kTile;

/// What one sweep finds, on the device.
struct Found {
  std::int64_t total;  // kept, of all panels so far
  int panel;           // kept, of the last panel
  int rows[kPanel];    // the places of those
};

/// 64 boxes that all threads of a block hold theirs against, in shared memory.
template <class T, bool kClasses>
struct Tile {
  Box<T> boxes[kTile];
  Extent<T> extents[kTile];
  std::int64_t classes[kClasses ? kTile : 1];
};

/// A thread's own box.
template <class T>
struct Own {
  Box<T> box;
  Extent<T> extent;
  std::int64_t its_class;
};

template <class Storage, bool kClasses, class T>
__device__ Own<T> own(const Sorted<T>& sorted, int place) {
  const Box<T> box = sorted.boxes[place];
  return {box, extent<Storage>(box), kClasses ? sorted.classes[place] : 0};
}

/// Called by a thread for a box of the tile, by its place in the sorted order.
template <class Storage, bool kClasses, class T>
__device__ void fill(Tile<T, kClasses>& tile, int at, const Sorted<T>& sorted, int place) {
  const Own<T> filled = own<Storage, kClasses>(sorted, place);
  tile.boxes[at] = filled.box;
  tile.extents[at] = filled.extent;
  if (kClasses) {
    tile.classes[at] = filled.its_class;
  }
}

/// A bit for each of the 32 boxes from `first` on of which the quotient must be computed; bits from
/// `count` on are 0. Most pairs end here, so there is no branch for each.
template <bool kClasses, class T>
__device__ unsigned candidates(const Tile<T, kClasses>& tile, int first, int count,
                               const Own<T>& mine, T threshold) {
  const bool every = !(threshold >= T(0));
  unsigned found = 0;
#pragma unroll
  for (int bit = 0; bit < 32; ++bit) {
    const bool meets = every | may_overlap(tile.boxes[first + bit], mine.box);
    const bool same = !kClasses || tile.classes[kClasses ? first + bit : 0] == mine.its_class;
    found |= meets & same ? 1u << bit : 0;
  }
  return count >= 32 ? found : count <= 0 ? 0 : found & ((1u << count) - 1);
}

/// Where in its chunk a column lies: those of a warp's lane, lane and lane + 32, follow each other.
__device__ inline int slot(int column) {
  return column % 32 * 2 + column / 32;
}

/// bits[panel][word][chunk][slot(column)]: of a panel's box 64 * chunk + column those of the 64
/// boxes from 64 * word on that drop it when they are kept. Only boxes before it do, so words
/// beyond `chunk` are not written, and half of the blocks have nothing to do.
///
/// A block is a tile of 64 by 64: 2 KiB of boxes are read for 4,096 comparisons.
template <class Storage, bool kClasses, class T = Compute<Storage>>
__global__ void __launch_bounds__(kTile)
    mask_kernel(Sorted<T> sorted, int first_panel, T threshold, std::uint64_t* bits, int columns) {
  const int word = blockIdx.x;
  const int chunk = blockIdx.y;
  const int panel = (first_panel + blockIdx.z) * kPanel;
  if (word > chunk || panel + chunk * kTile >= sorted.n) {
    return;
  }
  __shared__ Tile<T, kClasses> tile;
  const int thread = threadIdx.x;
  const int row = panel + word * kTile + thread;
  if (row < sorted.n) {
    fill<Storage>(tile, thread, sorted, row);
  }
  __syncthreads();
  const int place = panel + chunk * kTile + thread;
  const Own<T> mine = own<Storage, kClasses>(sorted, min(place, sorted.n - 1));
  // A box of the diagonal meets those before it, every other one a whole tile.
  const int rows = place >= sorted.n ? 0 : word == chunk ? thread : kTile;
  std::uint64_t dropping = 0;
#pragma unroll 1
  for (int half = 0; half < 2; ++half) {
    unsigned left = candidates(tile, half * 32, rows - half * 32, mine, threshold);
    while (left != 0) {
      const int r = half * 32 + __ffs(left) - 1;
      if (drops<Storage>(tile.boxes[r], tile.extents[r], mine.box, mine.extent, threshold)) {
        dropping |= std::uint64_t{1} << r;
      }
      left &= left - 1;
    }
  }
  const std::int64_t line = static_cast<std::int64_t>(blockIdx.z) * gridDim.x + word;
  bits[line * columns + chunk * kTile + slot(thread)] = dropping;
}

constexpr int kApplyThreads = 128;
constexpr int kRowsPerSlice = 512;

/// Drops boxes from `begin` on that one of the rows found drops. A slice of the rows is a block's
/// work (the grid's y), so that few boxes occupy the device too.
///
/// `dropped` is read at the beginning and may gain bits from other slices meanwhile: what is missed
/// is compared in vain.
template <class Storage, bool kClasses, class T = Compute<Storage>>
__global__ void __launch_bounds__(kApplyThreads)
    apply_kernel(Sorted<T> sorted, int begin, const Found* found, T threshold) {
  const int slice = blockIdx.y * kRowsPerSlice;
  const int end = min(found->panel, slice + kRowsPerSlice);
  if (slice >= end) {
    return;
  }
  __shared__ Tile<T, kClasses> tile;
  const int thread = threadIdx.x;
  const int place = begin + blockIdx.x * kApplyThreads + thread;
  const bool beyond = place >= sorted.n;
  const Own<T> mine = own<Storage, kClasses>(sorted, beyond ? begin : place);
  bool gone = beyond || (sorted.dropped[place / 32] >> place % 32 & 1u) != 0;
  bool drop = false;
  for (int row = slice; row < end; row += kTile) {
    // Also the barrier before the tile is written again.
    if (__syncthreads_and(gone)) {
      break;
    }
    const int rows = min(kTile, end - row);
    if (thread < rows) {
      fill<Storage>(tile, thread, sorted, found->rows[row + thread]);
    }
    __syncthreads();
#pragma unroll 1
    for (int half = 0; half < 2 && !gone; ++half) {
      unsigned left = candidates(tile, half * 32, rows - half * 32, mine, threshold);
      while (left != 0 && !drop) {
        const int r = half * 32 + __ffs(left) - 1;
        drop = drops<Storage>(tile.boxes[r], tile.extents[r], mine.box, mine.extent, threshold);
        left &= left - 1;
      }
      gone = drop;
    }
  }
  const unsigned dropped = __ballot_sync(~0u, drop);
  if (thread % 32 == 0 && dropped != 0) {
    atomicOr(sorted.dropped + place / 32, dropped);
  }
}

}  // namespace fusedops
