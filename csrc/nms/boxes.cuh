#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <type_traits>

#include "common/convert.cuh"

// Boxes, and which of two the other drops.
//
// Every operation rounds where it does in torchvision 0.26, whose kernel
// (torchvision/csrc/ops/cuda/nms_kernel.cu) nvcc compiles, for each SM alike, to one fused
// multiply-add: float and double take b's area into a's, half takes a's into b's. Products are
// intrinsics, which no compiler fuses.

namespace fusedops {

__device__ inline float least(float a, float b) {
  return fminf(a, b);
}
__device__ inline double least(double a, double b) {
  return fmin(a, b);
}
/// Of NaN and a number the number.
__device__ inline float greatest(float a, float b) {
  return fmaxf(a, b);
}
__device__ inline double greatest(double a, double b) {
  return fmax(a, b);
}
__device__ inline float times(float a, float b) {
  return __fmul_rn(a, b);
}
__device__ inline double times(double a, double b) {
  return __dmul_rn(a, b);
}
__device__ inline float times_plus(float a, float b, float c) {
  return __fmaf_rn(a, b, c);
}
__device__ inline double times_plus(double a, double b, double c) {
  return __fma_rn(a, b, c);
}
__device__ inline float over(float a, float b) {
  return __fdiv_rn(a, b);
}
__device__ inline double over(double a, double b) {
  return __ddiv_rn(a, b);
}

/// What torchvision keeps in a variable of the boxes' own type. bfloat16, which it refuses, stays
/// in float.
template <class Storage>
__device__ inline Compute<Storage> as_stored(Compute<Storage> value) {
  return value;
}
template <>
__device__ inline float as_stored<Float16>(float value) {
  return widen(narrow<Float16>(value));
}

template <class T>
struct alignas(4 * sizeof(T)) Box {
  T x1, y1, x2, y2;
};

template <class T>
struct Extent {
  T width, height, area;
};

template <class Storage, class T = Compute<Storage>>
__device__ inline Extent<T> extent(const Box<T>& box) {
  const T width = box.x2 - box.x1;
  const T height = as_stored<Storage>(box.y2 - box.y1);
  return {width, height, times(width, height)};
}

/// False where the two have no area in common, or one has a NaN. Four comparisons without a branch.
template <class T>
__device__ inline bool may_overlap(const Box<T>& a, const Box<T>& b) {
  return (a.x2 > b.x1) & (b.x2 > a.x1) & (a.y2 > b.y1) & (b.y2 > a.y1);
}

/// Whether `a`, when kept, drops `b`. The quotient is NaN with a NaN in either box, and else
/// without overlap 0 or NaN: no threshold of 0 or more is exceeded where may_overlap is false.
template <class Storage, class T = Compute<Storage>>
__device__ inline bool drops(const Box<T>& a, const Extent<T>& a_extent, const Box<T>& b,
                             const Extent<T>& b_extent, T threshold) {
  const T width = as_stored<Storage>(least(a.x2, b.x2) - greatest(a.x1, b.x1));
  const T height = as_stored<Storage>(least(a.y2, b.y2) - greatest(a.y1, b.y1));
  const T common = times(greatest(width, T(0)), greatest(height, T(0)));
  const T areas = std::is_same<Storage, Float16>::value
                      ? times_plus(a_extent.width, a_extent.height, b_extent.area)
                      : times_plus(b_extent.width, b_extent.height, a_extent.area);
  return over(common, areas - common) > threshold;
}

/// The boxes in sorted order, and what is known of them. `dropped` has a bit for each.
template <class T>
struct Sorted {
  int n;
  Box<T>* boxes;
  std::int64_t* order;
  std::int64_t* classes;
  unsigned* dropped;
};

/// Of `dropped`: two for every 64 boxes begun.
__host__ __device__ inline int dropped_words(int n) {
  return (n + 63) / 64 * 2;
}

}  // namespace fusedops
