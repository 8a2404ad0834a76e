#pragma once

#include <array>
#include <cstdint>

#include "common/dtype.h"

namespace fusedops {

/// One pointwise call: out[i] = f(in[0][i], …) for 0 <= i < n.
///
/// Every pointer is to `n` elements of `dtype` that follow each other in memory, aligned to the
/// element and no further. `out` overlaps no input.
template <int Arity>
struct Operands {
  DType dtype;
  std::int64_t n;
  std::array<const void*, Arity> in;
  void* out;
};

}  // namespace fusedops
