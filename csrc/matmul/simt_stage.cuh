#pragma once

#include <cstdint>

#include "common/convert.cuh"
#include "common/mma.cuh"
#include "matmul/tile.cuh"

// How matmul's operands come to shared memory for fused multiply-add, and how they lie there.

namespace fusedops {

/// A stage of one operand in shared memory: Depth lines of one k each. 16 bytes more than its rows
/// give a line, and so bring the eight k × four rows that a warp writes at a time to different
/// banks.
template <class T, int Rows>
struct Line {
  static constexpr int vector = 16 / sizeof(T);
  static constexpr int pitch = Rows + vector;
};

template <class T>
__device__ inline void copy_element(T* shared, const T* global, bool valid) {
#if __CUDA_ARCH__ >= 800
  if constexpr (sizeof(T) == 4) {
    cp_async_4(shared, global, valid);
  } else {
    cp_async_8(shared, global, valid);
  }
#else
  *shared = valid ? *global : T(0);
#endif
}

/// The 16-bit types are widened on their way.
template <class T, class Storage>
__device__ inline void copy_element(T* shared, const Storage* global, bool valid) {
  *shared = valid ? widen(*global) : T(0);
}

template <class T>
__device__ inline void copy_vector(T* shared, const T* global, bool valid) {
#if __CUDA_ARCH__ >= 800
  cp_async_16(shared, global, valid);
#else
  const auto zero = make_uint4(0, 0, 0, 0);
  *reinterpret_cast<uint4*>(shared) = valid ? *reinterpret_cast<const uint4*>(global) : zero;
#endif
}

/// Elements are copied one by one, which transposes them where k is contiguous in memory. A warp
/// copies 8 of k in 4 rows at a time, which are then whole sectors of memory.
template <class Storage, class T, int Rows, int Depth, int Threads>
class KMajorLoader {
 public:
  __device__ KMajorLoader(const Storage* from, const Operand<Storage>& operand, std::int64_t rows,
                          std::int64_t k, bool /*vectors*/)
      : k_step_(operand.k_step), k_left_(k) {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    k_ = warp % (Depth / 8) * 8 + lane % 8;
    row_ = warp / (Depth / 8) * 4 + lane / 8;
    source_ = from + row_ * operand.row_step + k_ * k_step_;
    row_step_ = rows_at_a_time * operand.row_step;
    rows_left_ = clip_to_int(rows) - row_;
  }

  __device__ void load(T* stage) {
    const bool k_valid = k_ < clip_to_int(k_left_);
    T* to = stage + k_ * Line<T, Rows>::pitch + row_;
    const Storage* from = source_;
#pragma unroll
    for (int i = 0; i < Rows / rows_at_a_time; ++i) {
      copy_element(to + i * rows_at_a_time, from, k_valid && i * rows_at_a_time < rows_left_);
      from += row_step_;
    }
    source_ += Depth * k_step_;
    k_left_ -= Depth;
  }

 private:
  static constexpr int rows_at_a_time = Threads / Depth;
  static_assert(Threads / 32 % (Depth / 8) == 0 && Rows % rows_at_a_time == 0);

  const Storage* source_;
  std::int64_t row_step_, k_step_, k_left_;
  int k_, row_, rows_left_;
};

/// Where the rows are contiguous in memory, as they are in shared memory: vectors are copied, or
/// their elements where `vectors` says that they do not lie on 16 bytes.
template <class Storage, class T, int Rows, int Depth, int Threads>
class RowMajorLoader {
 public:
  __device__ RowMajorLoader(const Storage* from, const Operand<Storage>& operand, std::int64_t rows,
                            std::int64_t k, bool vectors)
      : k_left_(k), vectors_(vectors) {
    k_ = static_cast<int>(threadIdx.x) / in_line;
    row_ = static_cast<int>(threadIdx.x) % in_line * vector;
    source_ = from + row_ + k_ * operand.k_step;
    step_ = lines * operand.k_step;
    rows_left_ = clip_to_int(rows) - row_;
  }

  __device__ void load(T* stage) {
    const int k_left = clip_to_int(k_left_);
    T* to = stage + k_ * pitch + row_;
#pragma unroll
    for (int i = 0; i < Depth / lines; ++i) {
      const bool k_valid = k_ + i * lines < k_left;
      if (vectors_) {
        copy_vector(to + i * lines * pitch, source_, k_valid && rows_left_ > 0);
      } else {
#pragma unroll
        for (int e = 0; e < vector; ++e) {
          copy_element(to + i * lines * pitch + e, source_ + e, k_valid && e < rows_left_);
        }
      }
      source_ += step_;
    }
    k_left_ -= Depth;
  }

 private:
  static constexpr int vector = Line<T, Rows>::vector, pitch = Line<T, Rows>::pitch;
  static constexpr int in_line = Rows / vector;
  static constexpr int lines = Threads / in_line;  // that all threads copy at a time
  static_assert(Threads % in_line == 0 && Depth % lines == 0);

  const Storage* source_;
  std::int64_t step_, k_left_;
  int k_, row_, rows_left_;
  bool vectors_;
};

__device__ inline void commit_copies() {
#if __CUDA_ARCH__ >= 800
  cp_async_commit();
#endif
}

template <int Newest>
__device__ inline void wait_copies() {
#if __CUDA_ARCH__ >= 800
  cp_async_wait<Newest>();
#endif
}

}  // namespace fusedops
