#include "host.h"

// Launches that are right for ordinary tensors on the default stream of the current device alone.

namespace faultops {
namespace {

Tensor row_start(const Kernels& kernels, const Tensor& x, std::int64_t columns) {
  const Tensor in = torch::stable::contiguous(x);
  Tensor out = torch::stable::empty_like(in);
  if (in.numel() > 0) {
    Call call = call_of(in, out);
    call.columns = columns;
    run(kernels, call, out);
  }
  return out;
}

Tensor int_overflow(const Tensor& x, std::int64_t columns) {
  return row_start(FAULTOPS_KERNELS(row_start, int_overflow), x, columns);
}

Tensor int_overflow_clean(const Tensor& x, std::int64_t columns) {
  return row_start(FAULTOPS_KERNELS(row_start, row_start), x, columns);
}

/// Does not ask whether there is anything to do.
Tensor empty_grid(const Tensor& x) {
  const Tensor in = torch::stable::contiguous(x);
  Tensor out = torch::stable::empty_like(in);
  run(FAULTOPS_KERNELS(twice, empty_grid), call_of(in, out), out);
  return out;
}

Tensor misaligned_vector(const Tensor& x) {
  return map(FAULTOPS_KERNELS(twice, misaligned_vector), x);
}

Tensor sync_in_capture(const Tensor& x) {
  return map(FAULTOPS_KERNELS(twice, sync_in_capture), x);
}

/// Reads x's memory in its order, whatever the strides.
Tensor strides_ignored(const Tensor& x) {
  Tensor out = torch::stable::new_empty(x, x.sizes());
  if (x.numel() > 0) {
    run(FAULTOPS_KERNELS(twice, twice), call_of(x, out), out);
  }
  return out;
}

Tensor default_stream(const Tensor& x) {
#ifdef FAULTOPS_WITH_CUDA
  if (x.is_cuda() && x.numel() > 0) {
    const Tensor in = torch::stable::contiguous(x);
    Tensor out = torch::stable::empty_like(in);
    const torch::stable::accelerator::DeviceGuard guard(out.get_device_index());
    cuda::twice(call_of(in, out));  // whose stream is null
    return out;
  }
#endif
  return twice(x);
}

Tensor missing_guard(const Tensor& x) {
#ifdef FAULTOPS_WITH_CUDA
  if (x.is_cuda() && x.numel() > 0) {
    const Tensor in = torch::stable::contiguous(x);
    Tensor out = torch::stable::empty_like(in);
    Call call = call_of(in, out);
    call.stream = current_stream(out);
    cuda::twice(call);  // on whichever device is current
    return out;
  }
#endif
  return twice(x);
}

STABLE_TORCH_LIBRARY_FRAGMENT(faultops, m) {
  FAULTOPS_PAIR(m, int_overflow, "(Tensor x, int columns) -> Tensor");
  FAULTOPS_PAIR(m, empty_grid, "(Tensor x) -> Tensor");
  FAULTOPS_PAIR(m, misaligned_vector, "(Tensor x) -> Tensor");
  FAULTOPS_PAIR(m, sync_in_capture, "(Tensor x) -> Tensor");
  FAULTOPS_PAIR(m, strides_ignored, "(Tensor x) -> Tensor");
  FAULTOPS_PAIR(m, default_stream, "(Tensor x) -> Tensor");
  FAULTOPS_PAIR(m, missing_guard, "(Tensor x) -> Tensor");
}

FAULTOPS_IMPL(m) {
  m.impl("int_overflow", TORCH_BOX(&int_overflow));
  m.impl("int_overflow_clean", TORCH_BOX(&int_overflow_clean));
  m.impl("empty_grid", TORCH_BOX(&empty_grid));
  m.impl("empty_grid_clean", TORCH_BOX(&twice));
  m.impl("misaligned_vector", TORCH_BOX(&misaligned_vector));
  m.impl("misaligned_vector_clean", TORCH_BOX(&twice));
  m.impl("sync_in_capture", TORCH_BOX(&sync_in_capture));
  m.impl("sync_in_capture_clean", TORCH_BOX(&twice));
  m.impl("strides_ignored", TORCH_BOX(&strides_ignored));
  m.impl("strides_ignored_clean", TORCH_BOX(&twice));
  m.impl("default_stream", TORCH_BOX(&default_stream));
  m.impl("default_stream_clean", TORCH_BOX(&twice));
  m.impl("missing_guard", TORCH_BOX(&missing_guard));
  m.impl("missing_guard_clean", TORCH_BOX(&twice));
}

}  // namespace
}  // namespace faultops
