#pragma once

#include <cstdlib>
#include <cstring>

// Loops compiled for each width of vectors, one of which is chosen at run time.

/// The short form, for a function that the compiler needs no help with. GCC names AVX-512 with its
/// byte and word instructions in target_clones from version 12 on only; `run_wide` has no such
/// limit.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#define FUSEDOPS_WIDE_LOOP __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#elif defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FUSEDOPS_WIDE_LOOP __attribute__((target_clones("avx2", "default")))
#else
#define FUSEDOPS_WIDE_LOOP
#endif

#if defined(__x86_64__) && defined(__GNUC__)
#define FUSEDOPS_X86 1
#define FUSEDOPS_AVX2 __attribute__((target("avx2,f16c")))
#define FUSEDOPS_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,f16c")))
#define FUSEDOPS_INLINE inline __attribute__((always_inline))
#elif defined(__GNUC__)
#define FUSEDOPS_INLINE inline __attribute__((always_inline))
#else
#define FUSEDOPS_INLINE inline
#endif

namespace fusedops {

/// What a loop is compiled for, as the type of a loop's first argument.
struct Baseline {};
struct Avx2 {};    // with F16C
struct Avx512 {};  // F, BW, DQ and VL

enum class Width { Baseline, Avx2, Avx512 };

/// The widest that the processor has and torch's own variable ATEN_CPU_CAPABILITY allows.
inline Width width() {
#ifdef FUSEDOPS_X86
  static const Width widest = [] {
    const char* const allowed = std::getenv("ATEN_CPU_CAPABILITY");
    const bool narrow = allowed != nullptr && std::strcmp(allowed, "default") == 0;
    const bool middle = allowed != nullptr && std::strcmp(allowed, "avx2") == 0;
    __builtin_cpu_init();
    // Every processor with AVX2 has F16C, for which GCC has no test of its own before version 11.
    if (narrow || !__builtin_cpu_supports("avx2")) {
      return Width::Baseline;
    }
    const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return wide && !middle ? Width::Avx512 : Width::Avx2;
  }();
  return widest;
#else
  return Width::Baseline;
#endif
}

#ifdef FUSEDOPS_X86
template <class Loop, class... Args>
FUSEDOPS_AVX2 void run_avx2(Args... args) {
  Loop::run(Avx2{}, args...);
}

template <class Loop, class... Args>
FUSEDOPS_AVX512 void run_avx512(Args... args) {
  Loop::run(Avx512{}, args...);
}
#endif

/// Calls `Loop::run(Isa{}, args...)`, a FUSEDOPS_INLINE function, as it was compiled for the widest
/// vectors that the processor has. Nothing else changes: without contraction of a * b + c, which
/// the build forbids, every width gives the same values.
template <class Loop, class... Args>
void run_wide(Args... args) {
#ifdef FUSEDOPS_X86
  switch (width()) {
    case Width::Avx512:
      return run_avx512<Loop>(args...);
    case Width::Avx2:
      return run_avx2<Loop>(args...);
    case Width::Baseline:
      break;
  }
#endif
  Loop::run(Baseline{}, args...);
}

}  // namespace fusedops
