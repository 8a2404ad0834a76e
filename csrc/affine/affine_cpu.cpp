#include "affine/affine.h"
#include "common/pointwise_cpu.h"

namespace fusedops {

void affine_cpu(const Operands<1>& operands, const AffineParams& params, std::int64_t begin,
                std::int64_t end) {
  pointwise_cpu<Affine>(operands, params, begin, end);
}

}  // namespace fusedops
