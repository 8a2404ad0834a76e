#pragma once

#include <cstdint>

#include "common/clamp.h"
#include "common/operands.h"

namespace fusedops {

struct ClipAddParams {
  double min, max, bias;
};

/// clamp(x, min, max) + bias
template <class T>
class ClipAdd {
 public:
  explicit ClipAdd(const ClipAddParams& p)
      : min_(static_cast<T>(p.min)),
        max_(static_cast<T>(p.max)),
        bias_(static_cast<T>(addend(p.min, p.max, p.bias))) {}
  FUSEDOPS_HOST_DEVICE T operator()(T x) const { return clamp(x, min_, max_) + bias_; }
  /// Where the gradient goes through.
  FUSEDOPS_HOST_DEVICE bool inside(T x) const { return fusedops::inside(x, min_, max_); }

 private:
  T min_, max_, bias_;
};

/// grad where min <= x <= max, else 0; x is the first operand because the result lies as x does
template <class T>
class ClipAddBackward {
 public:
  explicit ClipAddBackward(const ClipAddParams& p)
      : min_(static_cast<T>(p.min)), max_(static_cast<T>(p.max)) {}
  FUSEDOPS_HOST_DEVICE T operator()(T x, T grad) const {
    return inside(x, min_, max_) ? grad : T(0);
  }

 private:
  T min_, max_;
};

void clip_add_cpu(const Operands<1>&, const ClipAddParams&, std::int64_t begin, std::int64_t end);
void clip_add_cuda(const Operands<1>&, const ClipAddParams&, void* stream);
void clip_add_forward_cpu(const Operands<1>&, const ClipAddParams&, std::uint8_t* inside,
                          std::int64_t begin, std::int64_t end);
void clip_add_forward_cuda(const Operands<1>&, const ClipAddParams&, std::uint8_t* inside,
                           void* stream);
void clip_add_backward_cpu(const Operands<2>&, const ClipAddParams&, std::int64_t begin,
                           std::int64_t end);
void clip_add_backward_cuda(const Operands<2>&, const ClipAddParams&, void* stream);

}  // namespace fusedops
