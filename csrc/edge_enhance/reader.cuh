#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstring>

#include "common/convert.cuh"
#include "edge_enhance/edge_enhance.h"

// How a thread of edge_enhance's kernel reads its part of a row.

namespace fusedops {
inline namespace reader_unit {

constexpr int kEdgeVectorBytes = 16;

template <class Storage>
struct EdgePlanes {
  const Storage* in;
  Storage* out;
  int height, width;
  unsigned pitch;    // bytes of a row
  unsigned threads;  // of all planes
  unsigned across;   // threads, side by side in a row
  unsigned strips;   // in a plane, of `rows` rows each, one beneath the other
  int rows;
};

__device__ inline float widened(const unsigned* words, int i, BFloat16) {
  return widen(BFloat16{static_cast<unsigned short>(words[i / 2] >> (i % 2 * 16))});
}
__device__ inline float widened(const unsigned* words, int i, Float16) {
  return widen(Float16{static_cast<unsigned short>(words[i / 2] >> (i % 2 * 16))});
}
__device__ inline float widened(const unsigned* words, int i, float) {
  return __uint_as_float(words[i]);
}
__device__ inline double widened(const unsigned* words, int i, double) {
  double value;
  memcpy(&value, words + 2 * i, sizeof value);
  return value;
}

__device__ inline bool border(int i, int n) {
  return i == 0 || i == n - 1;
}

/// A thread's part of a row: 16 bytes. What lies beside them is its neighbours' in the warp, and
/// the first and last lane's to load: the others load the first one's with it, which takes no
/// branch and no memory of their own. Every lane of a warp must make and call it together.
template <class Storage, int Radius, bool Adjoint>
class VectorReader {
 public:
  static constexpr int size = kEdgeVectorBytes / sizeof(Storage);
  using T = Compute<Storage>;

 private:
  static constexpr int kOwn = kEdgeVectorBytes / 4;
  static constexpr int kBeside = (Radius * static_cast<int>(sizeof(Storage)) + 3) / 4;
  static constexpr int kMargin = kBeside * 4 / static_cast<int>(sizeof(Storage));

 public:
  struct Row {
    unsigned own[kOwn];
    unsigned beside[kBeside];
  };

  __device__ VectorReader(const Storage* plane, const EdgePlanes<Storage>& planes, unsigned column)
      : own_(reinterpret_cast<const char*>(plane + column * std::int64_t{size})),
        lane_(static_cast<int>(threadIdx.x % 32)),
        first_(column == 0),
        second_(column == 1),
        last_(column == planes.across - 1),
        last_but_one_(column + 2 == planes.across),
        pitch_(planes.pitch) {
    const bool needs = lane_ == 0 ? !first_ : !last_;
    const char* const beside = own_ + (lane_ == 0 ? -4 * kBeside : kEdgeVectorBytes);
    const auto address = reinterpret_cast<unsigned long long>(needs ? beside : own_);
    const unsigned long long of_first = __shfl_sync(0xFFFFFFFFu, address, 0);
    beside_ = reinterpret_cast<const char*>(lane_ == 31 ? address : of_first);
  }

  __device__ Row load(unsigned y) const {
    const std::uint64_t offset = std::uint64_t{y} * pitch_;
    const uint4 own = __ldg(reinterpret_cast<const uint4*>(own_ + offset));
    Row loaded = {{own.x, own.y, own.z, own.w}, {}};
#pragma unroll
    for (int k = 0; k < kBeside; ++k) {
      loaded.beside[k] = __ldg(reinterpret_cast<const unsigned*>(beside_ + offset) + k);
    }
    return loaded;
  }

  /// The row's elements and Radius to either side, widened.
  __device__ void columns(const Row& row, T (&x)[size + 2 * Radius]) const {
    unsigned words[2 * kBeside + kOwn];
#pragma unroll
    for (int k = 0; k < kBeside; ++k) {
      const unsigned left = __shfl_up_sync(0xFFFFFFFFu, row.own[kOwn - kBeside + k], 1);
      const unsigned right = __shfl_down_sync(0xFFFFFFFFu, row.own[k], 1);
      words[k] = lane_ == 0 ? row.beside[k] : left;
      words[kBeside + kOwn + k] = lane_ == 31 ? row.beside[k] : right;
    }
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
      words[kBeside + k] = row.own[k];
    }
#pragma unroll
    for (int i = 0; i < size + 2 * Radius; ++i) {
      x[i] = widened(words, kMargin - Radius + i, Storage{});
    }
    if (Adjoint) {
      x[Radius] *= first_ ? T(2) : T(1);
      x[Radius + size - 1] *= last_ ? T(2) : T(1);
      if (Radius >= size) {  // the row's border may be a neighbour's whole vector away
        x[0] *= second_ ? T(2) : T(1);
        x[size + 2 * Radius - 1] *= last_but_one_ ? T(2) : T(1);
      }
    }
#pragma unroll
    for (int k = 1; k <= Radius; ++k) {
      x[Radius - k] = first_ ? x[Radius + k] : x[Radius - k];
      x[Radius + size - 1 + k] = last_ ? x[Radius + size - 1 - k] : x[Radius + size - 1 + k];
    }
  }

  __device__ void halve_border(T (&values)[size]) const {
    values[0] *= first_ ? T(0.5) : T(1);
    values[size - 1] *= last_ ? T(0.5) : T(1);
  }

 private:
  const char* own_;
  const char* beside_;
  int lane_;
  bool first_, second_, last_, last_but_one_;
  unsigned pitch_;
};

/// One element of a row of any length and alignment, and its neighbours.
template <class Storage, int Radius, bool Adjoint>
class ElementReader {
 public:
  static constexpr int size = 1;
  using T = Compute<Storage>;

  struct Row {
    Storage at[2 * Radius + 1];
  };

  __device__ ElementReader(const Storage* plane, const EdgePlanes<Storage>& planes, unsigned column)
      : plane_(reinterpret_cast<const char*>(plane)), width_(planes.width), pitch_(planes.pitch) {
#pragma unroll
    for (int k = 0; k <= 2 * Radius; ++k) {
      from_[k] = reflected(static_cast<int>(column) - Radius + k, width_);
    }
  }

  __device__ Row load(unsigned y) const {
    const auto row = reinterpret_cast<const Storage*>(plane_ + std::uint64_t{y} * pitch_);
    Row loaded;
#pragma unroll
    for (int k = 0; k <= 2 * Radius; ++k) {
      loaded.at[k] = row[from_[k]];
    }
    return loaded;
  }

  __device__ void columns(const Row& row, T (&x)[1 + 2 * Radius]) const {
#pragma unroll
    for (int k = 0; k <= 2 * Radius; ++k) {
      x[k] = widen(row.at[k]) * (Adjoint && border(from_[k], width_) ? T(2) : T(1));
    }
  }

  __device__ void halve_border(T (&values)[1]) const {
    values[0] *= border(from_[Radius], width_) ? T(0.5) : T(1);
  }

 private:
  const char* plane_;
  int width_;
  unsigned pitch_;
  int from_[2 * Radius + 1];
};

}  // namespace reader_unit
}  // namespace fusedops
