#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

// What operators ask of the CUDA runtime on the host. Errors are std::runtime_error.

namespace fusedops {

/// Throws, with `what` and the runtime's own words, unless `error` is success.
inline void check_cuda(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    throw std::runtime_error(std::string("fusedops: ") + what + ": " + cudaGetErrorString(error));
  }
}

/// Throws where the launch before it was refused.
inline void check_launch() {
  check_cuda(cudaGetLastError(), "the CUDA kernel could not be launched");
}

/// The number of the current device.
inline int current_device() {
  int device = 0;
  check_cuda(cudaGetDevice(&device), "the current CUDA device is not known");
  return device;
}

/// What the current device has of `attribute`.
inline int device_attribute(cudaDeviceAttr attribute) {
  int value = 0;
  check_cuda(cudaDeviceGetAttribute(&value, attribute, current_device()),
             "an attribute of the CUDA device is not known");
  return value;
}

/// Whether the current device is of SM 9.0, on which code for 90a runs.
inline bool on_sm90() {
  return device_attribute(cudaDevAttrComputeCapabilityMajor) == 9 &&
         device_attribute(cudaDevAttrComputeCapabilityMinor) == 0;
}

/// Kernels that hold more than 48 KiB of shared memory in a block must be told of it.
template <class Kernel>
void allow_shared_memory(Kernel kernel, int bytes) {
  if (bytes > 48 * 1024) {
    check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
               "the CUDA kernel could not be launched");
  }
}

}  // namespace fusedops
