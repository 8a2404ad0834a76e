#include "common/device.h"
#include "nms/nms.h"
#include "nms/order.cuh"
#include "nms/sweep.cuh"

namespace fusedops {
inline namespace nms_unit {

/// As many panels as have their bits made by one launch: 32 MiB of them.
constexpr int kPanelsAtOnce = 16;

constexpr auto kFailed = "nms failed on the device";

int blocks_for(std::int64_t work, int each) {
  return static_cast<int>((work + each - 1) / each);
}

/// Where everything lies in the one allocation of a call; from null it tells the size.
template <class T>
struct Layout {
  Layout(void* memory, std::int64_t n, bool classes) : at_(static_cast<char*>(memory)) {
    columns = static_cast<int>(n < kPanel ? n : kPanel);
    columns = blocks_for(columns, kTile) * kTile;
    words = columns / kTile;
    panels = blocks_for(n, kPanel);
    const std::int64_t at_once = panels < kPanelsAtOnce ? panels : kPanelsAtOnce;
    kept = take<std::int64_t>(n);
    found = take<Found>(1);
    bits = take<std::uint64_t>(at_once * words * columns);
    sorted.n = static_cast<int>(n);
    sorted.boxes = take<Box<T>>(n);
    sorted.order = take<std::int64_t>(n);
    sorted.classes = take<std::int64_t>(classes ? n : 0);
    sorted.dropped = take<unsigned>(dropped_words(sorted.n));
    bytes = at_ - static_cast<char*>(memory);
  }

  std::int64_t* kept;
  Found* found;
  std::uint64_t* bits;
  Sorted<T> sorted;
  /// Of a panel's bits: words to a column, and columns.
  int words, columns;
  int panels;
  std::int64_t bytes;

 private:
  template <class U>
  U* take(std::int64_t count) {
    constexpr std::int64_t unit = 256;
    char* const taken = at_;
    at_ += (count * static_cast<std::int64_t>(sizeof(U)) + unit - 1) / unit * unit;
    return reinterpret_cast<U*>(taken);
  }

  char* at_;
};

template <class Storage, class T>
void sort(const NmsInput& input, const std::int64_t* order, const Layout<T>& layout,
          cudaStream_t stream) {
  const Unsorted<Storage> from{static_cast<const Storage*>(input.boxes),
                               static_cast<const Storage*>(input.scores), input.classes};
  if (order == nullptr) {
    const int blocks = blocks_for(input.n, kBoxesPerBlock);
    rank_kernel<Storage>
        <<<blocks, kOrderThreads, 0, stream>>>(from, layout.sorted, &layout.found->total);
  } else {
    const int blocks = blocks_for(input.n, kOrderThreads);
    gather_kernel<Storage>
        <<<blocks, kOrderThreads, 0, stream>>>(from, order, layout.sorted, &layout.found->total);
  }
  check_launch();
}

template <class Storage, bool kClasses, class T>
void sweep(const Layout<T>& layout, T threshold, cudaStream_t stream) {
  const Sorted<T>& sorted = layout.sorted;
  for (int panel = 0; panel < layout.panels; ++panel) {
    const int in_bits = panel % kPanelsAtOnce;
    if (in_bits == 0) {
      const int left = layout.panels - panel;
      const dim3 grid(layout.words, layout.words, left < kPanelsAtOnce ? left : kPanelsAtOnce);
      mask_kernel<Storage, kClasses>
          <<<grid, kTile, 0, stream>>>(sorted, panel, threshold, layout.bits, layout.columns);
      check_launch();
    }
    const int begin = panel * kPanel;
    const std::int64_t offset = static_cast<std::int64_t>(in_bits) * layout.words * layout.columns;
    sweep_kernel<<<1, kSweepThreads, 0, stream>>>(sorted, begin, layout.bits + offset,
                                                  layout.columns, layout.found, layout.kept);
    check_launch();
    if (panel + 1 < layout.panels) {
      const int end = begin + kPanel;
      const dim3 grid(blocks_for(sorted.n - end, kApplyThreads), kPanel / kRowsPerSlice);
      apply_kernel<Storage, kClasses>
          <<<grid, kApplyThreads, 0, stream>>>(sorted, end, layout.found, threshold);
      check_launch();
    }
  }
}

}  // namespace nms_unit

std::int64_t nms_cuda_bytes(const NmsInput& input) {
  const bool classes = input.classes != nullptr;
  return input.dtype == DType::Float64 ? Layout<double>(nullptr, input.n, classes).bytes
                                       : Layout<float>(nullptr, input.n, classes).bytes;
}

std::int64_t nms_cuda(const NmsInput& input, const std::int64_t* order, void* memory,
                      void* stream_pointer) {
  const auto stream = static_cast<cudaStream_t>(stream_pointer);
  std::int64_t total = 0;
  with_storage(input.dtype, [&](auto tag) {
    using Storage = decltype(tag);
    using T = Compute<Storage>;
    const Layout<T> layout(memory, input.n, input.classes != nullptr);
    // As torchvision has it, float for every dtype.
    const T threshold = static_cast<float>(input.threshold);
    sort<Storage>(input, order, layout, stream);
    // From here on bfloat16 is float.
    using Rounded = std::conditional_t<std::is_same_v<Storage, Float16>, Float16, T>;
    if (input.classes != nullptr) {
      sweep<Rounded, true>(layout, threshold, stream);
    } else {
      sweep<Rounded, false>(layout, threshold, stream);
    }
    check_cuda(
        cudaMemcpyAsync(&total, &layout.found->total, sizeof total, cudaMemcpyDeviceToHost, stream),
        kFailed);
  });
  check_cuda(cudaStreamSynchronize(stream), kFailed);
  return total;
}

bool nms_capturing(void* stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(static_cast<cudaStream_t>(stream), &status),
             "whether the CUDA stream is being captured is not known");
  return status != cudaStreamCaptureStatusNone;
}

}  // namespace fusedops
