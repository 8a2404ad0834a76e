#include <type_traits>

#include "kernels.h"

namespace faultops::cpu {
namespace {

template <class F>
void fill(const Call& call, const F& element) {
  with_type(call.dtype, [&](auto tag) {
    using T = decltype(tag);
    const auto x = static_cast<const T*>(call.x);
    const auto y = static_cast<const T*>(call.y);
    const auto out = static_cast<T*>(call.out);
    for (std::int64_t i = 0; i < call.n; ++i) {
      out[i] = element(x, y, i);
    }
  });
}

}  // namespace

void twice(const Call& call) {
  fill(call, [](auto x, auto, std::int64_t i) { return 2 * x[i]; });
}

void clamp(const Call& call) {
  fill(call, [](auto x, auto, std::int64_t i) { return x[i] < -1 ? -1 : x[i] > 1 ? 1 : x[i]; });
}

void square(const Call& call) {
  fill(call, [](auto x, auto, std::int64_t i) { return x[i] * x[i]; });
}

void multiply(const Call& call) {
  fill(call, [](auto x, auto y, std::int64_t i) { return x[i] * y[i]; });
}

void difference(const Call& call) {
  fill(call, [&](auto x, auto, std::int64_t i) { return (i + 1 < call.n ? x[i + 1] : 0) - x[i]; });
}

void previous(const Call& call) {
  fill(call, [](auto x, auto, std::int64_t i) { return x[i] + (i % kTile > 0 ? x[i - 1] : 0); });
}

void row_start(const Call& call) {
  fill(call, [&](auto x, auto, std::int64_t i) {
    return x[i] * static_cast<std::decay_t<decltype(*x)>>(i * call.columns);
  });
}

void gather_sum(const Call& call) {
  with_type(call.dtype, [&](auto tag) {
    using T = decltype(tag);
    const auto x = static_cast<const T*>(call.x);
    const auto index = static_cast<const std::int64_t*>(call.y);
    double sum = 0;
    for (std::int64_t i = 0; i < call.n; ++i) {
      sum += x[index[i]] / (1.0 + static_cast<double>(i));
    }
    *static_cast<T*>(call.out) = static_cast<T>(sum);
  });
}

}  // namespace faultops::cpu
