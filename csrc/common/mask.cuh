#pragma once

#include <type_traits>

#include "common/pointwise.cuh"

namespace fusedops {

constexpr unsigned kWarp = 0xFFFFFFFFu;

/// Where a thread's elements are: 16 bytes of them, of which the last thread may have fewer.
template <int Size>
struct Place {
  std::int64_t begin, left;
  __device__ explicit Place(std::int64_t n)
      : begin((static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) * Size),
        left(n - begin) {}
  __device__ bool whole() const { return left >= Size; }
};

/// Reads `in` once and writes `out` and `mask` once, all in global memory. One vector a thread, as
/// in `pointwise_kernel`; its bits are 2, 4 or 8, and the first of the lanes that share a byte
/// gathers theirs by shuffles and writes it.
template <class Op, class Storage, int Align>
__global__ void __launch_bounds__(kThreads)
    mask_writing_kernel(Op op, Pointers<Storage, 1> pointers, std::uint8_t* mask, std::int64_t n) {
  using Vec = Vector<Storage, Align>;
  const Place<Vec::size> place(n);
  unsigned bits = 0;
  if (place.whole()) {
    const Vec in = *reinterpret_cast<const Vec*>(pointers.in[0] + place.begin);
    Vec out;
#pragma unroll
    for (int e = 0; e < Vec::size; ++e) {
      const auto x = widen(in.at[e]);
      out.at[e] = narrow<Storage>(op(x));
      bits |= static_cast<unsigned>(op.inside(x)) << e;
    }
    *reinterpret_cast<Vec*>(pointers.out + place.begin) = out;
  } else {
    for (int e = 0; e < place.left; ++e) {
      const auto x = widen(pointers.in[0][place.begin + e]);
      pointers.out[place.begin + e] = narrow<Storage>(op(x));
      bits |= static_cast<unsigned>(op.inside(x)) << e;
    }
  }
  // Lanes beyond the last element come here too, with bits that are 0.
#pragma unroll
  for (int gathered = Vec::size; gathered < 8; gathered *= 2) {
    bits |= __shfl_down_sync(kWarp, bits, gathered / Vec::size) << gathered;
  }
  if (place.left > 0 && place.begin % 8 == 0) {
    mask[place.begin / 8] = static_cast<std::uint8_t>(bits);
  }
}

/// Reads `in` and `mask` once and writes `out` once, all in global memory.
template <class Op, class Storage, int Align>
__global__ void __launch_bounds__(kThreads)
    mask_reading_kernel(Op op, Pointers<Storage, 1> pointers, const std::uint8_t* mask,
                        std::int64_t n) {
  using Vec = Vector<Storage, Align>;
  const Place<Vec::size> place(n);
  if (place.left <= 0) {
    return;
  }
  const auto own_bits = [&] { return mask[place.begin / 8] >> (place.begin % 8); };
  if (place.whole()) {
    const Vec in = *reinterpret_cast<const Vec*>(pointers.in[0] + place.begin);
    const unsigned bits = own_bits();  // after the read of `in`, which would else wait for it
    Vec out;
#pragma unroll
    for (int e = 0; e < Vec::size; ++e) {
      out.at[e] = narrow<Storage>(op(widen(in.at[e]), (bits >> e & 1) != 0));
    }
    *reinterpret_cast<Vec*>(pointers.out + place.begin) = out;
  } else {
    const unsigned bits = own_bits();
    for (int e = 0; e < place.left; ++e) {
      const std::int64_t i = place.begin + e;
      pointers.out[i] = narrow<Storage>(op(widen(pointers.in[0][i]), (bits >> e & 1) != 0));
    }
  }
}

/// Launches `kernels(tag, align)`, a kernel of `Op` for the storage type of `tag`, as
/// `pointwise_cuda` does.
template <template <class> class Op, class Params, class Byte>
void mask_cuda(const Operands<1>& operands, const Params& params, Byte* mask, void* stream) {
  with_storage(operands.dtype, [&](auto tag) {
    using Storage = decltype(tag);
    using Functor = Op<Compute<Storage>>;
    constexpr int size = kVectorBytes / sizeof(Storage);
    const Pointers<Storage, 1> pointers{{static_cast<const Storage*>(operands.in[0])},
                                        static_cast<Storage*>(operands.out)};
    const std::int64_t threads = (operands.n + size - 1) / size;
    const auto blocks = static_cast<unsigned>((threads + kThreads - 1) / kThreads);
    void (*kernel)(Functor, Pointers<Storage, 1>, Byte*, std::int64_t);
    if constexpr (std::is_const_v<Byte>) {
      kernel = vector_aligned(pointers) ? mask_reading_kernel<Functor, Storage, kVectorBytes>
                                        : mask_reading_kernel<Functor, Storage, sizeof(Storage)>;
    } else {
      kernel = vector_aligned(pointers) ? mask_writing_kernel<Functor, Storage, kVectorBytes>
                                        : mask_writing_kernel<Functor, Storage, sizeof(Storage)>;
    }
    kernel<<<blocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(Functor(params), pointers,
                                                                       mask, operands.n);
  });
  check_launch();
}

}  // namespace fusedops
