#pragma once

#include <cstdint>

#include "common/mma.cuh"
#include "matmul/tile.cuh"

// How matmul's operands come to shared memory for the tensor cores, and how they lie there.

namespace fusedops {

constexpr int kDepth = 32;  // of k, a stage
constexpr int kChunk = 8;   // elements of 16 bytes

/// A stage of one operand in shared memory: Rows × kDepth elements as chunks of 16 bytes, ordered
/// so that the eight rows that ldmatrix reads at a time, and the eight chunks that eight threads
/// write, lie in different banks.
template <int Rows, bool KMajor>
struct StageLayout {
  static constexpr int chunks = Rows * kDepth / kChunk;

  /// Of the chunk that begins at `row` and `k`, one of which is a multiple of 8: where k is
  /// contiguous a chunk is 8 of a row's k, else 8 rows of one k.
  __device__ static int chunk(int row, int k) {
    if (KMajor) {
      constexpr int in_row = kDepth / kChunk;
      return row * in_row + ((k / kChunk) ^ ((row >> 1) & (in_row - 1)));
    }
    constexpr int in_row = Rows / kChunk;
    return k * in_row + ((row / kChunk) ^ (k & 7));
  }
};

/// One operand's way to shared memory by asynchronous copies of 16 bytes.
template <class Storage, int Rows, bool KMajor, int Threads>
class VectorLoader {
 public:
  using Layout = StageLayout<Rows, KMajor>;
  static constexpr int copies = Layout::chunks / Threads;
  static_assert(Layout::chunks % Threads == 0);

  /// `rows` and `k` are left of the matrix from the first element, `from`, on.
  __device__ VectorLoader(const Storage* from, const Operand<Storage>& operand, std::int64_t rows,
                          std::int64_t k)
      : k_left_(k) {
    const std::int64_t ld = KMajor ? operand.row_step : operand.k_step;
    const int thread = static_cast<int>(threadIdx.x);
    const int row = KMajor ? thread / per_line : thread % per_line * kChunk;
    k_ = KMajor ? thread % per_line * kChunk : thread / per_line;
    source_ = from + (KMajor ? row * ld + k_ : row + k_ * ld);
    step_ = lines * ld;
    next_ = KMajor ? kDepth : kDepth * ld;
    for (int i = 0; i < copies; ++i) {
      rows_valid_ |= static_cast<unsigned>(row + (KMajor ? i * lines : 0) < rows) << i;
    }
    to_ = Layout::chunk(row, k_);
  }

  /// Begins the copies of the next stage to `stage`; what is beyond the matrix becomes zero.
  __device__ void load(uint4* stage) {
    const int k_left = clip_to_int(k_left_);
#pragma unroll
    for (int i = 0; i < copies; ++i) {
      const bool valid = (rows_valid_ >> i & 1u) != 0 && k_ + (KMajor ? 0 : i * lines) < k_left;
      cp_async_16(stage + to_ + i * Threads, source_ + i * step_, valid);
    }
    source_ += next_;
    k_left_ -= kDepth;
  }

 private:
  static constexpr int per_line = (KMajor ? kDepth : Rows) / kChunk;
  static constexpr int lines = Threads / per_line;  // that all threads copy at a time
  static_assert(lines % 8 == 0, "the order of chunks repeats every 8 lines");

  const Storage* source_;
  std::int64_t step_, next_, k_left_;
  int k_, to_;
  unsigned rows_valid_ = 0;
};

/// The same by elements, for matrices whose rows do not begin on 16 bytes. In shared memory k is
/// contiguous, whichever way it lies in the matrix.
template <class Storage, int Rows, int Threads>
class ElementLoader {
 public:
  using Layout = StageLayout<Rows, true>;

  __device__ ElementLoader(const Storage* from, const Operand<Storage>& operand, std::int64_t rows,
                           std::int64_t k)
      : source_(from),
        row_step_(operand.row_step),
        k_step_(operand.k_step),
        k_left_(k),
        rows_left_(clip_to_int(rows)),
        k_major_(k_step_ == 1) {}

  __device__ void load(uint4* stage) {
    const auto elements = reinterpret_cast<Storage*>(stage);
    const int k_left = clip_to_int(k_left_);
    constexpr int batch = 8;  // loads in flight
    constexpr int each = Rows * kDepth / Threads;
    static_assert(each % batch == 0);
#pragma unroll 1
    for (int from = 0; from < each; from += batch) {
      Storage values[batch];
#pragma unroll
      for (int i = 0; i < batch; ++i) {
        const int at = static_cast<int>(threadIdx.x) + (from + i) * Threads;
        const int row = row_of(at), k = k_of(at);
        values[i] =
            row < rows_left_ && k < k_left ? source_[row * row_step_ + k * k_step_] : Storage{0};
      }
#pragma unroll
      for (int i = 0; i < batch; ++i) {
        const int at = static_cast<int>(threadIdx.x) + (from + i) * Threads;
        const int row = row_of(at), k = k_of(at);
        elements[Layout::chunk(row, k / kChunk * kChunk) * kChunk + k % kChunk] = values[i];
      }
    }
    source_ += kDepth * k_step_;
    k_left_ -= kDepth;
  }

 private:
  // Neighbouring threads read neighbours in memory.
  __device__ int row_of(int at) const { return k_major_ ? at / kDepth : at % Rows; }
  __device__ int k_of(int at) const { return k_major_ ? at % kDepth : at / Rows; }

  const Storage* source_;
  std::int64_t row_step_, k_step_, k_left_;
  int rows_left_;
  bool k_major_;
};

}  // namespace fusedops
