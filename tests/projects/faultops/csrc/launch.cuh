#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "kernels.h"

namespace faultops::cuda {

// Kernels have names that the linker sees, so that a tool gives them as they are written.

constexpr int kThreads = 256;
static_assert(kThreads == kTile);

/// Also forgets the error, or the next launch would be blamed for it.
inline void check(cudaError_t error) {
  if (error != cudaSuccess) {
    cudaGetLastError();
    throw std::runtime_error(std::string("faultops: ") + cudaGetErrorString(error));
  }
}

__device__ inline std::int64_t thread() {
  return static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}

/// A pause of the calling thread, some 25 µs.
__device__ inline void pause() {
  const long long begin = clock64();
  while (clock64() - begin < 50000) {
  }
}

/// Launches `kernel` with a thread an element of `threads`, which is not 0.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), std::int64_t threads, void* stream,
            Arguments... arguments) {
  const auto blocks = static_cast<unsigned>((threads + kThreads - 1) / kThreads);
  kernel<<<blocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(arguments...);
  check(cudaGetLastError());
}

template <class T>
const T* in(const void* pointer) {
  return static_cast<const T*>(pointer);
}
template <class T>
T* out(void* pointer) {
  return static_cast<T*>(pointer);
}

}  // namespace faultops::cuda
