#pragma once

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>

#include <cstdint>

#include "checks.h"

namespace usual {

/// Op<T>(scalars...)(x) of each element.
template <template <typename> class Op, typename... Scalars>
at::Tensor unary_cpu(const at::Tensor& x, Scalars... scalars) {
  const at::Tensor in = x.contiguous();
  at::Tensor out = at::empty_like(in);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, in.scalar_type(), "usual", [&] {
    using T = at::opmath_type<scalar_t>;
    const Op<T> op{scalars...};
    const scalar_t* from = in.const_data_ptr<scalar_t>();
    scalar_t* to = out.mutable_data_ptr<scalar_t>();
    at::parallel_for(0, in.numel(), at::internal::GRAIN_SIZE, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        to[i] = static_cast<scalar_t>(op(static_cast<T>(from[i])));
      }
    });
  });
  return out;
}

/// Op<T>(scalars...)(x, y) of each pair of elements.
template <template <typename> class Op, typename... Scalars>
at::Tensor binary_cpu(const at::Tensor& x, const at::Tensor& y, Scalars... scalars) {
  check_like(y, x);
  const at::Tensor left = x.contiguous();
  const at::Tensor right = y.contiguous();
  at::Tensor out = at::empty_like(left);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, left.scalar_type(), "usual", [&] {
    using T = at::opmath_type<scalar_t>;
    const Op<T> op{scalars...};
    const scalar_t* a = left.const_data_ptr<scalar_t>();
    const scalar_t* b = right.const_data_ptr<scalar_t>();
    scalar_t* to = out.mutable_data_ptr<scalar_t>();
    at::parallel_for(0, left.numel(), at::internal::GRAIN_SIZE, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        to[i] = static_cast<scalar_t>(op(static_cast<T>(a[i]), static_cast<T>(b[i])));
      }
    });
  });
  return out;
}

}  // namespace usual
