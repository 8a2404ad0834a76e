#include "host.h"

// Operators whose gradients are at fault. Those are formulas of torch's operators, in gradients.py;
// the library of an operator and its twin is the same.

namespace faultops {
namespace {

Tensor square(const Tensor& x) {
  return map(FAULTOPS_KERNELS(square, square), x);
}

/// x and y have one shape, dtype and device.
Tensor multiply(const Tensor& x, const Tensor& y) {
  if (!x.sizes().equals(y.sizes()) || x.scalar_type() != y.scalar_type() ||
      x.is_cuda() != y.is_cuda() || x.get_device_index() != y.get_device_index()) {
    throw std::runtime_error("faultops: y must have the shape, dtype and device of x");
  }
  const Tensor in = torch::stable::contiguous(x);
  const Tensor second = torch::stable::contiguous(y);
  Tensor out = torch::stable::empty_like(in);
  if (in.numel() > 0) {
    Call call = call_of(in, out);
    call.y = second.const_data_ptr();
    run(FAULTOPS_KERNELS(multiply, multiply), call, out);
  }
  return out;
}

/// `index` holds int64 numbers of x's elements.
Tensor gather_sum(const Tensor& x, const Tensor& index) {
  if (index.scalar_type() != torch::headeronly::ScalarType::Long) {
    throw std::runtime_error("faultops: index must be an int64 tensor");
  }
  const Tensor in = torch::stable::contiguous(x);
  const Tensor places = torch::stable::contiguous(index);
  Tensor out = torch::stable::new_empty(x, {});
  Call call = call_of(in, out);
  call.n = places.numel();
  call.y = places.const_data_ptr();
  run(FAULTOPS_KERNELS(gather_sum, gather_sum), call, out);
  return out;
}

STABLE_TORCH_LIBRARY_FRAGMENT(faultops, m) {
  FAULTOPS_PAIR(m, wrong_gradient, "(Tensor x) -> Tensor");
  FAULTOPS_PAIR(m, gradient_missing, "(Tensor x, Tensor y) -> Tensor");
  FAULTOPS_PAIR(m, nondeterministic_gradient, "(Tensor x, Tensor index) -> Tensor");
}

FAULTOPS_IMPL(m) {
  m.impl("wrong_gradient", TORCH_BOX(&square));
  m.impl("wrong_gradient_clean", TORCH_BOX(&square));
  m.impl("gradient_missing", TORCH_BOX(&multiply));
  m.impl("gradient_missing_clean", TORCH_BOX(&multiply));
  m.impl("nondeterministic_gradient", TORCH_BOX(&gather_sum));
  m.impl("nondeterministic_gradient_clean", TORCH_BOX(&gather_sum));
}

}  // namespace
}  // namespace faultops
