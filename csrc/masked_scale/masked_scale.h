#pragma once

#include <cstdint>

#include "common/host_device.h"
#include "common/operands.h"

namespace fusedops {

struct MaskedScaleParams {
  double scale;
};

/// (grad where the mask has a 1, else 0) * scale. The product comes last, as in torch, so that an
/// infinite scale gives NaN outside.
template <class T>
class MaskedScale {
 public:
  explicit MaskedScale(const MaskedScaleParams& p) : scale_(static_cast<T>(p.scale)) {}
  FUSEDOPS_HOST_DEVICE T operator()(T grad, bool inside) const {
    return (inside ? grad : T(0)) * scale_;
  }

 private:
  T scale_;
};

void masked_scale_cpu(const Operands<1>&, const MaskedScaleParams&, const std::uint8_t* mask,
                      std::int64_t begin, std::int64_t end);
void masked_scale_cuda(const Operands<1>&, const MaskedScaleParams&, const std::uint8_t* mask,
                       void* stream);

}  // namespace fusedops
