#pragma once

#include <cstdint>

#include "common/host_device.h"
#include "common/operands.h"

namespace fusedops {

struct AffineParams {
  double a, b;
};

/// a * x + b. Its gradient is itself with b = 0, so there is no backward kernel.
template <class T>
class Affine {
 public:
  explicit Affine(const AffineParams& p) : a_(static_cast<T>(p.a)), b_(static_cast<T>(p.b)) {}
  FUSEDOPS_HOST_DEVICE T operator()(T x) const { return a_ * x + b_; }

 private:
  T a_, b_;
};

void affine_cpu(const Operands<1>&, const AffineParams&, std::int64_t begin, std::int64_t end);
void affine_cuda(const Operands<1>&, const AffineParams&, void* stream);

}  // namespace fusedops
