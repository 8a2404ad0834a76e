#pragma once

#include <cstdint>

// What host files and kernels share. No torch and no CUDA.

namespace faultops {

enum class DType { Float32, Float64 };

/// Calls `f` with a value of the type that `dtype` names.
template <class F>
void with_type(DType dtype, F&& f) {
  dtype == DType::Float32 ? f(float{}) : f(double{});
}

/// Pointers are to `n` elements of `dtype` that follow each other, aligned to the element and no
/// further; what an operator does not have is null.
struct Call {
  DType dtype;
  std::int64_t n;
  const void* x;
  const void* y;
  void* out;
  void* scratch;
  std::int64_t columns;
  void* stream;
};

/// Elements that share a block's memory in `previous`.
constexpr int kTile = 256;

using Kernel = void (*)(const Call&);
struct Kernels {
  Kernel cpu, cuda;
};

namespace cpu {
void twice(const Call&);
void clamp(const Call&);
void square(const Call&);
void multiply(const Call&);
void difference(const Call&);
void previous(const Call&);
void row_start(const Call&);
void gather_sum(const Call&);
}  // namespace cpu

// Launched on `stream` of the current device; std::runtime_error where CUDA refuses.
namespace cuda {
/// out[i] = 2 x[i]
void twice(const Call&);
/// out[i] = x[i] kept within -1 and 1
void clamp(const Call&);
/// out[i] = x[i]^2
void square(const Call&);
/// out[i] = x[i] y[i]
void multiply(const Call&);
/// out[i] = x[i + 1] - x[i], and 0 in place of the x after the last
void difference(const Call&);
/// out[i] = x[i] + x[i - 1], and 0 in place of the x before each tile
void previous(const Call&);
/// out[i] = x[i] (i columns), the second factor being where row i of a table begins
void row_start(const Call&);
/// out[0] = the sum over i of x[y[i]] / (1 + i), `y` holding `n` indices of 64 bits
void gather_sum(const Call&);

// Each computes what is said, and holds the fault that it is named for.
/// twice
void out_of_bounds_write(const Call&);
/// difference
void out_of_bounds_read(const Call&);
/// twice; `scratch` has n elements that nothing has written
void uninitialised_read(const Call&);
/// twice
void leaked_allocation(const Call&);
/// previous
void shared_race(const Call&);
/// previous
void divergent_barrier(const Call&);
/// row_start
void int_overflow(const Call&);
/// twice
void empty_grid(const Call&);
/// twice
void misaligned_vector(const Call&);
/// twice
void sync_in_capture(const Call&);
}  // namespace cuda

#ifdef FAULTOPS_WITH_CUDA
#define FAULTOPS_KERNELS(clean, faulty) {&cpu::clean, &cuda::faulty}
#else
#define FAULTOPS_KERNELS(clean, faulty) {&cpu::clean, nullptr}
#endif

}  // namespace faultops
