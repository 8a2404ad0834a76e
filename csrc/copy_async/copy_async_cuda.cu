#include "common/device.h"
#include "copy_async/copy_async.h"

namespace fusedops {

void copy_async_cuda(const void* from, void* to, std::int64_t bytes, void* stream) {
  check_cuda(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice,
                             static_cast<cudaStream_t>(stream)),
             "the device copy could not be queued");
}

}  // namespace fusedops
