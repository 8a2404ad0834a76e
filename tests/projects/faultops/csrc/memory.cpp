#include "host.h"

// Memory that a kernel must not touch, or not keep. Values are right all the same.

namespace faultops {
namespace {

Tensor out_of_bounds_write(const Tensor& x) {
  return map(FAULTOPS_KERNELS(twice, out_of_bounds_write), x);
}

Tensor out_of_bounds_read(const Tensor& x) {
  return map(FAULTOPS_KERNELS(difference, out_of_bounds_read), x);
}

Tensor out_of_bounds_read_clean(const Tensor& x) {
  return map(FAULTOPS_KERNELS(difference, difference), x);
}

Tensor uninitialised_read(const Tensor& x) {
  const Tensor in = torch::stable::contiguous(x);
  Tensor out = torch::stable::empty_like(in);
  if (in.numel() > 0) {
    Tensor scratch = torch::stable::empty_like(in);
    Call call = call_of(in, out);
    call.scratch = scratch.mutable_data_ptr();
    run(FAULTOPS_KERNELS(twice, uninitialised_read), call, out);
  }
  return out;
}

Tensor leaked_allocation(const Tensor& x) {
  return map(FAULTOPS_KERNELS(twice, leaked_allocation), x);
}

STABLE_TORCH_LIBRARY_FRAGMENT(faultops, m) {
  FAULTOPS_PAIR(m, out_of_bounds_write, "(Tensor x) -> Tensor");
  FAULTOPS_PAIR(m, out_of_bounds_read, "(Tensor x) -> Tensor");
  FAULTOPS_PAIR(m, uninitialised_read, "(Tensor x) -> Tensor");
  FAULTOPS_PAIR(m, leaked_allocation, "(Tensor x) -> Tensor");
}

FAULTOPS_IMPL(m) {
  m.impl("out_of_bounds_write", TORCH_BOX(&out_of_bounds_write));
  m.impl("out_of_bounds_write_clean", TORCH_BOX(&twice));
  m.impl("out_of_bounds_read", TORCH_BOX(&out_of_bounds_read));
  m.impl("out_of_bounds_read_clean", TORCH_BOX(&out_of_bounds_read_clean));
  m.impl("uninitialised_read", TORCH_BOX(&uninitialised_read));
  m.impl("uninitialised_read_clean", TORCH_BOX(&twice));
  m.impl("leaked_allocation", TORCH_BOX(&leaked_allocation));
  m.impl("leaked_allocation_clean", TORCH_BOX(&twice));
}

}  // namespace
}  // namespace faultops
