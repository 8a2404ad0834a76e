#pragma once

#include <cstdint>
#include <string>

#include "abi/tensor.h"

// Checks of arguments. Each throws std::runtime_error that names the operator, the argument, what
// it must be and what it is: "fusedops::OP: ARGUMENT must EXPECTED, but got GIVEN".

namespace fusedops {

using abi::Tensor;

[[noreturn]] void refuse(const char* op, const char* argument, const std::string& expected,
                         const std::string& given);

/// As torch writes it, "[2, 3]".
std::string shape_name(const Tensor& t);

/// Refuses a dtype that kernels do not take.
DType check_dtype(const char* op, const char* argument, const Tensor& t);

/// `meaning` says what the dimensions are: "(N, C, H, W)".
void check_dim(const char* op, const char* argument, const Tensor& t, std::int64_t dims,
               const char* meaning);

void check_device(const char* op, const char* argument, const Tensor& t, const char* like_argument,
                  const Tensor& like);
void check_same_dtype(const char* op, const char* argument, const Tensor& t,
                      const char* like_argument, const Tensor& like);
void check_same_shape(const char* op, const char* argument, const Tensor& t,
                      const char* like_argument, const Tensor& like);
/// All three.
void check_like(const char* op, const char* argument, const Tensor& t, const char* like_argument,
                const Tensor& like);

}  // namespace fusedops
