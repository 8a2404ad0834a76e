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

/// Two barriers in the branches of one warp, where all its threads must wait at the same. Each
/// thread waits at one of them, and to the block they are one barrier: values are right.
template <class T>
__global__ void add_previous_divergent(const T* x, T* out, std::int64_t n) {
  __shared__ T tile[kTile];
  const std::int64_t i = thread();
  if (threadIdx.x % 2 == 0) {
    tile[threadIdx.x] = i < n ? x[i] : T(0);
    __syncthreads();
  } else {
    pause();  // without it the compiler may make one barrier of the two
    tile[threadIdx.x] = i < n ? x[i] : T(0);
    __syncthreads();
  }
  if (i < n) {
    out[i] = tile[threadIdx.x] + (threadIdx.x > 0 ? tile[threadIdx.x - 1] : 0);
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
