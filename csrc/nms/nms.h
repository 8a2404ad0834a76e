#pragma once

#include <cstdint>
#include <functional>

#include "common/dtype.h"

namespace fusedops {

/// One call: `n` boxes of four coordinates x1, y1, x2, y2, a score each, and, where `classes` is
/// not null, a class each. All lie contiguously. A box is dropped where one of its class with a
/// greater score is kept and overlaps it by more than `threshold`.
struct NmsInput {
  DType dtype;
  std::int64_t n;
  const void* boxes;
  const void* scores;
  const std::int64_t* classes;
  double threshold;
};

/// Runs the pieces of work 0 to n - 1 on torch's threads, f(begin, end) a call.
using ParallelFor =
    std::function<void(std::int64_t n, const std::function<void(std::int64_t, std::int64_t)>& f)>;

/// Writes the indices of the boxes that are kept, by falling score, to `kept`, which has room for
/// `n`, and returns their number. `order` sorts the scores from the greatest down.
///
/// The arithmetic is that of torchvision's kernel for the CPU
/// (torchvision/csrc/ops/cpu/nms_kernel.cpp, 0.26). The 16-bit types, which it refuses, are
/// computed in float.
std::int64_t nms_cpu(const NmsInput&, const std::int64_t* order, std::int64_t* kept,
                     const ParallelFor&);

/// Up to this many boxes nms_cuda sorts the scores itself: in one launch, where torch's sort is
/// several. It counts for each box those before it, which for many boxes would be the slower way.
constexpr std::int64_t kNmsSorts = 8192;

/// Of what nms_cuda needs for `input`: the indices of the kept boxes, and all between.
std::int64_t nms_cuda_bytes(const NmsInput& input);

/// The same as nms_cpu, with `memory` of nms_cuda_bytes(input) bytes, at whose beginning the
/// indices are written. `order` may be null where n <= kNmsSorts. Waits for `stream` to learn the
/// number.
///
/// The arithmetic is that of torchvision's kernel for CUDA, which rounds at other places
/// (nms/boxes.cuh).
std::int64_t nms_cuda(const NmsInput& input, const std::int64_t* order, void* memory, void* stream);

/// Whether `stream` is being captured in a graph, where nothing can be waited for.
bool nms_capturing(void* stream);

}  // namespace fusedops
