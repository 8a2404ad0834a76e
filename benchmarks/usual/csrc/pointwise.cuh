#pragma once

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdint>

#include "checks.h"

namespace usual {

constexpr int kThreads = 256;
constexpr int kVectorBytes = 16;

template <typename scalar_t>
struct alignas(kVectorBytes) Vector {
  static constexpr int size = kVectorBytes / sizeof(scalar_t);
  scalar_t at[size];
};

/// One 16-byte vector a thread; element by element at the end and where `aligned` is false.
template <typename scalar_t, typename Op>
__global__ void __launch_bounds__(kThreads)
    unary_kernel(Op op, const scalar_t* in, scalar_t* out, int64_t n, bool aligned) {
  using T = at::opmath_type<scalar_t>;
  using Vec = Vector<scalar_t>;
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * Vec::size;
  if (aligned && first + Vec::size <= n) {
    const Vec x = *reinterpret_cast<const Vec*>(in + first);
    Vec result;
#pragma unroll
    for (int k = 0; k < Vec::size; ++k) {
      result.at[k] = static_cast<scalar_t>(op(static_cast<T>(x.at[k])));
    }
    *reinterpret_cast<Vec*>(out + first) = result;
  } else {
    for (int64_t i = first; i < first + Vec::size && i < n; ++i) {
      out[i] = static_cast<scalar_t>(op(static_cast<T>(in[i])));
    }
  }
}

template <typename scalar_t, typename Op>
__global__ void __launch_bounds__(kThreads)
    binary_kernel(Op op, const scalar_t* a, const scalar_t* b, scalar_t* out, int64_t n,
                  bool aligned) {
  using T = at::opmath_type<scalar_t>;
  using Vec = Vector<scalar_t>;
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * Vec::size;
  if (aligned && first + Vec::size <= n) {
    const Vec x = *reinterpret_cast<const Vec*>(a + first);
    const Vec y = *reinterpret_cast<const Vec*>(b + first);
    Vec result;
#pragma unroll
    for (int k = 0; k < Vec::size; ++k) {
      result.at[k] = static_cast<scalar_t>(op(static_cast<T>(x.at[k]), static_cast<T>(y.at[k])));
    }
    *reinterpret_cast<Vec*>(out + first) = result;
  } else {
    for (int64_t i = first; i < first + Vec::size && i < n; ++i) {
      out[i] = static_cast<scalar_t>(op(static_cast<T>(a[i]), static_cast<T>(b[i])));
    }
  }
}

inline bool is_aligned(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % kVectorBytes == 0;
}

template <typename scalar_t>
unsigned blocks_for(int64_t n) {
  constexpr int64_t per_block = kThreads * Vector<scalar_t>::size;
  return static_cast<unsigned>((n + per_block - 1) / per_block);
}

/// Op<T>(scalars...)(x) of each element.
template <template <typename> class Op, typename... Scalars>
at::Tensor unary_cuda(const at::Tensor& x, Scalars... scalars) {
  const c10::cuda::CUDAGuard guard(x.device());
  const at::Tensor in = x.contiguous();
  at::Tensor out = at::empty_like(in);
  const int64_t n = in.numel();
  if (n == 0) {
    return out;
  }
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, in.scalar_type(), "usual", [&] {
    const Op<at::opmath_type<scalar_t>> op{scalars...};
    const scalar_t* from = in.const_data_ptr<scalar_t>();
    scalar_t* to = out.mutable_data_ptr<scalar_t>();
    unary_kernel<<<blocks_for<scalar_t>(n), kThreads, 0, stream>>>(
        op, from, to, n, is_aligned(from) && is_aligned(to));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
  return out;
}

/// Op<T>(scalars...)(x, y) of each pair of elements.
template <template <typename> class Op, typename... Scalars>
at::Tensor binary_cuda(const at::Tensor& x, const at::Tensor& y, Scalars... scalars) {
  check_like(y, x);
  const c10::cuda::CUDAGuard guard(x.device());
  const at::Tensor left = x.contiguous();
  const at::Tensor right = y.contiguous();
  at::Tensor out = at::empty_like(left);
  const int64_t n = left.numel();
  if (n == 0) {
    return out;
  }
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, left.scalar_type(), "usual", [&] {
    const Op<at::opmath_type<scalar_t>> op{scalars...};
    const scalar_t* a = left.const_data_ptr<scalar_t>();
    const scalar_t* b = right.const_data_ptr<scalar_t>();
    scalar_t* to = out.mutable_data_ptr<scalar_t>();
    binary_kernel<<<blocks_for<scalar_t>(n), kThreads, 0, stream>>>(
        op, a, b, to, n, is_aligned(a) && is_aligned(b) && is_aligned(to));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
  return out;
}

}  // namespace usual
