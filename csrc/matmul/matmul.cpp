#include "matmul/matmul.h"

#include <algorithm>
#include <vector>

#include "common/check.h"

namespace fusedops {
namespace {

void check_matrix(const char* argument, const Tensor& t, const char* meaning) {
  if (abi::dim(t) < 2) {
    refuse("matmul", argument, std::string("have 2 or more dimensions, ") + meaning,
           "the shape " + shape_name(t));
  }
}

/// The size of `t`'s batch dimension that stands `back` places before its matrix; 1 where it has
/// none.
std::int64_t batch_extent(const Tensor& t, std::int64_t back) {
  const std::int64_t d = abi::dim(t) - 3 - back;
  return d < 0 ? 1 : abi::size(t, d);
}

DType check_matmul(const Tensor& a, const Tensor& b) {
  const DType dtype = check_dtype("matmul", "a", a);
  check_device("matmul", "b", b, "a", a);
  check_same_dtype("matmul", "b", b, "a", a);
  check_matrix("a", a, "(..., M, K)");
  check_matrix("b", b, "(..., K, N)");
  const std::int64_t k = abi::size(a, abi::dim(a) - 1);
  if (abi::size(b, abi::dim(b) - 2) != k) {
    refuse("matmul", "b", "have as many rows as a has columns, " + std::to_string(k),
           "the shape " + shape_name(b));
  }
  for (std::int64_t back = 0; back < std::min(abi::dim(a), abi::dim(b)) - 2; ++back) {
    const std::int64_t x = batch_extent(a, back), y = batch_extent(b, back);
    if (x != y && x != 1 && y != 1) {
      refuse("matmul", "b",
             "have batch dimensions that broadcast with those of a, " + shape_name(a),
             "the shape " + shape_name(b));
    }
  }
  return dtype;
}

#ifdef FUSEDOPS_WITH_CUDA

/// Where `rows` and `k` are the dimensions of t that an operand's rows and k are. Steps of
/// dimensions of one element say nothing.
bool find_operand(const Tensor& t, std::int64_t rows, std::int64_t k, MatmulOperand& operand) {
  const std::int64_t row_step = abi::size(t, rows) > 1 ? abi::stride(t, rows) : 0;
  const std::int64_t k_step = abi::size(t, k) > 1 ? abi::stride(t, k) : 0;
  const bool one_row = abi::size(t, rows) <= 1, one_k = abi::size(t, k) <= 1;
  operand.data = abi::data(t);
  operand.k_major = k_step == 1 || (one_k && row_step > 1);
  operand.ld = operand.k_major ? row_step : k_step;
  return operand.k_major || row_step == 1 || one_row;
}

/// `t`, or a contiguous copy where neither its rows nor its columns are contiguous.
Tensor operand_tensor(const Tensor& t, std::int64_t rows, std::int64_t k, MatmulOperand& operand) {
  if (find_operand(t, rows, k, operand)) {
    return t;
  }
  const Tensor copy = abi::contiguous(t);
  find_operand(copy, rows, k, operand);
  return copy;
}

struct BatchDim {
  std::int64_t size, a, b;  // steps of the operands, in elements
};

std::int64_t batch_step(const Tensor& t, std::int64_t back) {
  return batch_extent(t, back) > 1 ? abi::stride(t, abi::dim(t) - 3 - back) : 0;
}

/// The batch's dimensions, outermost first, with neighbours that both operands step through as one
/// taken for one.
std::vector<BatchDim> batch_dims(const Tensor& a, const Tensor& b) {
  std::vector<BatchDim> dims;
  for (std::int64_t back = std::max(abi::dim(a), abi::dim(b)) - 3; back >= 0; --back) {
    const BatchDim inner{std::max(batch_extent(a, back), batch_extent(b, back)),
                         batch_step(a, back), batch_step(b, back)};
    if (inner.size == 1) {
      continue;
    }
    if (!dims.empty() && dims.back().a == inner.size * inner.a &&
        dims.back().b == inner.size * inner.b) {
      dims.back() = {dims.back().size * inner.size, inner.a, inner.b};
    } else {
      dims.push_back(inner);
    }
  }
  return dims;
}

/// A batch of `a` times one `b` is one matrix times `b` where the rows of `a` follow each other
/// through the batch, as those of the result do.
bool fold_batch_into_rows(MatmulParams& params, std::vector<BatchDim>& dims) {
  if (dims.empty() || dims.back().b != 0) {
    return false;
  }
  const BatchDim inner = dims.back();
  if (params.m > 1 && inner.a != params.m * (params.a.k_major ? params.a.ld : 1)) {
    return false;
  }
  if (params.m == 1 && params.a.k_major) {
    params.a.ld = inner.a;
  } else if (params.m == 1 && inner.a != 1) {
    return false;
  }
  params.m *= inner.size;
  dims.pop_back();
  return true;
}

const void* advance(const void* data, std::int64_t bytes) {
  return static_cast<const char*>(data) + bytes;
}

/// Launches the innermost kBatchDims of `dims` at once and steps through those before them.
void launch_batch(MatmulParams params, const std::vector<BatchDim>& dims, std::size_t first,
                  void* stream) {
  const auto left = static_cast<int>(dims.size() - first);
  if (left <= kBatchDims) {
    for (int d = 0; d < kBatchDims; ++d) {
      const int missing = kBatchDims - left;
      const BatchDim dim = d < missing ? BatchDim{1, 0, 0} : dims[first + d - missing];
      params.batch[d] = dim.size;
      params.a.batch_stride[d] = dim.a;
      params.b.batch_stride[d] = dim.b;
    }
    matmul_cuda(params, stream);
    return;
  }
  std::int64_t out_step = params.m * params.n * element_bytes(params.dtype);
  for (std::size_t d = first + 1; d < dims.size(); ++d) {
    out_step *= dims[d].size;
  }
  for (std::int64_t i = 0; i < dims[first].size; ++i) {
    launch_batch(params, dims, first + 1, stream);
    params.a.data = advance(params.a.data, dims[first].a * element_bytes(params.dtype));
    params.b.data = advance(params.b.data, dims[first].b * element_bytes(params.dtype));
    params.out = static_cast<char*>(params.out) + out_step;
  }
}

std::vector<std::int64_t> product_shape(const Tensor& a, const Tensor& b) {
  const std::int64_t dims = std::max(abi::dim(a), abi::dim(b));
  std::vector<std::int64_t> shape(dims);
  for (std::int64_t back = 0; back < dims - 2; ++back) {
    const std::int64_t x = batch_extent(a, back), y = batch_extent(b, back);
    shape[dims - 3 - back] = x == 1 ? y : x;
  }
  shape[dims - 2] = abi::size(a, abi::dim(a) - 2);
  shape[dims - 1] = abi::size(b, abi::dim(b) - 1);
  return shape;
}

Tensor matmul_on_cuda(DType dtype, const Tensor& a, const Tensor& b) {
  const std::int32_t device = abi::device_index(a);
  const abi::DeviceGuard guard(device);
  const std::vector<std::int64_t> shape = product_shape(a, b);
  Tensor out = abi::empty(shape, a);
  if (abi::numel(out) == 0) {
    return out;
  }
  const std::int64_t a_dims = abi::dim(a), b_dims = abi::dim(b);
  MatmulParams params{};
  params.dtype = dtype;
  params.m = abi::size(a, a_dims - 2);
  params.n = abi::size(b, b_dims - 1);
  params.k = abi::size(a, a_dims - 1);
  params.out = abi::mutable_data(out);
  const Tensor first = operand_tensor(a, a_dims - 2, a_dims - 1, params.a);
  const Tensor second = operand_tensor(b, b_dims - 1, b_dims - 2, params.b);
  std::vector<BatchDim> dims = batch_dims(first, second);
  while (fold_batch_into_rows(params, dims)) {
  }
  launch_batch(params, dims, 0, abi::current_stream(device));
  return out;
}

#endif

Tensor matmul(const Tensor& a, const Tensor& b) {
  const DType dtype = check_matmul(a, b);
#ifdef FUSEDOPS_WITH_CUDA
  if (abi::is_cuda(a)) {
    return matmul_on_cuda(dtype, a, b);
  }
#endif
  static_cast<void>(dtype);
  // torch's product of a matrix and a batch can lie transposed.
  return abi::contiguous(abi::matmul(a, b));
}

FUSEDOPS_LIBRARY(m) {
  m.def("matmul(Tensor a, Tensor b) -> Tensor");
}

FUSEDOPS_LIBRARY_IMPL(CPU, m) {
  m.impl("matmul", FUSEDOPS_BOX(matmul));
}

#ifdef FUSEDOPS_WITH_CUDA
FUSEDOPS_LIBRARY_IMPL(CUDA, m) {
  m.impl("matmul", FUSEDOPS_BOX(matmul));
}
#endif

}  // namespace
}  // namespace fusedops
