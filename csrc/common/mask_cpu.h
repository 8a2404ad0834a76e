#pragma once

#include <algorithm>
#include <cstdint>

#include "common/pointwise_cpu.h"

// Plain loops: what is differentiated on the CPU keeps its input instead of a mask.

namespace fusedops {

/// `pointwise_cpu<Op>`, and `Op<T>(params).inside(x)` of each element as a bit of `mask`.
template <template <class> class Op, class Params>
void mask_writing_cpu(const Operands<1>& operands, const Params& params, std::uint8_t* mask,
                      std::int64_t begin, std::int64_t end) {
  pointwise_cpu<Op>(operands, params, begin, end);
  with_storage(operands.dtype, [&](auto tag) {
    using Storage = decltype(tag);
    const Op<Compute<Storage>> op(params);
    const auto in = static_cast<const Storage*>(operands.in[0]);
    for (std::int64_t first = begin; first < end; first += 8) {
      const auto count = static_cast<int>(std::min<std::int64_t>(8, end - first));
      unsigned bits = 0;
      for (int e = 0; e < count; ++e) {
        bits |= static_cast<unsigned>(op.inside(widen(in[first + e]))) << e;
      }
      mask[first / 8] = static_cast<std::uint8_t>(bits);
    }
  });
}

/// `Op<T>(params)(x, bit)` of each element.
template <template <class> class Op, class Params>
void mask_reading_cpu(const Operands<1>& operands, const Params& params, const std::uint8_t* mask,
                      std::int64_t begin, std::int64_t end) {
  with_storage(operands.dtype, [&](auto tag) {
    using Storage = decltype(tag);
    const Op<Compute<Storage>> op(params);
    const auto in = static_cast<const Storage*>(operands.in[0]);
    const auto out = static_cast<Storage*>(operands.out);
    for (std::int64_t i = begin; i < end; ++i) {
      out[i] = narrow<Storage>(op(widen(in[i]), (mask[i / 8] >> (i % 8) & 1) != 0));
    }
  });
}

}  // namespace fusedops
