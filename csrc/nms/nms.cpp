#include "nms/nms.h"

#include <stdexcept>
#include <string>

#include "common/check.h"
#ifdef FUSEDOPS_WITH_CUDA
#include "copy_async/copy_async.h"
#endif

namespace fusedops {
namespace {

/// Places are counted in 32 bits on CUDA. More boxes than this would take 16 GiB in float32.
constexpr std::int64_t kMostBoxes = std::int64_t{1} << 30;

DType check_nms(const char* op, const Tensor& boxes, const Tensor& scores) {
  const DType dtype = check_dtype(op, "boxes", boxes);
  if (abi::dim(boxes) != 2 || abi::size(boxes, 1) != 4) {
    refuse(op, "boxes", "have the shape (N, 4)", shape_name(boxes));
  }
  const std::int64_t n = abi::size(boxes, 0);
  if (n > kMostBoxes) {
    refuse(op, "boxes", "have at most " + std::to_string(kMostBoxes) + " rows", shape_name(boxes));
  }
  check_device(op, "scores", scores, "boxes", boxes);
  check_same_dtype(op, "scores", scores, "boxes", boxes);
  if (abi::dim(scores) != 1 || abi::size(scores, 0) != n) {
    refuse(op, "scores", "have a score for each box, the shape [" + std::to_string(n) + "]",
           shape_name(scores));
  }
  return dtype;
}

void check_idxs(const char* op, const Tensor& idxs, const Tensor& boxes) {
  check_device(op, "idxs", idxs, "boxes", boxes);
  if (!abi::is_int64(idxs)) {
    refuse(op, "idxs", "be an int64 tensor", abi::dtype_name(idxs));
  }
  const std::int64_t n = abi::size(boxes, 0);
  if (abi::dim(idxs) != 1 || abi::size(idxs, 0) != n) {
    refuse(op, "idxs", "have a class for each box, the shape [" + std::to_string(n) + "]",
           shape_name(idxs));
  }
}

const std::int64_t* int64s(const Tensor& t) {
  return static_cast<const std::int64_t*>(abi::data(t));
}

Tensor keep_on_cpu(const NmsInput& input, const Tensor& scores) {
  const Tensor order = abi::argsort_descending(scores);
  Tensor kept = abi::empty_int64({input.n}, scores);
  const std::int64_t count =
      nms_cpu(input, int64s(order), static_cast<std::int64_t*>(abi::mutable_data(kept)),
              [](std::int64_t n, const auto& f) { abi::parallel_for(n, f); });
  // A view would hold on to the memory of all.
  return count == input.n ? kept : abi::clone(abi::narrow(kept, 0, 0, count));
}

#ifdef FUSEDOPS_WITH_CUDA
Tensor keep_on_cuda(const NmsInput& input, const Tensor& scores) {
  void* const stream = abi::current_stream(abi::device_index(scores));
  const bool sorts = input.n <= kNmsSorts;
  const Tensor order = sorts ? scores : abi::argsort_descending(scores);
  Tensor memory = abi::empty_bytes(nms_cuda_bytes(input), scores);
  const std::int64_t count =
      nms_cuda(input, sorts ? nullptr : int64s(order), abi::mutable_data(memory), stream);
  Tensor kept = abi::empty_int64({count}, scores);
  copy_async_cuda(abi::data(memory), abi::mutable_data(kept), count * abi::element_size(kept),
                  stream);
  return kept;
}
#endif

/// Of checked arguments that are not empty; `idxs` may be null.
Tensor keep_contiguous(DType dtype, const Tensor& boxes, const Tensor& scores, const Tensor* idxs,
                       double iou_threshold, Tensor (*keep)(const NmsInput&, const Tensor&)) {
  const Tensor all_boxes = abi::contiguous(boxes);
  const Tensor all_scores = abi::contiguous(scores);
  const Tensor all_idxs = idxs == nullptr ? all_scores : abi::contiguous(*idxs);
  const auto classes = idxs == nullptr ? nullptr : int64s(all_idxs);
  return keep({dtype, abi::numel(scores), abi::data(all_boxes), abi::data(all_scores), classes,
               iou_threshold},
              all_scores);
}

Tensor keep(const char* op, DType dtype, const Tensor& boxes, const Tensor& scores,
            const Tensor* idxs, double iou_threshold) {
  if (abi::numel(scores) == 0) {
    return abi::empty_int64({0}, scores);
  }
#ifdef FUSEDOPS_WITH_CUDA
  if (abi::is_cuda(scores)) {
    const std::int32_t device = abi::device_index(scores);
    const abi::DeviceGuard guard(device);
    if (nms_capturing(abi::current_stream(device))) {
      throw std::runtime_error("fusedops::" + std::string(op) +
                               ": cannot be captured in a CUDA graph, since the host must wait for "
                               "the number of boxes that are kept");
    }
    return keep_contiguous(dtype, boxes, scores, idxs, iou_threshold, keep_on_cuda);
  }
#endif
  return keep_contiguous(dtype, boxes, scores, idxs, iou_threshold, keep_on_cpu);
}

Tensor nms(const Tensor& boxes, const Tensor& scores, double iou_threshold) {
  const DType dtype = check_nms("nms", boxes, scores);
  return keep("nms", dtype, boxes, scores, nullptr, iou_threshold);
}

Tensor batched_nms(const Tensor& boxes, const Tensor& scores, const Tensor& idxs,
                   double iou_threshold) {
  const DType dtype = check_nms("batched_nms", boxes, scores);
  check_idxs("batched_nms", idxs, boxes);
  return keep("batched_nms", dtype, boxes, scores, &idxs, iou_threshold);
}

FUSEDOPS_LIBRARY(m) {
  m.def("nms(Tensor boxes, Tensor scores, float iou_threshold) -> Tensor");
  m.def("batched_nms(Tensor boxes, Tensor scores, Tensor idxs, float iou_threshold) -> Tensor");
}

FUSEDOPS_LIBRARY_IMPL(CPU, m) {
  m.impl("nms", FUSEDOPS_BOX(nms));
  m.impl("batched_nms", FUSEDOPS_BOX(batched_nms));
}

#ifdef FUSEDOPS_WITH_CUDA
FUSEDOPS_LIBRARY_IMPL(CUDA, m) {
  m.impl("nms", FUSEDOPS_BOX(nms));
  m.impl("batched_nms", FUSEDOPS_BOX(batched_nms));
}
#endif

}  // namespace
}  // namespace fusedops
