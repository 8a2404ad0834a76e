#include "launch.cuh"

namespace faultops::cuda {

/// Waits for the block's other warps by the clock, where a barrier belongs. They have stored long
/// before, so values are right.
template <class T>
__global__ void add_previous_in_time(const T* x, T* out, std::int64_t n) {
  __shared__ T tile[kTile];
  const std::int64_t i = thread();
  if (i < n) {
    tile[threadIdx.x] = x[i];
  }
  __threadfence_block();
  pause();
  __threadfence_block();
  if (i < n) {
    out[i] = tile[threadIdx.x] + (threadIdx.x > 0 ? tile[threadIdx.x - 1] : 0);
  }
}

/// A barrier that threads past the end do not come to. They stay until the others wait at it, and
/// end, which lets it open: values are right.
template <class T>
__global__ void add_previous_divergent(const T* x, T* out, std::int64_t n) {
  __shared__ T tile[kTile];
  const std::int64_t i = thread();
  if (i < n) {
    tile[threadIdx.x] = x[i];
    __syncthreads();
    out[i] = tile[threadIdx.x] + (threadIdx.x > 0 ? tile[threadIdx.x - 1] : 0);
  } else {
    pause();
    // Here, and not after the branches have met again, for which threads would wait for each other.
    asm volatile("exit;");
  }
}

void shared_race(const Call& call) {
  with_type(call.dtype, [&](auto tag) {
    using T = decltype(tag);
    launch(&add_previous_in_time<T>, call.n, call.stream, in<T>(call.x), out<T>(call.out), call.n);
  });
}

void divergent_barrier(const Call& call) {
  with_type(call.dtype, [&](auto tag) {
    using T = decltype(tag);
    launch(&add_previous_divergent<T>, call.n, call.stream, in<T>(call.x), out<T>(call.out),
           call.n);
  });
}

}  // namespace faultops::cuda
