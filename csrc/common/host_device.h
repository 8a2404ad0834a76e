#pragma once

/// Marks arithmetic that the CPU and the CUDA kernels share, so that the two cannot drift apart.
#ifdef __CUDACC__
#define FUSEDOPS_HOST_DEVICE __host__ __device__
#else
#define FUSEDOPS_HOST_DEVICE
#endif
