#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/dtype.h"

// The one view that operators have of torch. `stable` uses only torch's stable ABI, so one library
// serves torch 2.10 and every later release; `aten` uses the C++ API and is built per release.
// Chosen at configure time by FUSEDOPS_TORCH_ABI.
#ifdef FUSEDOPS_ABI_STABLE
#include "abi/stable.h"
#else
#include "abi/aten.h"
#endif

// Each implementation defines what is declared here, and
//   Tensor                          a reference-counted handle
//   Ints                            a list of int64, as an argument
//   DeviceGuard(int32_t index)      makes that CUDA device current for its scope
//   parallel_over(out, grain, f)    f(begin, end) over the elements of `out`, which lie densely, on
//                                   torch's threads, `grain` elements or more a call
//   parallel_for(n, f)              f(begin, end) over the pieces of work 0 to n - 1, the same way
//   FUSEDOPS_LIBRARY(m)             m.def(schema) adds operators to torch.ops.fusedops
//   FUSEDOPS_LIBRARY_IMPL(key, m)   m.impl(name, FUSEDOPS_BOX(function)) gives them kernels
namespace fusedops::abi {

std::int64_t numel(const Tensor& t);
std::int64_t dim(const Tensor& t);
std::int64_t size(const Tensor& t, std::int64_t d);
/// In elements.
std::int64_t stride(const Tensor& t, std::int64_t d);
/// In bytes, of any dtype.
std::int64_t element_size(const Tensor& t);

/// False, with `dtype` left as it was, for a dtype that kernels do not take.
bool find_dtype(const Tensor& t, DType& dtype);
std::string dtype_name(const Tensor& t);

bool is_cuda(const Tensor& t);
std::int32_t device_index(const Tensor& t);
/// As torch writes it, "cuda:0".
std::string device_name(const Tensor& t);

const void* data(const Tensor& t);
void* mutable_data(const Tensor& t);

/// With the shape, dtype and device of `like`.
Tensor empty_strided(const std::int64_t* strides, const Tensor& like);
/// As `t`, whose elements lie densely: what empty_like gives of it, at less cost.
Tensor empty_as(const Tensor& t);
/// Both keep `t`'s strides where its elements lie densely, and else the order of its dimensions.
Tensor empty_like(const Tensor& t);
Tensor clone(const Tensor& t);
void copy(Tensor& to, const Tensor& from);
Tensor contiguous(const Tensor& t);
Tensor narrow(const Tensor& t, std::int64_t d, std::int64_t start, std::int64_t length);

/// Contiguous and uninitialised, on the device of `like`; its dtype is that of `like` or the one
/// named.
Tensor empty(const std::vector<std::int64_t>& sizes, const Tensor& like);
Tensor empty_bytes(std::int64_t count, const Tensor& like);
Tensor empty_float32(const std::vector<std::int64_t>& sizes, const Tensor& like);
Tensor empty_int64(const std::vector<std::int64_t>& sizes, const Tensor& like);

bool is_int64(const Tensor& t);
bool is_uint8(const Tensor& t);

/// The indices, int64, that sort the one dimension of `t` from the greatest down; equals keep their
/// order, and NaN is the greatest.
Tensor argsort_descending(const Tensor& t);
/// torch.matmul.
Tensor matmul(const Tensor& a, const Tensor& b);

#ifdef FUSEDOPS_WITH_CUDA
/// The cudaStream_t that torch's current stream on CUDA device `index` wraps.
void* current_stream(std::int32_t index);
#endif

}  // namespace fusedops::abi
