#pragma once

#include <ATen/ATen.h>

namespace usual {

inline void check_like(const at::Tensor& t, const at::Tensor& like) {
  TORCH_CHECK(t.device() == like.device(), "expected a tensor on ", like.device(), ", got one on ",
              t.device());
  TORCH_CHECK(t.scalar_type() == like.scalar_type(), "expected ", like.scalar_type(), ", got ",
              t.scalar_type());
  TORCH_CHECK(t.sizes() == like.sizes(), "expected shape ", like.sizes(), ", got ", t.sizes());
}

}  // namespace usual
