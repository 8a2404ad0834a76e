#include "matmul/matmul.h"

namespace fusedops {

void matmul_cuda(const MatmulParams& params, void* stream) {
  const bool bits_16 = params.dtype == DType::Float16 || params.dtype == DType::BFloat16;
#ifdef FUSEDOPS_WITH_SM90A
  if (bits_16 && matmul_sm90a_cuda(params, stream)) {
    return;
  }
#endif
  if (bits_16 && matmul_mma_cuda(params, stream)) {
    return;
  }
  matmul_simt_cuda(params, stream);
}

}  // namespace fusedops
