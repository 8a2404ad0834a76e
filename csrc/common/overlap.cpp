#include "common/overlap.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "common/pointwise.h"

namespace fusedops {
namespace {

struct Step {
  std::int64_t stride, most;
};

/// Whether some steps[k].stride * t[k] with |t[k]| <= steps[k].most add up to `distance`: two
/// elements of tensors with these strides lie in one place. Strides fall, so that what the later
/// can still bridge leaves a few t each, two as a rule. `tries` bounds the search in made-up
/// strides.
bool bridges(const std::vector<Step>& steps, std::size_t k, std::int64_t distance, int& tries) {
  if (--tries < 0) {
    return true;
  }
  std::int64_t later = 0;
  for (std::size_t i = k; i < steps.size(); ++i) {
    later += steps[i].stride * steps[i].most;
  }
  if (std::abs(distance) > later) {
    return false;
  }
  if (k == steps.size()) {
    return true;
  }
  const auto [stride, most] = steps[k];
  later -= stride * most;
  const std::int64_t low = std::max(-most, (distance - later) / stride - 1);
  const std::int64_t high = std::min(most, (distance + later) / stride + 1);
  for (std::int64_t t = low; t <= high; ++t) {
    if (bridges(steps, k + 1, distance - t * stride, tries)) {
      return true;
    }
  }
  return false;
}

/// From a tensor's first byte to behind its last.
std::int64_t span(const Tensor& t) {
  std::int64_t last = 0;
  for (std::int64_t d = 0; d < abi::dim(t); ++d) {
    last += (abi::size(t, d) - 1) * abi::stride(t, d);
  }
  return (last + 1) * abi::element_size(t);
}

}  // namespace

Overlap overlap(const Tensor& a, const Tensor& b) {
  const std::int64_t distance =
      static_cast<const char*>(abi::data(b)) - static_cast<const char*>(abi::data(a));
  if (abi::numel(a) == 0 || distance >= span(a) || -distance >= span(b)) {
    return Overlap::None;
  }
  const std::int64_t size = abi::element_size(a);
  if (!same_strides(a, b) || distance % size != 0) {
    return Overlap::Partial;
  }
  if (distance == 0) {
    return Overlap::Same;
  }
  std::vector<Step> steps;
  for (std::int64_t d = 0; d < abi::dim(a); ++d) {
    if (abi::size(a, d) > 1 && abi::stride(a, d) > 0) {
      steps.push_back({abi::stride(a, d), abi::size(a, d) - 1});
    }
  }
  std::sort(steps.begin(), steps.end(),
            [](const Step& x, const Step& y) { return x.stride > y.stride; });
  int tries = 10'000;
  return bridges(steps, 0, distance / size, tries) ? Overlap::Partial : Overlap::None;
}

}  // namespace fusedops
