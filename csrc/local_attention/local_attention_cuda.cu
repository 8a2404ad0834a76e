#include <cmath>

#include "local_attention/launch.cuh"
#include "local_attention/plain.cuh"

namespace fusedops {
inline namespace local_attention_unit {

template <class Storage>
__global__ void __launch_bounds__(plain::kThreads)
    forward_kernel(const FUSEDOPS_CONSTANT LocalAttention call, std::int64_t first_block) {
  using T = Compute<Storage>;
  __shared__ plain::Shared<T> shared;
  const AttentionPlace<std::int64_t> at(call, first_block + blockIdx.x, plain::kRows<T>);
  plain::forward<Storage>(call, at.batch, at.head, at.first, shared);
}

template <class Storage, bool OfKeys>
__global__ void __launch_bounds__(plain::kThreads)
    backward_kernel(const FUSEDOPS_CONSTANT LocalAttention call, std::int64_t first_block) {
  using T = Compute<Storage>;
  __shared__ plain::Shared<T> shared;
  const AttentionPlace<std::int64_t> at(call, first_block + blockIdx.x, plain::kRows<T>);
  plain::backward<Storage, OfKeys>(call, at.batch, at.head, at.first, shared);
}

bool has_tensor_cores(const LocalAttention& call) {
  // Ints hold a row and a window after it.
  constexpr std::int64_t most = 1 << 29;
  const bool short_type = call.dtype == DType::Float16 || call.dtype == DType::BFloat16;
  return short_type && device_attribute(cudaDevAttrComputeCapabilityMajor) >= 8 &&
         std::isfinite(call.scale) && call.scale != 0 && call.rows <= most &&
         call.batches <= most && call.heads <= most;
}

}  // namespace local_attention_unit

void local_attention_forward_cuda(const LocalAttention& call, void* stream) {
  if (has_tensor_cores(call)) {
#ifdef FUSEDOPS_WITH_SM90A
    if (local_attention_forward_sm90a(call, stream)) {
      return;
    }
#endif
    local_attention_forward_mma(call, stream);
    return;
  }
  with_storage(call.dtype, [&](auto tag) {
    using Storage = decltype(tag);
    attention_grids(call, plain::kRows<Compute<Storage>>, [&](unsigned grid, std::int64_t first) {
      forward_kernel<Storage>
          <<<grid, plain::kThreads, 0, static_cast<cudaStream_t>(stream)>>>(call, first);
    });
  });
}

void local_attention_backward_cuda(const LocalAttention& call, void* stream) {
  if (has_tensor_cores(call)) {
#ifdef FUSEDOPS_WITH_SM90A
    if (local_attention_backward_sm90a(call, stream)) {
      return;
    }
#endif
    local_attention_backward_mma(call, stream);
    return;
  }
  with_storage(call.dtype, [&](auto tag) {
    using Storage = decltype(tag);
    constexpr int rows = plain::kRows<Compute<Storage>>;
    attention_grids(call, rows, [&](unsigned grid, std::int64_t first) {
      backward_kernel<Storage, false>
          <<<grid, plain::kThreads, 0, static_cast<cudaStream_t>(stream)>>>(call, first);
    });
    attention_grids(call, rows, [&](unsigned grid, std::int64_t first) {
      backward_kernel<Storage, true>
          <<<grid, plain::kThreads, 0, static_cast<cudaStream_t>(stream)>>>(call, first);
    });
  });
}

}  // namespace fusedops
