#pragma once

#include <algorithm>
#include <cstdint>

#include "common/convert_wide.h"
#include "common/operands.h"
#include "common/wide.h"

namespace fusedops {

/// How many elements are converted at a time where that is done by array: few enough for a stack
/// that stays in the first cache.
constexpr std::int64_t kChunk = 256;

struct PointwiseLoop {
  // `__restrict__` because `out` overlaps no input: without it the compiler guards each loop with
  // overlap tests.

  template <class Isa, class Op, class Storage>
  FUSEDOPS_INLINE static void run(Isa isa, Op op, std::int64_t n, const Storage* __restrict__ x,
                                  Storage* __restrict__ out) {
    if constexpr (kConvertsByArray<Isa, Storage>) {
      float wide[kChunk];
      for (std::int64_t begin = 0; begin < n; begin += kChunk) {
        const std::int64_t count = std::min(kChunk, n - begin);
        widen_all(isa, x + begin, count, wide);
        for (std::int64_t i = 0; i < count; ++i) {
          wide[i] = op(wide[i]);
        }
        narrow_all(isa, wide, count, out + begin);
      }
    } else {
      for (std::int64_t i = 0; i < n; ++i) {
        out[i] = narrow<Storage>(op(widen(x[i])));
      }
    }
  }

  template <class Isa, class Op, class Storage>
  FUSEDOPS_INLINE static void run(Isa isa, Op op, std::int64_t n, const Storage* __restrict__ x,
                                  const Storage* __restrict__ y, Storage* __restrict__ out) {
    if constexpr (kConvertsByArray<Isa, Storage>) {
      float wide[kChunk];
      float other[kChunk];
      for (std::int64_t begin = 0; begin < n; begin += kChunk) {
        const std::int64_t count = std::min(kChunk, n - begin);
        widen_all(isa, x + begin, count, wide);
        widen_all(isa, y + begin, count, other);
        for (std::int64_t i = 0; i < count; ++i) {
          wide[i] = op(wide[i], other[i]);
        }
        narrow_all(isa, wide, count, out + begin);
      }
    } else {
      for (std::int64_t i = 0; i < n; ++i) {
        out[i] = narrow<Storage>(op(widen(x[i]), widen(y[i])));
      }
    }
  }
};

/// Applies `Op<T>(params)` to elements [begin, end) of `operands`, T being the dtype's compute
/// type. Ranges may run in parallel.
template <template <class> class Op, int Arity, class Params>
void pointwise_cpu(const Operands<Arity>& operands, const Params& params, std::int64_t begin,
                   std::int64_t end) {
  static_assert(Arity == 1 || Arity == 2);
  with_storage(operands.dtype, [&](auto tag) {
    using Storage = decltype(tag);
    const Op<Compute<Storage>> op(params);
    const auto in = [&](int k) { return static_cast<const Storage*>(operands.in[k]) + begin; };
    const auto out = static_cast<Storage*>(operands.out) + begin;
    if constexpr (Arity == 1) {
      run_wide<PointwiseLoop>(op, end - begin, in(0), out);
    } else {
      run_wide<PointwiseLoop>(op, end - begin, in(0), in(1), out);
    }
  });
}

}  // namespace fusedops
