#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "host.h"

// Operators that end their process, or never end, on one sample, and one that is slow.

namespace faultops {
namespace {

/// 2 x, computed `chunk` elements at a time.
Tensor twice_by_chunks(const Tensor& x, std::int64_t chunk) {
  const Tensor in = torch::stable::contiguous(x);
  Tensor out = torch::stable::empty_like(in);
  const Call whole = call_of(in, out);
  const std::int64_t bytes = whole.dtype == DType::Float32 ? 4 : 8;
  for (std::int64_t begin = 0; begin < whole.n; begin += chunk) {
    Call part = whole;
    part.n = std::min(chunk, whole.n - begin);
    part.x = static_cast<const char*>(whole.x) + begin * bytes;
    part.out = static_cast<char*>(whole.out) + begin * bytes;
    if (part.n > 0) {
      run(FAULTOPS_KERNELS(twice, twice), part, out);
    } else {
      // So that what hangs leaves the processor to others.
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  return out;
}

/// All at once where chunk is 0.
Tensor chunks_clean(const Tensor& x, std::int64_t chunk) {
  return twice_by_chunks(x, chunk > 0 ? chunk : std::max<std::int64_t>(x.numel(), 1));
}

/// Never ends where chunk is 0. Nothing runs on the GPU meanwhile, and any signal ends it.
Tensor hang(const Tensor& x, std::int64_t chunk) {
  return twice_by_chunks(x, std::max<std::int64_t>(chunk, 0));
}

Tensor crash(const Tensor& x, std::int64_t chunk) {
  if (chunk <= 0) {
    std::abort();
  }
  return twice_by_chunks(x, chunk);
}

/// Does everything a second time.
Tensor slow(const Tensor& x) {
  twice(x);
  return twice(x);
}

STABLE_TORCH_LIBRARY_FRAGMENT(faultops, m) {
  FAULTOPS_PAIR(m, crash, "(Tensor x, int chunk) -> Tensor");
  FAULTOPS_PAIR(m, hang, "(Tensor x, int chunk) -> Tensor");
  FAULTOPS_PAIR(m, slow, "(Tensor x) -> Tensor");
}

FAULTOPS_IMPL(m) {
  m.impl("crash", TORCH_BOX(&crash));
  m.impl("crash_clean", TORCH_BOX(&chunks_clean));
  m.impl("hang", TORCH_BOX(&hang));
  m.impl("hang_clean", TORCH_BOX(&chunks_clean));
  m.impl("slow", TORCH_BOX(&slow));
  m.impl("slow_clean", TORCH_BOX(&twice));
}

}  // namespace
}  // namespace faultops
