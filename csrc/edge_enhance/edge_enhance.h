#pragma once

#include <cstdint>

#include "common/dtype.h"
#include "common/host_device.h"

namespace fusedops {

/// One call over `planes` images of `height` rows of `width` elements, which follow each other in
/// memory: out = x + amount * (x - blur(x)), blur being the filter of `weight` along rows and
/// columns, with borders reflected. Both sides are longer than `radius`. `out` overlaps no input.
///
/// The adjoint is the same between two scalings. Reflected borders make of the rows (and of the
/// columns) one period of a sequence in which the first and the last stand once and all others
/// twice. The symmetric filter is its own adjoint there, and so it is here once those two, which
/// count half as much, are doubled before and halved after.
struct EdgeEnhance {
  DType dtype;
  std::int64_t planes, height, width;
  int radius;  // 1 or 2
  double amount;
  double weight[3];  // of the centre, its neighbours, theirs
  bool adjoint;
  const void* in;
  void* out;
};

/// Rows and columns are at most so many, for which 32 bits count the bytes of a row.
constexpr std::int64_t kEdgeMost = std::int64_t{1} << 28;

/// Where row or column `i` of `n` reads from: -radius <= i < n + radius and n > radius.
template <class Int>
FUSEDOPS_HOST_DEVICE inline Int reflected(Int i, Int n) {
  const Int beyond = (i < 0 ? -i : i) - (n - 1);
  return (n - 1) - (beyond < 0 ? -beyond : beyond);
}

/// Rows [begin, end) of all planes' rows, counted through. Ranges may run in parallel.
void edge_enhance_cpu(const EdgeEnhance&, std::int64_t begin, std::int64_t end);
void edge_enhance_cuda(const EdgeEnhance&, void* stream);

}  // namespace fusedops
