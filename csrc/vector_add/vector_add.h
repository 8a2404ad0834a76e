#pragma once

#include <cstdint>

#include "common/host_device.h"
#include "common/operands.h"

namespace fusedops {

struct VectorAddParams {};

/// x + y
template <class T>
class VectorAdd {
 public:
  explicit VectorAdd(const VectorAddParams&) {}
  FUSEDOPS_HOST_DEVICE T operator()(T x, T y) const { return x + y; }
};

void vector_add_cpu(const Operands<2>&, const VectorAddParams&, std::int64_t begin,
                    std::int64_t end);
void vector_add_cuda(const Operands<2>&, const VectorAddParams&, void* stream);

}  // namespace fusedops
