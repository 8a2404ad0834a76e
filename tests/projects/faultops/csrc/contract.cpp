#include "host.h"

// Operators that do not do what their schema or their fake kernel says. Values are right all the
// same. Fake kernels are in contract.py.

namespace faultops {
namespace {

Tensor clamp(const Tensor& x) {
  return map(FAULTOPS_KERNELS(clamp, clamp), x);
}

/// Clamps x too. Calling it again gives the same.
Tensor undeclared_mutation(const Tensor& x) {
  Tensor out = clamp(x);
  Tensor argument = x;
  torch::stable::copy_(argument, out);
  return out;
}

/// x itself, where it lies contiguously.
Tensor aliasing_output(const Tensor& x) {
  return torch::stable::contiguous(x);
}

Tensor aliasing_output_clean(const Tensor& x) {
  Tensor out = torch::stable::new_empty(x, x.sizes());
  torch::stable::copy_(out, x);
  return out;
}

STABLE_TORCH_LIBRARY_FRAGMENT(faultops, m) {
  FAULTOPS_PAIR(m, fake_missing, "(Tensor x) -> Tensor");
  FAULTOPS_PAIR(m, fake_wrong_shape, "(Tensor x) -> Tensor");
  FAULTOPS_PAIR(m, undeclared_mutation, "(Tensor x) -> Tensor");
  FAULTOPS_PAIR(m, aliasing_output, "(Tensor x) -> Tensor");
}

FAULTOPS_IMPL(m) {
  m.impl("fake_missing", TORCH_BOX(&twice));
  m.impl("fake_missing_clean", TORCH_BOX(&twice));
  m.impl("fake_wrong_shape", TORCH_BOX(&twice));
  m.impl("fake_wrong_shape_clean", TORCH_BOX(&twice));
  m.impl("undeclared_mutation", TORCH_BOX(&undeclared_mutation));
  m.impl("undeclared_mutation_clean", TORCH_BOX(&clamp));
  m.impl("aliasing_output", TORCH_BOX(&aliasing_output));
  m.impl("aliasing_output_clean", TORCH_BOX(&aliasing_output_clean));
}

}  // namespace
}  // namespace faultops
