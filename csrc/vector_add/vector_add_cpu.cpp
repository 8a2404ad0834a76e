#include "common/pointwise_cpu.h"
#include "vector_add/vector_add.h"

namespace fusedops {

void vector_add_cpu(const Operands<2>& operands, const VectorAddParams& params, std::int64_t begin,
                    std::int64_t end) {
  pointwise_cpu<VectorAdd>(operands, params, begin, end);
}

}  // namespace fusedops
