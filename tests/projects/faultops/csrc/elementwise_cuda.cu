#include "launch.cuh"

namespace faultops::cuda {

/// Reads and writes global memory, an element a thread.
template <class T, class F>
__global__ void fill(const T* x, const T* y, T* out, std::int64_t n, F element) {
  if (const std::int64_t i = thread(); i < n) {
    out[i] = element(x, y, i);
  }
}

template <class F>
void fill_out(const Call& call, F element) {
  with_type(call.dtype, [&](auto tag) {
    using T = decltype(tag);
    launch(&fill<T, F>, call.n, call.stream, in<T>(call.x), in<T>(call.y), out<T>(call.out), call.n,
           element);
  });
}

struct Twice {
  template <class T>
  __device__ T operator()(const T* x, const T*, std::int64_t i) const {
    return 2 * x[i];
  }
};

struct Clamp {
  template <class T>
  __device__ T operator()(const T* x, const T*, std::int64_t i) const {
    return x[i] < -1 ? -1 : x[i] > 1 ? 1 : x[i];
  }
};

struct Square {
  template <class T>
  __device__ T operator()(const T* x, const T*, std::int64_t i) const {
    return x[i] * x[i];
  }
};

struct Multiply {
  template <class T>
  __device__ T operator()(const T* x, const T* y, std::int64_t i) const {
    return x[i] * y[i];
  }
};

struct Difference {
  std::int64_t n;
  template <class T>
  __device__ T operator()(const T* x, const T*, std::int64_t i) const {
    return (i + 1 < n ? x[i + 1] : 0) - x[i];
  }
};

struct RowStart {
  std::int64_t columns;
  template <class T>
  __device__ T operator()(const T* x, const T*, std::int64_t i) const {
    return x[i] * static_cast<T>(i * columns);
  }
};

/// A tile a block, in shared memory.
template <class T>
__global__ void add_previous(const T* x, T* out, std::int64_t n) {
  __shared__ T tile[kTile];
  const std::int64_t i = thread();
  if (i < n) {
    tile[threadIdx.x] = x[i];
  }
  __syncthreads();
  if (i < n) {
    out[i] = tile[threadIdx.x] + (threadIdx.x > 0 ? tile[threadIdx.x - 1] : 0);
  }
}

/// One block, which adds up in the same order each time.
template <class T>
__global__ void sum_gathered(const T* x, const std::int64_t* index, T* out, std::int64_t n) {
  __shared__ double sums[kThreads];
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < n; i += kThreads) {
    sum += x[index[i]] / (1.0 + static_cast<double>(i));
  }
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    *out = static_cast<T>(sums[0]);
  }
}

void twice(const Call& call) {
  fill_out(call, Twice{});
}
void clamp(const Call& call) {
  fill_out(call, Clamp{});
}
void square(const Call& call) {
  fill_out(call, Square{});
}
void multiply(const Call& call) {
  fill_out(call, Multiply{});
}
void difference(const Call& call) {
  fill_out(call, Difference{call.n});
}
void row_start(const Call& call) {
  fill_out(call, RowStart{call.columns});
}

void previous(const Call& call) {
  with_type(call.dtype, [&](auto tag) {
    using T = decltype(tag);
    launch(&add_previous<T>, call.n, call.stream, in<T>(call.x), out<T>(call.out), call.n);
  });
}

void gather_sum(const Call& call) {
  with_type(call.dtype, [&](auto tag) {
    using T = decltype(tag);
    launch(&sum_gathered<T>, 1, call.stream, in<T>(call.x), in<std::int64_t>(call.y),
           out<T>(call.out), call.n);
  });
}

}  // namespace faultops::cuda
