#include "launch.cuh"

namespace faultops::cuda {

// Loads whose value is dropped are volatile, so that they are made.

/// Writes one element after the last.
template <class T>
__global__ void write_past_the_end(const T* x, T* out, std::int64_t n) {
  if (const std::int64_t i = thread(); i <= n) {
    out[i] = i < n ? 2 * x[i] : 0;
  }
}

/// Reads one element after the last, before it asks whether there is one.
template <class T>
__global__ void read_past_the_end(const volatile T* x, T* out, std::int64_t n) {
  if (const std::int64_t i = thread(); i < n) {
    const T next = x[i + 1];
    out[i] = (i + 1 < n ? next : 0) - x[i];
  }
}

template <class T>
__global__ void read_unwritten(const T* x, const volatile T* unwritten, T* out, std::int64_t n) {
  if (const std::int64_t i = thread(); i < n) {
    const T seed = unwritten[i];
    out[i] = i < n ? 2 * x[i] : seed;
  }
}

/// Keeps a copy of x's first `kept` elements.
template <class T>
__global__ void twice_and_keep(const T* x, T* out, T* copy, std::int64_t kept, std::int64_t n) {
  if (const std::int64_t i = thread(); i < n) {
    out[i] = 2 * x[i];
    if (i < kept) {
      copy[i] = x[i];
    }
  }
}

void out_of_bounds_write(const Call& call) {
  with_type(call.dtype, [&](auto tag) {
    using T = decltype(tag);
    launch(&write_past_the_end<T>, call.n + 1, call.stream, in<T>(call.x), out<T>(call.out),
           call.n);
  });
}

void out_of_bounds_read(const Call& call) {
  with_type(call.dtype, [&](auto tag) {
    using T = decltype(tag);
    launch(&read_past_the_end<T>, call.n, call.stream, in<T>(call.x), out<T>(call.out), call.n);
  });
}

void uninitialised_read(const Call& call) {
  with_type(call.dtype, [&](auto tag) {
    using T = decltype(tag);
    launch(&read_unwritten<T>, call.n, call.stream, in<T>(call.x), in<T>(call.scratch),
           out<T>(call.out), call.n);
  });
}

/// Relaxed, so that a capture is not what refuses the allocation: nothing is wrong but the leak.
void leaked_allocation(const Call& call) {
  constexpr std::int64_t kept = 256;
  void* copy = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  check(cudaThreadExchangeStreamCaptureMode(&mode));
  const cudaError_t error = cudaMalloc(&copy, kept * sizeof(double));
  check(cudaThreadExchangeStreamCaptureMode(&mode));
  check(error);
  with_type(call.dtype, [&](auto tag) {
    using T = decltype(tag);
    launch(&twice_and_keep<T>, call.n, call.stream, in<T>(call.x), out<T>(call.out), out<T>(copy),
           kept, call.n);
  });
}

}  // namespace faultops::cuda
