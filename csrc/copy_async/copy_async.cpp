#include "copy_async/copy_async.h"

#include "common/check.h"
#include "common/overlap.h"
#include "common/pointwise.h"

namespace fusedops {
namespace {

/// Bytes that a CPU thread takes at least.
constexpr std::int64_t kCopyGrain = std::int64_t{1} << 18;

/// `x` to `out`, which has its shape, dtype and device and none of its memory.
void copy_to(const Tensor& x, Tensor& out) {
  if (abi::numel(x) == 0) {
    return;
  }
  if (!(lies_densely(x) && same_strides(out, x))) {
    abi::copy(out, x);
    return;
  }
  const void* const from = abi::data(x);
  void* const to = abi::mutable_data(out);
  const std::int64_t size = abi::element_size(x);
#ifdef FUSEDOPS_WITH_CUDA
  if (abi::is_cuda(x)) {
    const std::int32_t device = abi::device_index(x);
    const abi::DeviceGuard guard(device);
    copy_async_cuda(from, to, abi::numel(x) * size, abi::current_stream(device));
    return;
  }
#endif
  abi::parallel_over(out, kCopyGrain / size, [&](std::int64_t begin, std::int64_t end) {
    copy_async_cpu(from, to, begin * size, end * size);
  });
}

Tensor copy_async(const Tensor& x) {
  Tensor out = abi::empty_like(x);
  copy_to(x, out);
  return out;
}

void copy_async_out(const Tensor& x, Tensor out) {
  const char* const op = "copy_async_out";
  check_like(op, "out", out, "x", x);
  switch (overlap(x, out)) {
    case Overlap::None:
      copy_to(x, out);
      break;
    case Overlap::Partial:
      refuse(op, "out", "share all of x's memory or none of it", "a tensor that shares a part");
    case Overlap::Same:
      break;
  }
}

FUSEDOPS_LIBRARY(m) {
  m.def("copy_async(Tensor x) -> Tensor");
  m.def("copy_async_out(Tensor x, Tensor(a!) out) -> ()");
}

FUSEDOPS_LIBRARY_IMPL(CPU, m) {
  m.impl("copy_async", FUSEDOPS_BOX(copy_async));
  m.impl("copy_async_out", FUSEDOPS_BOX(copy_async_out));
}

#ifdef FUSEDOPS_WITH_CUDA
FUSEDOPS_LIBRARY_IMPL(CUDA, m) {
  m.impl("copy_async", FUSEDOPS_BOX(copy_async));
  m.impl("copy_async_out", FUSEDOPS_BOX(copy_async_out));
}
#endif

}  // namespace
}  // namespace fusedops
