#pragma once

#include "abi/tensor.h"

namespace fusedops {

using abi::Tensor;

enum class Overlap { None, Partial, Same };

/// The memory that two tensors of one shape and dtype share. `Same` is: each element with the
/// other's of the same index. Exact for equal strides. For others, ranges of memory that meet are
/// `Partial`, though the elements may lie between each other.
Overlap overlap(const Tensor& a, const Tensor& b);

}  // namespace fusedops
