#pragma once

#include <cstdint>

namespace fusedops {

/// Copies the bytes `begin` to `end` of `from` to the same of `to`. Ranges may run in parallel.
void copy_async_cpu(const void* from, void* to, std::int64_t begin, std::int64_t end);

/// Copies `bytes` between places in the memory of the current device, in the order of `stream`.
/// Throws std::runtime_error when it is refused.
void copy_async_cuda(const void* from, void* to, std::int64_t bytes, void* stream);

}  // namespace fusedops
