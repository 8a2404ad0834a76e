#pragma once

#include <cstdint>

#include "common/clamp.h"
#include "common/operands.h"

namespace fusedops {

struct ScaleClampAddParams {
  double scale, min, max, bias;
};

/// clamp(x * scale, min, max) + bias
template <class T>
class ScaleClampAdd {
 public:
  explicit ScaleClampAdd(const ScaleClampAddParams& p)
      : scale_(static_cast<T>(p.scale)),
        min_(static_cast<T>(p.min)),
        max_(static_cast<T>(p.max)),
        bias_(static_cast<T>(addend(p.min, p.max, p.bias))) {}
  FUSEDOPS_HOST_DEVICE T operator()(T x) const { return clamp(x * scale_, min_, max_) + bias_; }
  /// Where the gradient goes through.
  FUSEDOPS_HOST_DEVICE bool inside(T x) const { return fusedops::inside(x * scale_, min_, max_); }

 private:
  T scale_, min_, max_, bias_;
};

/// (grad where min <= x * scale <= max, else 0) * scale; x is the first operand because the result
/// lies as x does. The product comes last, as in torch, so that an infinite scale gives NaN
/// outside.
template <class T>
class ScaleClampAddBackward {
 public:
  explicit ScaleClampAddBackward(const ScaleClampAddParams& p)
      : scale_(static_cast<T>(p.scale)), min_(static_cast<T>(p.min)), max_(static_cast<T>(p.max)) {}
  FUSEDOPS_HOST_DEVICE T operator()(T x, T grad) const {
    return (inside(x * scale_, min_, max_) ? grad : T(0)) * scale_;
  }

 private:
  T scale_, min_, max_;
};

void scale_clamp_add_cpu(const Operands<1>&, const ScaleClampAddParams&, std::int64_t begin,
                         std::int64_t end);
void scale_clamp_add_cuda(const Operands<1>&, const ScaleClampAddParams&, void* stream);
void scale_clamp_add_forward_cpu(const Operands<1>&, const ScaleClampAddParams&,
                                 std::uint8_t* inside, std::int64_t begin, std::int64_t end);
void scale_clamp_add_forward_cuda(const Operands<1>&, const ScaleClampAddParams&,
                                  std::uint8_t* inside, void* stream);
void scale_clamp_add_backward_cpu(const Operands<2>&, const ScaleClampAddParams&,
                                  std::int64_t begin, std::int64_t end);
void scale_clamp_add_backward_cuda(const Operands<2>&, const ScaleClampAddParams&, void* stream);

}  // namespace fusedops
