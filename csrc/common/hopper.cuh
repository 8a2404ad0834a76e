#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <type_traits>

#include "common/mma.cuh"

// The instructions that SM 9.0 alone has, for kernels compiled for 90a: tensor copies by the TMA
// unit, barriers in shared memory that count their bytes, clusters, and products of a warpgroup
// (four warps). Names are those of the PTX ISA; how they are put together was learnt from CUTLASS
// (include/cute/arch and include/cutlass/arch/barrier.h), https://github.com/deepseek-ai/DeepGEMM
// and https://github.com/pranjalssh/fast.cu, which agree wherever this file depends on it.

namespace fusedops {

using Barrier = std::uint64_t;  // 8 bytes of shared memory on 8

__device__ inline void barrier_init(Barrier* barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(arrivals)
               : "memory");
}

/// Between barrier_init and the barrier of the block or the cluster after which others use it.
__device__ inline void barrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/// One arrival, and `bytes` that the phase also waits for.
__device__ inline void barrier_expect(Barrier* barrier, unsigned bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
}

/// One arrival at the barrier that lies where `barrier` does in block `rank` of the cluster.
__device__ inline void barrier_arrive(Barrier* barrier, unsigned rank) {
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
      "}" ::"r"(shared_address(barrier)),
      "r"(rank)
      : "memory");
}

/// One arrival at this block's own.
__device__ inline void barrier_arrive(Barrier* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
}

/// One arrival when this thread's copies by cp.async so far have arrived.
__device__ inline void barrier_arrive_copied(Barrier* barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(barrier))
               : "memory");
}

/// Returns when the phase of that parity is complete. Phases alternate from 0; before the first,
/// the one before counts as complete.
__device__ inline void barrier_wait(Barrier* barrier, unsigned parity) {
  asm volatile(
      "{\n"
      ".reg .pred complete;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 complete, [%0], %1;\n"
      "@complete bra done;\n"
      "bra again;\n"
      "done:\n"
      "}" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}

__device__ inline unsigned cluster_rank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// A barrier of all threads of the cluster's blocks.
__device__ inline void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

struct TensorPlace {
  int at[4];  // innermost first
};

/// Begins the copy of the box of `map` at `place` to shared memory, on 1,024 bytes; elements beyond
/// the tensor become zero, and count. `barrier` receives the box's bytes.
__device__ inline void tensor_load(void* shared, const CUtensorMap& map, Barrier* barrier,
                                   const TensorPlace& place) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(shared_address(shared)),
      "l"(&map), "r"(shared_address(barrier)), "r"(place.at[0]), "r"(place.at[1]), "r"(place.at[2]),
      "r"(place.at[3])
      : "memory");
}

/// The same to the same place, and to the same barrier, of every block of the cluster in `ranks`.
__device__ inline void tensor_load(void* shared, const CUtensorMap& map, Barrier* barrier,
                                   const TensorPlace& place, unsigned short ranks) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4, %5, %6}], [%2], %7;" ::"r"(shared_address(shared)),
      "l"(&map), "r"(shared_address(barrier)), "r"(place.at[0]), "r"(place.at[1]), "r"(place.at[2]),
      "r"(place.at[3]), "h"(ranks)
      : "memory");
}

/// Fewer registers for this warpgroup, more for another: all its threads, once.
template <int Registers>
__device__ inline void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers>
__device__ inline void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

/// Where the elements of a factor lie: rows of 128 bytes in shared memory, eight rows on 1,024
/// bytes, the eight 16 bytes of row r exchanged by exclusive or with r % 8, as a tensor copy with
/// SWIZZLE_128B leaves them. `from` is the first element.
///
/// With k contiguous a row is 64 of k, and eight rows follow the eight before them. Else a row is
/// 64 of the factor's rows for one k; k + 8 is 1,024 bytes on, row + 64 is 8,192 bytes on, the 64
/// of k that a stage has. Fields: address, leading byte offset, stride byte offset, each over 16,
/// and layout 1 = SWIZZLE_128B at bit 62 (PTX ISA, matrix descriptor; CUTLASS, mma_sm90_desc.hpp
/// and make_gmma_desc in mma_traits_sm90_gmma.hpp; DeepGEMM, mma/sm90.cuh).
template <bool KMajor>
__device__ inline std::uint64_t wgmma_descriptor(const void* from) {
  constexpr std::uint64_t leading = KMajor ? 16 : 8192, stride = 1024;
  return std::uint64_t{(shared_address(from) & 0x3FFFFu) >> 4} | leading >> 4 << 16 |
         stride >> 4 << 32 | std::uint64_t{1} << 62;
}

