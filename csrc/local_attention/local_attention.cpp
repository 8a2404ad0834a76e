#include "local_attention/local_attention.h"

#include <cmath>
#include <optional>
#include <tuple>

#include "common/check.h"

namespace fusedops {
namespace {

constexpr const char* kAttentionShape = "(B, H, S, D)";

/// `t`, or a contiguous copy where its rows of D elements are not contiguous.
Tensor with_rows(const Tensor& t) {
  return abi::size(t, 3) <= 1 || abi::stride(t, 3) == 1 ? t : abi::contiguous(t);
}

AttentionTensor attention_tensor(const Tensor& t, void* data) {
  const auto stride = [&](std::int64_t d) { return abi::size(t, d) > 1 ? abi::stride(t, d) : 0; };
  return {data, stride(0), stride(1), stride(2)};
}

/// The kernels write to what is named as their results alone.
AttentionTensor read(const Tensor& t) {
  return attention_tensor(t, const_cast<void*>(abi::data(t)));
}

AttentionTensor written(const Tensor& t) {
  return attention_tensor(t, abi::mutable_data(t));
}

void check_attention(const char* op, const Tensor& q, const Tensor& k, const Tensor& v,
                     std::int64_t window) {
  check_dtype(op, "q", q);
  check_dim(op, "q", q, 4, kAttentionShape);
  check_like(op, "k", k, "q", q);
  check_like(op, "v", v, "q", q);
  if (abi::size(q, 3) < 1 || abi::size(q, 3) > kAttentionDim) {
    refuse(op, "q", "have 1 to " + std::to_string(kAttentionDim) + " elements in a row, D",
           std::to_string(abi::size(q, 3)));
  }
  if (window < 0) {
    refuse(op, "window", "be 0 or more", std::to_string(window));
  }
}

LocalAttention attention_call(const Tensor& q, const Tensor& k, const Tensor& v,
                              std::int64_t window, bool causal, std::optional<double> scale) {
  LocalAttention call{};
  abi::find_dtype(q, call.dtype);
  call.batches = abi::size(q, 0);
  call.heads = abi::size(q, 1);
  call.rows = abi::size(q, 2);
  call.dim = static_cast<int>(abi::size(q, 3));
  call.window = window < call.rows ? window : call.rows;
  call.causal = causal;
  call.scale = scale ? *scale : 1 / std::sqrt(static_cast<double>(call.dim));
  call.q = read(q);
  call.k = read(k);
  call.v = read(v);
  return call;
}

/// One number a row: float32, or float64 for float64.
Tensor row_values(const Tensor& q) {
  const std::vector<std::int64_t> sizes{abi::size(q, 0), abi::size(q, 1), abi::size(q, 2)};
  DType dtype;
  return abi::find_dtype(q, dtype) && dtype == DType::Float64 ? abi::empty(sizes, q)
                                                              : abi::empty_float32(sizes, q);
}

void run_forward(const LocalAttention& call, const Tensor& out) {
#ifdef FUSEDOPS_WITH_CUDA
  if (abi::is_cuda(out)) {
    const std::int32_t device = abi::device_index(out);
    const abi::DeviceGuard guard(device);
    local_attention_forward_cuda(call, abi::current_stream(device));
    return;
  }
#endif
  abi::parallel_for(local_attention_blocks(call), [&](std::int64_t begin, std::int64_t end) {
    local_attention_forward_cpu(call, begin, end);
  });
}

void run_backward(const LocalAttention& call, const Tensor& q) {
#ifdef FUSEDOPS_WITH_CUDA
  if (abi::is_cuda(q)) {
    const std::int32_t device = abi::device_index(q);
    const abi::DeviceGuard guard(device);
    local_attention_backward_cuda(call, abi::current_stream(device));
    return;
  }
#endif
  for (const bool of_keys : {false, true}) {
    abi::parallel_for(local_attention_blocks(call), [&](std::int64_t begin, std::int64_t end) {
      local_attention_backward_cpu(call, of_keys, begin, end);
    });
  }
}

std::tuple<Tensor, Tensor> local_attention_forward(const Tensor& q, const Tensor& k,
                                                   const Tensor& v, std::int64_t window,
                                                   bool causal, std::optional<double> scale) {
  check_attention("local_attention", q, k, v, window);
  const Tensor queries = with_rows(q), keys = with_rows(k), values = with_rows(v);
  Tensor out = abi::empty_like(queries);
  Tensor lse = row_values(q);
  if (abi::numel(out) > 0) {
    LocalAttention call = attention_call(queries, keys, values, window, causal, scale);
    call.out = written(out);
    call.lse = abi::mutable_data(lse);
    run_forward(call, out);
  }
  return {out, lse};
}

void check_row_values(const char* op, const char* argument, const Tensor& t, const Tensor& like,
                      const Tensor& q) {
  check_device(op, argument, t, "q", q);
  if (abi::dtype_name(t) != abi::dtype_name(like)) {
    refuse(op, argument, "be " + abi::dtype_name(like) + " for q's dtype", abi::dtype_name(t));
  }
  if (shape_name(t) != shape_name(like)) {
    refuse(op, argument, "have the shape " + shape_name(like) + ", one number a row of q",
           shape_name(t));
  }
}

std::tuple<Tensor, Tensor, Tensor> local_attention_backward(const Tensor& grad, const Tensor& q,
                                                            const Tensor& k, const Tensor& v,
                                                            const Tensor& out, const Tensor& lse,
                                                            std::int64_t window, bool causal,
                                                            std::optional<double> scale,
                                                            std::optional<Tensor> grad_lse) {
  const char* op = "local_attention_backward";
  check_attention(op, q, k, v, window);
  check_like(op, "grad", grad, "q", q);
  check_like(op, "out", out, "q", q);
  const Tensor delta = row_values(q);
  check_row_values(op, "lse", lse, delta, q);
  if (grad_lse) {
    check_row_values(op, "grad_lse", *grad_lse, delta, q);
  }
  const Tensor queries = with_rows(q), keys = with_rows(k), values = with_rows(v);
  const Tensor grads = with_rows(grad), outs = with_rows(out), sums = abi::contiguous(lse);
  Tensor dq = abi::empty_like(queries), dk = abi::empty_like(keys), dv = abi::empty_like(values);
  if (abi::numel(q) > 0) {
    LocalAttention call = attention_call(queries, keys, values, window, causal, scale);
    call.grad = read(grads);
    call.out = read(outs);
    call.lse = const_cast<void*>(abi::data(sums));
    const Tensor grad_sums = grad_lse ? abi::contiguous(*grad_lse) : sums;
    call.grad_lse = grad_lse ? abi::data(grad_sums) : nullptr;
    call.delta = abi::mutable_data(delta);
    call.dq = written(dq);
    call.dk = written(dk);
    call.dv = written(dv);
    run_backward(call, q);
  }
  return {dq, dk, dv};
}

Tensor local_attention(const Tensor& q, const Tensor& k, const Tensor& v, std::int64_t window,
                       bool causal, std::optional<double> scale) {
  return std::get<0>(local_attention_forward(q, k, v, window, causal, scale));
}

FUSEDOPS_LIBRARY(m) {
  m.def(
      "local_attention(Tensor q, Tensor k, Tensor v, int window, bool causal=False, "
      "float? scale=None) -> Tensor");
  m.def(
      "local_attention_forward(Tensor q, Tensor k, Tensor v, int window, bool causal=False, "
      "float? scale=None) -> (Tensor out, Tensor lse)");
  m.def(
      "local_attention_backward(Tensor grad, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, "
      "int window, bool causal=False, float? scale=None, Tensor? grad_lse=None) "
      "-> (Tensor dq, Tensor dk, Tensor dv)");
}

FUSEDOPS_LIBRARY_IMPL(CPU, m) {
  m.impl("local_attention", FUSEDOPS_BOX(local_attention));
  m.impl("local_attention_forward", FUSEDOPS_BOX(local_attention_forward));
  m.impl("local_attention_backward", FUSEDOPS_BOX(local_attention_backward));
}

#ifdef FUSEDOPS_WITH_CUDA
FUSEDOPS_LIBRARY_IMPL(CUDA, m) {
  m.impl("local_attention", FUSEDOPS_BOX(local_attention));
  m.impl("local_attention_forward", FUSEDOPS_BOX(local_attention_forward));
  m.impl("local_attention_backward", FUSEDOPS_BOX(local_attention_backward));
}
#endif

}  // namespace
}  // namespace fusedops
