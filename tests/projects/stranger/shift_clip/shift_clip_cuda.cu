#include <algorithm>
#include <cstdint>

__global__ void shift_clip_kernel(const float* x, float* out, float shift, float low, float high, int64_t n) {
  int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < n; i += step) {
    out[i] = fminf(fmaxf(x[i] + shift, low), high);
  }
}

cudaError_t shift_clip_launch(
    const float* x, float* out, float shift, float low, float high, int64_t n, cudaStream_t stream) {
  int blocks = static_cast<int>(std::min<int64_t>((n + 255) / 256, 4096));
  shift_clip_kernel<<<blocks, 256, 0, stream>>>(x, out, shift, low, high, n);
  return cudaGetLastError();
}
