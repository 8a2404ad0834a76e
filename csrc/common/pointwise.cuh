#pragma once

#include <cstdint>

#include "common/convert.cuh"
#include "common/device.h"
#include "common/operands.h"

namespace fusedops {

constexpr int kThreads = 256;
constexpr int kVectorBytes = 16;

/// 16 bytes of elements. With `Align` 16 a copy is one 128-bit access; with the element's own
/// alignment it is one access an element.
template <class Storage, int Align>
struct alignas(Align) Vector {
  static constexpr int size = kVectorBytes / sizeof(Storage);
  Storage at[size];
};

template <class Storage, int Arity>
struct Pointers {
  const Storage* in[Arity];
  Storage* out;
};

template <class Op, class Storage>
__device__ inline Storage apply(const Op& op, const Storage (&x)[1]) {
  return narrow<Storage>(op(widen(x[0])));
}

template <class Op, class Storage>
__device__ inline Storage apply(const Op& op, const Storage (&x)[2]) {
  return narrow<Storage>(op(widen(x[0]), widen(x[1])));
}

/// Reads each input once and writes `out` once, all in global memory.
///
/// One vector a thread: more a thread was slower on Hopper, and one launch of as many threads as
/// there are vectors keeps enough loads in flight to reach a device copy's bandwidth. The n %
/// size elements after the last whole vector have one further thread each.
template <class Op, class Storage, int Arity, int Align>
__global__ void __launch_bounds__(kThreads)
    pointwise_kernel(Op op, Pointers<Storage, Arity> pointers, std::int64_t n) {
  using Vec = Vector<Storage, Align>;
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::int64_t vectors = n / Vec::size;
  if (thread < vectors) {
    Vec in[Arity];
    Vec out;
#pragma unroll
    for (int k = 0; k < Arity; ++k) {
      in[k] = reinterpret_cast<const Vec*>(pointers.in[k])[thread];
    }
#pragma unroll
    for (int e = 0; e < Vec::size; ++e) {
      Storage x[Arity];
#pragma unroll
      for (int k = 0; k < Arity; ++k) {
        x[k] = in[k].at[e];
      }
      out.at[e] = apply(op, x);
    }
    reinterpret_cast<Vec*>(pointers.out)[thread] = out;
  } else {
    const std::int64_t i = vectors * (Vec::size - 1) + thread;
    if (i < n) {
      Storage x[Arity];
#pragma unroll
      for (int k = 0; k < Arity; ++k) {
        x[k] = pointers.in[k][i];
      }
      pointers.out[i] = apply(op, x);
    }
  }
}

template <class Storage, int Arity>
bool vector_aligned(const Pointers<Storage, Arity>& pointers) {
  auto address = reinterpret_cast<std::uintptr_t>(pointers.out);
  for (const Storage* in : pointers.in) {
    address |= reinterpret_cast<std::uintptr_t>(in);
  }
  return address % kVectorBytes == 0;
}

/// Launches `Op<T>(params)` over `operands` on `stream` of the current device, T being the dtype's
/// compute type. Throws std::runtime_error when the launch is refused.
///
/// A grid holds 2^31 - 1 blocks, which at 4096 bytes a block is beyond any device's memory, so
/// there is no loop over grids.
template <template <class> class Op, int Arity, class Params>
void pointwise_cuda(const Operands<Arity>& operands, const Params& params, void* stream) {
  with_storage(operands.dtype, [&](auto tag) {
    using Storage = decltype(tag);
    using Functor = Op<Compute<Storage>>;
    constexpr int size = kVectorBytes / sizeof(Storage);
    Pointers<Storage, Arity> pointers{{}, static_cast<Storage*>(operands.out)};
    for (int k = 0; k < Arity; ++k) {
      pointers.in[k] = static_cast<const Storage*>(operands.in[k]);
    }
    const std::int64_t threads = operands.n / size + operands.n % size;
    const auto blocks = static_cast<unsigned>((threads + kThreads - 1) / kThreads);
    const auto kernel = vector_aligned(pointers)
                            ? pointwise_kernel<Functor, Storage, Arity, kVectorBytes>
                            : pointwise_kernel<Functor, Storage, Arity, sizeof(Storage)>;
    kernel<<<blocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(Functor(params), pointers,
                                                                       operands.n);
  });
  check_launch();
}

}  // namespace fusedops
