#include "common/mask_cpu.h"
#include "common/pointwise_cpu.h"
#include "scale_clamp_add/scale_clamp_add.h"

namespace fusedops {

void scale_clamp_add_cpu(const Operands<1>& operands, const ScaleClampAddParams& params,
                         std::int64_t begin, std::int64_t end) {
  pointwise_cpu<ScaleClampAdd>(operands, params, begin, end);
}

void scale_clamp_add_forward_cpu(const Operands<1>& operands, const ScaleClampAddParams& params,
                                 std::uint8_t* inside, std::int64_t begin, std::int64_t end) {
  mask_writing_cpu<ScaleClampAdd>(operands, params, inside, begin, end);
}

void scale_clamp_add_backward_cpu(const Operands<2>& operands, const ScaleClampAddParams& params,
                                  std::int64_t begin, std::int64_t end) {
  pointwise_cpu<ScaleClampAddBackward>(operands, params, begin, end);
}

}  // namespace fusedops
