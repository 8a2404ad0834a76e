#include "launch.cuh"

namespace faultops::cuda {

/// The product of two ints, which leaves them at 2^31.
template <class T>
__global__ void multiply_ints(const T* x, T* out, std::int64_t n, int columns) {
  if (const std::int64_t i = thread(); i < n) {
    const int row = static_cast<int>(i);
    out[i] = x[i] * static_cast<T>(row * columns);
  }
}

template <class T>
__global__ void twice_from_zero_blocks(const T* x, T* out, std::int64_t n) {
  if (const std::int64_t i = thread(); i < n) {
    out[i] = 2 * x[i];
  }
}

template <class T>
struct alignas(16) Vector {
  static constexpr int size = 16 / sizeof(T);
  T at[size];
};

/// 16 bytes a load, whatever x is aligned to; the elements after the last vector are thread 0's.
template <class T>
__global__ void twice_by_vectors(const T* x, T* out, std::int64_t n) {
  const std::int64_t vectors = n / Vector<T>::size;
  if (const std::int64_t i = thread(); i < vectors) {
    const Vector<T> v = reinterpret_cast<const Vector<T>*>(x)[i];
    for (int e = 0; e < Vector<T>::size; ++e) {
      out[i * Vector<T>::size + e] = 2 * v.at[e];
    }
  }
  if (thread() == 0) {
    for (std::int64_t i = vectors * Vector<T>::size; i < n; ++i) {
      out[i] = 2 * x[i];
    }
  }
}

void int_overflow(const Call& call) {
  with_type(call.dtype, [&](auto tag) {
    using T = decltype(tag);
    launch(&multiply_ints<T>, call.n, call.stream, in<T>(call.x), out<T>(call.out), call.n,
           static_cast<int>(call.columns));
  });
}

/// Called with n = 0 too, where the grid has no block.
void empty_grid(const Call& call) {
  with_type(call.dtype, [&](auto tag) {
    using T = decltype(tag);
    launch(&twice_from_zero_blocks<T>, call.n, call.stream, in<T>(call.x), out<T>(call.out),
           call.n);
  });
}

void misaligned_vector(const Call& call) {
  with_type(call.dtype, [&](auto tag) {
    using T = decltype(tag);
    launch(&twice_by_vectors<T>, call.n, call.stream, in<T>(call.x), out<T>(call.out), call.n);
  });
}

void sync_in_capture(const Call& call) {
  twice(call);
  check(cudaStreamSynchronize(static_cast<cudaStream_t>(call.stream)));
}

}  // namespace faultops::cuda
