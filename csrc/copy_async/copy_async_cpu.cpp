#include <cstddef>
#include <cstring>

#include "copy_async/copy_async.h"

namespace fusedops {

void copy_async_cpu(const void* from, void* to, std::int64_t begin, std::int64_t end) {
  std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin,
              static_cast<std::size_t>(end - begin));
}

}  // namespace fusedops
