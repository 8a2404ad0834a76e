#include "common/pointwise.h"

#include <stdexcept>
#include <string>

namespace fusedops {
namespace {

[[noreturn]] void refuse(const char* op, const char* argument, const std::string& expected,
                         const std::string& given) {
  throw std::runtime_error("fusedops::" + std::string(op) + ": " + argument + " must " + expected +
                           ", but got " + given);
}

std::string shape_name(const Tensor& t) {
  std::string name = "[";
  for (std::int64_t d = 0; d < abi::dim(t); ++d) {
    name += (d == 0 ? "" : ", ") + std::to_string(abi::size(t, d));
  }
  return name + "]";
}

bool same_shape(const Tensor& a, const Tensor& b) {
  if (abi::dim(a) != abi::dim(b)) {
    return false;
  }
  for (std::int64_t d = 0; d < abi::dim(a); ++d) {
    if (abi::size(a, d) != abi::size(b, d)) {
      return false;
    }
  }
  return true;
}

/// Dimensions of size 1 are never stepped along, so their strides say nothing.
bool same_strides(const Tensor& a, const Tensor& b) {
  for (std::int64_t d = 0; d < abi::dim(a); ++d) {
    if (abi::size(a, d) > 1 && abi::stride(a, d) != abi::stride(b, d)) {
      return false;
    }
  }
  return true;
}

/// Whether the elements fill one run of memory, each once: following the strides from the smallest
/// up, each must be the number of elements that the dimensions before it span.
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

}  // namespace

DType check_dtype(const char* op, const char* argument, const Tensor& t) {
  DType dtype;
  if (!abi::find_dtype(t, dtype)) {
    refuse(op, argument, "be a float16, bfloat16, float32 or float64 tensor", abi::dtype_name(t));
  }
  return dtype;
}

void check_like(const char* op, const char* argument, const Tensor& t, const char* like_argument,
                const Tensor& like) {
  const std::string of = std::string(" of ") + like_argument + ", ";
  if (abi::device_name(t) != abi::device_name(like)) {
    refuse(op, argument, "be on the device" + of + abi::device_name(like), abi::device_name(t));
  }
  if (abi::dtype_name(t) != abi::dtype_name(like)) {
    refuse(op, argument, "have the dtype" + of + abi::dtype_name(like), abi::dtype_name(t));
  }
  if (!same_shape(t, like)) {
    refuse(op, argument, "have the shape" + of + shape_name(like), shape_name(t));
  }
}

Tensor dense(const Tensor& t) {
  return lies_densely(t) ? t : abi::clone(t);
}

Tensor arranged_like(const Tensor& t, const Tensor& like) {
  if (same_strides(t, like)) {
    return t;
  }
  Tensor arranged = abi::empty_like(like);
  abi::copy(arranged, t);
  return arranged;
}

}  // namespace fusedops
