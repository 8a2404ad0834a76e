#pragma once

#include <c10/macros/Macros.h>

#include <cmath>
#include <limits>

// The arithmetic that CPU and CUDA share, in T: float for the 16-bit types, else the dtype itself.

namespace usual {

template <typename T>
C10_HOST_DEVICE inline T clamp(T x, T min, T max) {
  const T raised = x < min ? min : x;  // keeps a NaN, which fmax would not
  return raised > max ? max : raised;
}

template <typename T>
C10_HOST_DEVICE inline bool inside(T x, T min, T max) {
  return x >= min && x <= max;
}

/// torch.clamp with a NaN bound is NaN everywhere.
inline double addend(double min, double max, double bias) {
  return std::isnan(min) || std::isnan(max) ? std::numeric_limits<double>::quiet_NaN() : bias;
}

template <typename T>
struct ClipAdd {
  T min, max, bias;
  ClipAdd(double min, double max, double bias)
      : min(static_cast<T>(min)),
        max(static_cast<T>(max)),
        bias(static_cast<T>(addend(min, max, bias))) {}
  C10_HOST_DEVICE T operator()(T x) const { return clamp(x, min, max) + bias; }
};

template <typename T>
struct ClipAddBackward {
  T min, max;
  ClipAddBackward(double min, double max) : min(static_cast<T>(min)), max(static_cast<T>(max)) {}
  C10_HOST_DEVICE T operator()(T grad, T x) const { return inside(x, min, max) ? grad : T(0); }
};

template <typename T>
struct ScaleClampAdd {
  T scale, min, max, bias;
  ScaleClampAdd(double scale, double min, double max, double bias)
      : scale(static_cast<T>(scale)),
        min(static_cast<T>(min)),
        max(static_cast<T>(max)),
        bias(static_cast<T>(addend(min, max, bias))) {}
  C10_HOST_DEVICE T operator()(T x) const { return clamp(x * scale, min, max) + bias; }
};

template <typename T>
struct ScaleClampAddBackward {
  T scale, min, max;
  ScaleClampAddBackward(double scale, double min, double max)
      : scale(static_cast<T>(scale)), min(static_cast<T>(min)), max(static_cast<T>(max)) {}
  C10_HOST_DEVICE T operator()(T grad, T x) const {
    return (inside(x * scale, min, max) ? grad : T(0)) * scale;
  }
};

template <typename T>
struct Affine {
  T a, b;
  Affine(double a, double b) : a(static_cast<T>(a)), b(static_cast<T>(b)) {}
  C10_HOST_DEVICE T operator()(T x) const { return a * x + b; }
};

template <typename T>
struct VectorAdd {
  C10_HOST_DEVICE T operator()(T x, T y) const { return x + y; }
};

}  // namespace usual
