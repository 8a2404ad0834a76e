#include "clip_add/clip_add.h"
#include "common/mask_cpu.h"
#include "common/pointwise_cpu.h"

namespace fusedops {

void clip_add_cpu(const Operands<1>& operands, const ClipAddParams& params, std::int64_t begin,
                  std::int64_t end) {
  pointwise_cpu<ClipAdd>(operands, params, begin, end);
}

void clip_add_forward_cpu(const Operands<1>& operands, const ClipAddParams& params,
                          std::uint8_t* inside, std::int64_t begin, std::int64_t end) {
  mask_writing_cpu<ClipAdd>(operands, params, inside, begin, end);
}

void clip_add_backward_cpu(const Operands<2>& operands, const ClipAddParams& params,
                           std::int64_t begin, std::int64_t end) {
  pointwise_cpu<ClipAddBackward>(operands, params, begin, end);
}

}  // namespace fusedops
