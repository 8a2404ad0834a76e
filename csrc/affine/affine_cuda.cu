#include "affine/affine.h"
#include "common/pointwise.cuh"

namespace fusedops {

void affine_cuda(const Operands<1>& operands, const AffineParams& params, void* stream) {
  pointwise_cuda<Affine>(operands, params, stream);
}

}  // namespace fusedops
