#pragma once

#include "common/dtype.h"

// The instructions of SM 8.0 that feed the tensor cores, one function each, for kernels whose
// bodies are compiled for SM 8.0 and later alone. Names and layouts are those of the PTX ISA
// (https://docs.nvidia.com/cuda/parallel-thread-execution/), sections mma.m16n8k16, ldmatrix and
// cp.async. Written as PTX in place of mma.h and cuda_fp16.h for what those cost to compile.

namespace fusedops {

__device__ inline unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

/// Loads four 8×8 matrices of 16-bit elements. Lane 8i + r gives the address in shared memory of
/// row r of matrix i, 16 bytes on 16; lane l receives in registers[i] elements 2(l % 4) and the
/// next of row l / 4.
__device__ inline void ldmatrix_x4(unsigned (&registers)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(registers[0]), "=r"(registers[1]), "=r"(registers[2]), "=r"(registers[3])
               : "r"(shared_address(row))
               : "memory");
}

/// The same of the transposes: lane l receives elements l / 4 of rows 2(l % 4) and the next.
__device__ inline void ldmatrix_x4_trans(unsigned (&registers)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(registers[0]), "=r"(registers[1]), "=r"(registers[2]), "=r"(registers[3])
               : "r"(shared_address(row))
               : "memory");
}

/// d += a · b for a 16×16, b 16×8, d 16×8, spread over the warp. With g = lane / 4, t = 2(lane %
/// 4): a holds rows g, g + 8, g, g + 8 at columns t, t, t + 8, t + 8 and the next; b0 and b1 rows t
/// and t + 8 and the next, of column g; d row g at t and t + 1, then row g + 8 at the same.
template <class Storage>
__device__ void mma_m16n8k16(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1);

template <>
__device__ inline void mma_m16n8k16<Float16>(float (&d)[4], const unsigned (&a)[4], unsigned b0,
                                             unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <>
__device__ inline void mma_m16n8k16<BFloat16>(float (&d)[4], const unsigned (&a)[4], unsigned b0,
                                              unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Two floats rounded to nearest, ties to even; `low` in the lower half.
template <class Storage>
__device__ unsigned pack(float low, float high);

template <>
__device__ inline unsigned pack<Float16>(float low, float high) {
  unsigned pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

template <>
__device__ inline unsigned pack<BFloat16>(float low, float high) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

/// 2^value, to two units in the last place; subnormal results are zero.
__device__ inline float exp2_approx(float value) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(value));
  return power;
}

/// Begins a copy of 16 bytes, both sides on 16, past the L1 cache; where not `valid`, nothing is
/// read and zeros are written.
__device__ inline void cp_async_16(void* shared, const void* global, bool valid = true) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(shared_address(shared)), "l"(global), "r"(valid ? 16 : 0)
               : "memory");
}

/// The same of 4 bytes on 4, through the L1 cache.
__device__ inline void cp_async_4(void* shared, const void* global, bool valid = true) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
               :
               : "r"(shared_address(shared)), "l"(global), "r"(valid ? 4 : 0)
               : "memory");
}

/// The same of 8 bytes on 8.
__device__ inline void cp_async_8(void* shared, const void* global, bool valid = true) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;"
               :
               : "r"(shared_address(shared)), "l"(global), "r"(valid ? 8 : 0)
               : "memory");
}

/// Closes a group of this thread's copies begun since the last one.
__device__ inline void cp_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

/// Waits for this thread's groups but the newest `N`. Others see the copies after a barrier.
template <int N>
__device__ inline void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

}  // namespace fusedops
