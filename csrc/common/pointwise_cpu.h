#pragma once

#include <cstdint>

#include "common/convert_cpu.h"
#include "common/operands.h"

namespace fusedops {

/// Compiles a loop twice, and takes the wider one where the processor has it: the 16-bit types
/// spend their time in converting, not in memory.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FUSEDOPS_WIDE_LOOP __attribute__((target_clones("avx2", "default")))
#else
#define FUSEDOPS_WIDE_LOOP
#endif

// `__restrict__` because `out` overlaps no input: without it the compiler guards each loop with
// overlap tests.

template <class Op, class Storage>
FUSEDOPS_WIDE_LOOP void pointwise_loop(Op op, std::int64_t n, const Storage* __restrict__ x,
                                       Storage* __restrict__ out) {
  for (std::int64_t i = 0; i < n; ++i) {
    out[i] = narrow<Storage>(op(widen(x[i])));
  }
}

template <class Op, class Storage>
FUSEDOPS_WIDE_LOOP void pointwise_loop(Op op, std::int64_t n, const Storage* __restrict__ x,
                                       const Storage* __restrict__ y, Storage* __restrict__ out) {
  for (std::int64_t i = 0; i < n; ++i) {
    out[i] = narrow<Storage>(op(widen(x[i]), widen(y[i])));
  }
}

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
      pointwise_loop(op, end - begin, in(0), out);
    } else {
      pointwise_loop(op, end - begin, in(0), in(1), out);
    }
  });
}

}  // namespace fusedops