/// The descriptor of what lies `units` of 16 bytes on. Nothing is carried out of its lower half.
__device__ inline std::uint64_t wgmma_advance(std::uint64_t descriptor, int units) {
  return (descriptor & 0xFFFFFFFF00000000u) | (static_cast<unsigned>(descriptor) + units);
}

/// Orders the warpgroup's accesses to registers and shared memory before the products that follow.
__device__ inline void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Waits for the groups of products but the newest `N`.
template <int N>
__device__ inline void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

/// To the compiler the sums change here: what reads them stays behind the wait before.
template <int Count>
__device__ inline void wgmma_results(float (&sums)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    asm volatile("" : "+f"(sums[i])::"memory");
  }
}
template <int Count>
__device__ inline void wgmma_results(float (&sums)[Count][4]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    wgmma_results(sums[i]);
  }
}

#define FUSEDOPS_SUMS_8(i)                                                                    \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])
#define FUSEDOPS_SUMS_32(i) \
  FUSEDOPS_SUMS_8(i), FUSEDOPS_SUMS_8(i + 8), FUSEDOPS_SUMS_8(i + 16), FUSEDOPS_SUMS_8(i + 24)
#define FUSEDOPS_WGMMA(type)                                                                  \
  asm volatile(                                                                               \
      "{\n"                                                                                   \
      ".reg .pred add;\n"                                                                     \
      "setp.ne.b32 add, %130, 0;\n"                                                           \
      "wgmma.mma_async.sync.aligned.m64n256k16.f32." type "." type                            \
      " "                                                                                     \
      "{%0, %1, %2, %3, %4, %5, %6, %7, "                                                     \
      " %8, %9, %10, %11, %12, %13, %14, %15, "                                               \
      " %16, %17, %18, %19, %20, %21, %22, %23, "                                             \
      " %24, %25, %26, %27, %28, %29, %30, %31, "                                             \
      " %32, %33, %34, %35, %36, %37, %38, %39, "                                             \
      " %40, %41, %42, %43, %44, %45, %46, %47, "                                             \
      " %48, %49, %50, %51, %52, %53, %54, %55, "                                             \
      " %56, %57, %58, %59, %60, %61, %62, %63, "                                             \
      " %64, %65, %66, %67, %68, %69, %70, %71, "                                             \
      " %72, %73, %74, %75, %76, %77, %78, %79, "                                             \
      " %80, %81, %82, %83, %84, %85, %86, %87, "                                             \
      " %88, %89, %90, %91, %92, %93, %94, %95, "                                             \
      " %96, %97, %98, %99, %100, %101, %102, %103, "                                         \
      " %104, %105, %106, %107, %108, %109, %110, %111, "                                     \
      " %112, %113, %114, %115, %116, %117, %118, %119, "                                     \
      " %120, %121, %122, %123, %124, %125, %126, %127}, "                                    \
      "%128, %129, add, 1, 1, %131, %132;\n"                                                  \
      "}"                                                                                     \
      : FUSEDOPS_SUMS_32(0), FUSEDOPS_SUMS_32(32), FUSEDOPS_SUMS_32(64), FUSEDOPS_SUMS_32(96) \
      : "l"(a), "l"(b), "r"(add), "n"(AKMajor ? 0 : 1), "n"(BKMajor ? 0 : 1))

/// d = a · b, or d += a · b where `add`, for a 64×16 and b 16×256 by their descriptors, begun and
/// not waited for. Lane l of the warpgroup's warp w has in d[4j + 2h + e] row 16w + 8h + l / 4,
/// column 8j + 2(l % 4) + e.
template <class Storage, bool AKMajor, bool BKMajor>
__device__ inline void wgmma_m64n256k16(float (&d)[128], std::uint64_t a, std::uint64_t b,
                                        int add) {
  if constexpr (std::is_same_v<Storage, Float16>) {
    FUSEDOPS_WGMMA("f16");
  } else {
    FUSEDOPS_WGMMA("bf16");
  }
}

#undef FUSEDOPS_WGMMA

