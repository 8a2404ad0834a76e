#include "common/check.h"

#include <stdexcept>

namespace fusedops {
namespace {

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

}  // namespace

void refuse(const char* op, const char* argument, const std::string& expected,
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

DType check_dtype(const char* op, const char* argument, const Tensor& t) {
  DType dtype;
  if (!abi::find_dtype(t, dtype)) {
    refuse(op, argument, "be a float16, bfloat16, float32 or float64 tensor", abi::dtype_name(t));
  }
  return dtype;
}

void check_like(const char* op, const char* argument, const Tensor& t, const char* like_argument,
                const Tensor& like) {
  check_device(op, argument, t, like_argument, like);
  check_same_dtype(op, argument, t, like_argument, like);
  check_same_shape(op, argument, t, like_argument, like);
}

void check_dim(const char* op, const char* argument, const Tensor& t, std::int64_t dims,
               const char* meaning) {
  if (abi::dim(t) != dims) {
    refuse(op, argument, "have " + std::to_string(dims) + " dimensions, " + meaning,
           "the shape " + shape_name(t));
  }
}

void check_device(const char* op, const char* argument, const Tensor& t, const char* like_argument,
                  const Tensor& like) {
  if (abi::device_name(t) != abi::device_name(like)) {
    refuse(op, argument,
           std::string("be on the device of ") + like_argument + ", " + abi::device_name(like),
           abi::device_name(t));
  }
}

void check_same_dtype(const char* op, const char* argument, const Tensor& t,
                      const char* like_argument, const Tensor& like) {
  if (abi::dtype_name(t) != abi::dtype_name(like)) {
    refuse(op, argument,
           std::string("have the dtype of ") + like_argument + ", " + abi::dtype_name(like),
           abi::dtype_name(t));
  }
}

void check_same_shape(const char* op, const char* argument, const Tensor& t,
                      const char* like_argument, const Tensor& like) {
  if (!same_shape(t, like)) {
    refuse(op, argument,
           std::string("have the shape of ") + like_argument + ", " + shape_name(like),
           shape_name(t));
  }
}

}  // namespace fusedops
