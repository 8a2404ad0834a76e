#include "common/pointwise.h"

namespace fusedops {

bool same_strides(const Tensor& a, const Tensor& b) {
  for (std::int64_t d = 0; d < abi::dim(a); ++d) {
    if (abi::size(a, d) > 1 && abi::stride(a, d) != abi::stride(b, d)) {
      return false;
    }
  }
  return true;
}

/// Following the strides from the smallest up, each must be the number of elements that the
/// dimensions before it span.
bool lies_densely(const Tensor& t) {
  const std::int64_t dims = abi::dim(t);
  std::int64_t left = 0;
  for (std::int64_t d = 0; d < dims; ++d) {
    left += abi::size(t, d) > 1;
  }
  for (std::int64_t span = 1; left > 0; --left) {
    std::int64_t d = 0;
    while (d < dims && !(abi::size(t, d) > 1 && abi::stride(t, d) == span)) {
      ++d;
    }
    if (d == dims) {
      return false;
    }
    span *= abi::size(t, d);
  }
  return true;
}

Tensor dense(const Tensor& t) {
  return lies_densely(t) ? t : abi::clone(t);
}

Tensor arranged_like(const Tensor& t, const Tensor& like) {
  if (same_strides(t, like)) {
    return t;
  }
  Tensor arranged = abi::empty_as(like);
  abi::copy(arranged, t);
  return arranged;
}

}  // namespace fusedops