#define FUSEDOPS_SUMS_4(i) "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])
#define FUSEDOPS_WGMMA(type, add, a, b, flags)                                                  \
  "{\n"                                                                                         \
  ".reg .pred add;\n"                                                                           \
  "setp.ne.b32 add, " add                                                                       \
  ", 0;\n"                                                                                      \
  "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type                                   \
  " "                                                                                           \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                     \
  " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, " a ", " b \
  ", add, 1, 1, " flags                                                                         \
  ";\n"                                                                                         \
  "}"
#define FUSEDOPS_WGMMA_SHARED(type)                                                              \
  asm volatile(FUSEDOPS_WGMMA(type, "%34", "%32", "%33", "0, %35")                               \
               : FUSEDOPS_SUMS_4(0), FUSEDOPS_SUMS_4(1), FUSEDOPS_SUMS_4(2), FUSEDOPS_SUMS_4(3), \
                 FUSEDOPS_SUMS_4(4), FUSEDOPS_SUMS_4(5), FUSEDOPS_SUMS_4(6), FUSEDOPS_SUMS_4(7)  \
               : "l"(a), "l"(b), "r"(add), "n"(BKMajor ? 0 : 1))
#define FUSEDOPS_WGMMA_REGISTERS(type)                                                           \
  asm volatile(FUSEDOPS_WGMMA(type, "%37", "{%32, %33, %34, %35}", "%36", "%38")                 \
               : FUSEDOPS_SUMS_4(0), FUSEDOPS_SUMS_4(1), FUSEDOPS_SUMS_4(2), FUSEDOPS_SUMS_4(3), \
                 FUSEDOPS_SUMS_4(4), FUSEDOPS_SUMS_4(5), FUSEDOPS_SUMS_4(6), FUSEDOPS_SUMS_4(7)  \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add),                   \
                 "n"(BKMajor ? 0 : 1))

/// The same for b 16×64; d[j][2h + e] holds what d[4j + 2h + e] does there. `a` has k contiguous.
template <class Storage, bool BKMajor>
__device__ inline void wgmma_m64n64k16(float (&d)[8][4], std::uint64_t a, std::uint64_t b,
                                       int add) {
  if constexpr (std::is_same_v<Storage, Float16>) {
    FUSEDOPS_WGMMA_SHARED("f16");
  } else {
    FUSEDOPS_WGMMA_SHARED("bf16");
  }
}

/// With `a` in registers: of each warp its 16 rows, as for mma_m16n8k16. They may not change before
/// the wait.
template <class Storage, bool BKMajor>
__device__ inline void wgmma_m64n64k16(float (&d)[8][4], const unsigned (&a)[4], std::uint64_t b,
                                       int add) {
  if constexpr (std::is_same_v<Storage, Float16>) {
    FUSEDOPS_WGMMA_REGISTERS("f16");
  } else {
    FUSEDOPS_WGMMA_REGISTERS("bf16");
  }
}

#undef FUSEDOPS_WGMMA_REGISTERS
#undef FUSEDOPS_WGMMA_SHARED
#undef FUSEDOPS_WGMMA
#undef FUSEDOPS_SUMS_4
#undef FUSEDOPS_SUMS_32
#undef FUSEDOPS_SUMS_8

/// Describes to the TMA unit the tensor of 16-bit elements at `data` with `sizes`, innermost first,
/// `steps` of the dimensions after the innermost in bytes, and `box` for what one copy takes. False
/// where the driver refuses it.
inline bool encode_tensor_map(CUtensorMap& map, bool bfloat16, const void* data,
                              const std::uint64_t (&sizes)[4], const std::uint64_t (&steps)[3],
                              const std::uint32_t (&box)[4]) {
  // By the runtime, so that nothing is linked to the driver's library, which a machine that only
  // builds does not have.
  static const auto encode = [] {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 13000
    const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry,
                                                               12000, cudaEnableDefault, &found);
#else
    const cudaError_t error =
        cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &entry, cudaEnableDefault, &found);
#endif
    const bool usable = error == cudaSuccess && found == cudaDriverEntryPointSuccess;
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(usable ? entry : nullptr);
  }();
  const std::uint32_t every[4] = {1, 1, 1, 1};
  return encode != nullptr &&
         encode(&map, bfloat16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
                4, const_cast<void*>(data), sizes, steps, box, every, CU_TENSOR_MAP_INTERLEAVE_NONE,
                CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

}  // namespace fusedops
