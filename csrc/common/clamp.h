#pragma once

#include <cmath>
#include <limits>

#include "common/host_device.h"

namespace fusedops {

/// torch.clamp: NaN passes through, and where lo > hi the result is hi.
///
/// Written as comparisons because fmin and fmax would replace a NaN by the bound.
template <class T>
FUSEDOPS_HOST_DEVICE inline T clamp(T value, T lo, T hi) {
  const T raised = value < lo ? lo : value;
  return raised > hi ? hi : raised;
}

/// Where a clamp's gradient goes through: both bounds included, never at NaN, and nowhere when
/// lo > hi. torch.clamp's own includes the bounds before torch 2.14 and excludes them from then on;
/// a library that serves both keeps to one.
template <class T>
FUSEDOPS_HOST_DEVICE inline bool inside(T value, T lo, T hi) {
  return value >= lo && value <= hi;
}

/// What is added after a clamp. torch.clamp with a NaN bound is NaN everywhere; making the addend
/// NaN gives that without a test in each element's path.
inline double addend(double lo, double hi, double bias) {
  return std::isnan(lo) || std::isnan(hi) ? std::numeric_limits<double>::quiet_NaN() : bias;
}

}  // namespace fusedops
