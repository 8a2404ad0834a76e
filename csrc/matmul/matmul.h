#pragma once

#include <array>
#include <cstdint>

#include "common/dtype.h"

namespace fusedops {

/// Dimensions of a batch that a kernel steps through; what has more is several launches.
constexpr int kBatchDims = 2;

/// One factor of out = a · b, as the kernels see it: `a` as m rows of k elements, `b` as the n rows
/// of its transpose. Either k or the rows are contiguous in memory, the other dimension steps by
/// `ld` elements, which may be 0 or overlap. Nothing is known of its alignment beyond the
/// element's.
struct MatmulOperand {
  const void* data;
  std::int64_t ld;
  bool k_major;                                       // k is contiguous
  std::array<std::int64_t, kBatchDims> batch_stride;  // in elements; 0 where broadcast
};

inline std::int64_t element_bytes(DType dtype) {
  return dtype == DType::Float64 ? 8 : dtype == DType::Float32 ? 4 : 2;
}

/// One product of two batches of matrices. No size is 0 but k, which then gives zeros.
struct MatmulParams {
  DType dtype;
  std::int64_t m, n, k;
  std::array<std::int64_t, kBatchDims> batch;
  MatmulOperand a, b;
  void* out;  // (batch, m, n), contiguous; overlaps no input
};

void matmul_cuda(const MatmulParams&, void* stream);

/// On the tensor cores of SM 8.0 and later, float16 and bfloat16. False, with nothing done, where
/// the current device or this library's code for it has none.
bool matmul_mma_cuda(const MatmulParams&, void* stream);

/// The same by the instructions that SM 9.0 alone has; false also for what they do not take.
bool matmul_sm90a_cuda(const MatmulParams&, void* stream);

/// Of any dtype, by fused multiply-add.
void matmul_simt_cuda(const MatmulParams&, void* stream);

}  // namespace fusedops
