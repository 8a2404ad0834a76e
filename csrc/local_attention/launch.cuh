#pragma once

#include <cstdint>

#include "common/device.h"
#include "local_attention/local_attention.h"

/// Marks a kernel's parameter as one that is never copied, so that functions can refer to it.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 700
#define FUSEDOPS_CONSTANT __grid_constant__
#else
#define FUSEDOPS_CONSTANT
#endif

namespace fusedops {

/// Where block number `block` of `size` rows a block is: blocks of one matrix follow each other,
/// and so share in the L2 cache the columns that neighbours meet. With `Index` int it takes
/// registers that some kernels do not have for std::int64_t.
template <class Index>
struct AttentionPlace {
  Index batch, head, first;

  __device__ AttentionPlace(const LocalAttention& call, std::int64_t block, int size) {
    const std::int64_t blocks = (call.rows + size - 1) / size;
    const std::int64_t matrix = block / blocks;
    batch = static_cast<Index>(matrix / call.heads);
    head = static_cast<Index>(matrix - batch * call.heads);
    first = static_cast<Index>((block - matrix * blocks) * size);
  }
};

/// Calls `launch(grid, first_block)` until every block of `size` rows is in a grid.
template <class F>
void attention_grids(const LocalAttention& call, int size, const F& launch) {
  constexpr std::int64_t most = 1 << 30;
  const std::int64_t blocks = call.batches * call.heads * ((call.rows + size - 1) / size);
  for (std::int64_t first = 0; first < blocks; first += most) {
    launch(static_cast<unsigned>(blocks - first < most ? blocks - first : most), first);
    check_launch();
  }
}

}  // namespace fusedops
