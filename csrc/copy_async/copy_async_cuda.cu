#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

#include "copy_async/copy_async.h"

namespace fusedops {

void copy_async_cuda(const void* from, void* to, std::int64_t bytes, void* stream) {
  const cudaError_t error =
      cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice,
                      static_cast<cudaStream_t>(stream));
  if (error != cudaSuccess) {
    throw std::runtime_error(std::string("fusedops: the device copy could not be queued: ") +
                             cudaGetErrorString(error));
  }
}

}  // namespace fusedops
