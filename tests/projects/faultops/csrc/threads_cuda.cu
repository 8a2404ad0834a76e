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

/// A barrier in each branch of a block, where all its threads must wait at the same. Whole warps take
/// a branch: the hardware counts who waits and not where, so the barrier opens and values are right.
/// Threads of one warp at two barriers would wait for each other for ever.
template <class T>
__global__ void add_previous_divergent(const T* x, T* out, std::int64_t n) {
  __shared__ T tile[kTile];
  const std::int64_t i = thread();
  const T value = i < n ? x[i] : T(0);
  if (threadIdx.x / 32 % 2 == 0) {
    tile[threadIdx.x] = value;
    __syncthreads();
  } else {
    // On both sides, or the compiler may make one barrier of the two, above or below the branches.
    pause();
    tile[threadIdx.x] = value;
    __syncthreads();
    pause();
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
