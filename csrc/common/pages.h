#pragma once

#include <cstdint>
#ifdef __linux__
#include <sys/mman.h>
#endif

namespace fusedops {

/// Asks for huge pages under memory that is about to be written whole. Fresh pages of 4 KiB cost
/// more than a pass over them: a fault each, which one of 2 MiB replaces 512 of. numpy asks the
/// same for its arrays, from this size on; the system may decline, and pages already there stay.
inline void prefer_huge_pages(void* memory, std::int64_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  constexpr std::uintptr_t kHuge = 2 << 20;
  if (bytes < std::int64_t{4} << 20) {
    return;
  }
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t begin = (address + kHuge - 1) / kHuge * kHuge;
  const std::uintptr_t end = (address + static_cast<std::uintptr_t>(bytes)) / kHuge * kHuge;
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#else
  static_cast<void>(memory);
  static_cast<void>(bytes);
#endif
}

}  // namespace fusedops
