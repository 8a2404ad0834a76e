#pragma once

#include <cstdint>

#include "common/dtype.h"
#include "common/host_device.h"

namespace fusedops {

/// The greatest D: what a thread block's shared memory and a thread's registers hold.
constexpr int kAttentionDim = 128;

/// A (B, H, S, D) tensor whose rows of D elements are contiguous. Strides are in elements, and 0
/// where a dimension has one element.
struct AttentionTensor {
  void* data;
  std::int64_t batch, head, row;

  template <class Storage>
  FUSEDOPS_HOST_DEVICE Storage* matrix(std::int64_t b, std::int64_t h) const {
    return static_cast<Storage*>(data) + b * batch + h * head;
  }
};

/// One call. Forward reads q, k, v and writes out, lse; backward reads all that has no d before it
/// and writes the rest. lse, grad_lse and delta are contiguous (B, H, S) of the compute type;
/// grad_lse may be null.
struct LocalAttention {
  DType dtype;
  std::int64_t batches, heads, rows;
  int dim;
  /// Of a query, at most the number of rows.
  std::int64_t window;
  bool causal;
  double scale;
  AttentionTensor q, k, v, out;
  void* lse;
  AttentionTensor grad;
  const void* grad_lse;
  /// What the scores' gradient subtracts: rowsum(grad · out) - grad_lse.
  void* delta;
  AttentionTensor dq, dk, dv;
};

/// Row i of a block meets columns [i - before, i + after].
struct AttentionBand {
  std::int64_t before, after;

  FUSEDOPS_HOST_DEVICE bool holds(std::int64_t row, std::int64_t column) const {
    return column >= row - before && column <= row + after;
  }
};

/// The keys that a query sees, and, `of_keys`, the queries that see a key.
FUSEDOPS_HOST_DEVICE inline AttentionBand band(const LocalAttention& call, bool of_keys) {
  const std::int64_t ahead = call.causal ? 0 : call.window;
  return of_keys ? AttentionBand{ahead, call.window} : AttentionBand{call.window, ahead};
}

/// Blocks of rows that one CPU thread takes at a time, of all matrices together.
std::int64_t local_attention_blocks(const LocalAttention& call);
void local_attention_forward_cpu(const LocalAttention& call, std::int64_t begin, std::int64_t end);
/// `of_keys` false: dq and delta; true: dk and dv, which need every delta.
void local_attention_backward_cpu(const LocalAttention& call, bool of_keys, std::int64_t begin,
                                  std::int64_t end);

/// On the current device, with the tensor cores where it and the dtype have them.
void local_attention_forward_cuda(const LocalAttention& call, void* stream);
void local_attention_backward_cuda(const LocalAttention& call, void* stream);

/// The same on the tensor cores: float16 and bfloat16, SM 8.0, scale finite and not 0, at most 2^29
/// rows, heads and batches.
void local_attention_forward_mma(const LocalAttention& call, void* stream);
void local_attention_backward_mma(const LocalAttention& call, void* stream);

/// The same on SM 9.0 by its own instructions, where FUSEDOPS_WITH_SM90A. False, and nothing begun,
/// on other devices and where D is above 64 or a row is not on whole 16 bytes.
bool local_attention_forward_sm90a(const LocalAttention& call, void* stream);
bool local_attention_backward_sm90a(const LocalAttention& call, void* stream);

}  // namespace fusedops
