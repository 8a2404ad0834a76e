#include <torch/extension.h>

#include <algorithm>
#include <cstdint>

#ifdef WITH_CUDA
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

cudaError_t shift_clip_launch(
    const float* x, float* out, float shift, float low, float high, int64_t n, cudaStream_t stream);
#endif

at::Tensor shift_clip(const at::Tensor& input, float shift, float low, float high) {
  TORCH_CHECK(input.scalar_type() == at::kFloat, "shift_clip: x is ", input.scalar_type(), ", and must be float32");
  at::Tensor x = input.contiguous();
  at::Tensor out = at::empty_like(x);
  int64_t n = x.numel();
  if (n == 0) return out;
  const float* from = x.const_data_ptr<float>();
  float* to = out.mutable_data_ptr<float>();
#ifdef WITH_CUDA
  if (x.is_cuda()) {
    c10::cuda::CUDAGuard guard(x.device());
    C10_CUDA_CHECK(shift_clip_launch(from, to, shift, low, high, n, c10::cuda::getCurrentCUDAStream()));
    return out;
  }
#endif
  TORCH_CHECK(x.is_cpu(), "shift_clip: x is on ", x.device(), ", and this build has no code for it");
  for (int64_t i = 0; i < n; ++i) to[i] = std::min(std::max(from[i] + shift, low), high);
  return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("shift_clip", &shift_clip); }
