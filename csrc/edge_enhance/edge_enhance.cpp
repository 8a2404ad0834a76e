#include "edge_enhance/edge_enhance.h"

#include <cmath>
#include <string>

#include "common/check.h"
#include "common/older_libm.h"
#include "common/pages.h"

namespace fusedops {
namespace {

/// exp(-d^2 / 2 sigma^2) for d = 0, 1 and 2, so divided that the whole filter's sum is 1.
void set_edge_enhance_weights(EdgeEnhance& call, double sigma) {
  double total = 0;
  for (int d = 0; d <= 2; ++d) {
    const double distance = d / sigma;
    call.weight[d] = d <= call.radius ? std::exp(-distance * distance / 2) : 0;
    total += d == 0 ? call.weight[d] : 2 * call.weight[d];
  }
  for (double& weight : call.weight) {
    weight /= total;
  }
}

void check_edge_enhance(const char* op, const char* argument, const Tensor& x, double sigma,
                        std::int64_t kernel_size) {
  check_dim(op, argument, x, 4, "(N, C, H, W)");
  if (kernel_size != 3 && kernel_size != 5) {
    refuse(op, "kernel_size", "be 3 or 5", std::to_string(kernel_size));
  }
  if (!(sigma > 0)) {
    refuse(op, "sigma", "be greater than 0", std::to_string(sigma));
  }
  for (std::int64_t d = 2; d < 4; ++d) {
    if (const std::int64_t size = abi::size(x, d); size <= kernel_size / 2 || size > kEdgeMost) {
      refuse(op, argument,
             "have more than " + std::to_string(kernel_size / 2) +
                 " rows and columns, for its borders to be reflected, and at most 2^28",
             shape_name(x));
    }
  }
}

/// The result is contiguous.
Tensor run_edge_enhance(const char* op, const char* argument, const Tensor& given, double amount,
                        double sigma, std::int64_t kernel_size, bool adjoint) {
  const DType dtype = check_dtype(op, argument, given);
  check_edge_enhance(op, argument, given, sigma, kernel_size);
  const Tensor x = abi::contiguous(given);
  Tensor out = abi::empty({abi::size(x, 0), abi::size(x, 1), abi::size(x, 2), abi::size(x, 3)}, x);
  const std::int64_t n = abi::numel(x);
  if (n == 0) {
    return out;
  }
  EdgeEnhance call{};
  call.dtype = dtype;
  call.planes = abi::size(x, 0) * abi::size(x, 1);
  call.height = abi::size(x, 2);
  call.width = abi::size(x, 3);
  call.radius = static_cast<int>(kernel_size / 2);
  call.amount = amount;
  set_edge_enhance_weights(call, sigma);
  call.adjoint = adjoint;
  call.in = abi::data(x);
  call.out = abi::mutable_data(out);
#ifdef FUSEDOPS_WITH_CUDA
  if (abi::is_cuda(x)) {
    const std::int32_t device = abi::device_index(x);
    const abi::DeviceGuard guard(device);
    edge_enhance_cuda(call, abi::current_stream(device));
    return out;
  }
#endif
  prefer_huge_pages(call.out, n * size_of(dtype));
  // A row belongs to the range that holds its first element.
  const auto rows_before = [&](std::int64_t i) { return (i + call.width - 1) / call.width; };
  constexpr std::int64_t kElements = 32768;  // as torch's own: below this a thread costs too much
  abi::parallel_over(out, kElements, [&](std::int64_t begin, std::int64_t end) {
    edge_enhance_cpu(call, rows_before(begin), rows_before(end));
  });
  return out;
}

Tensor edge_enhance(const Tensor& x, double amount, double sigma, std::int64_t kernel_size) {
  return run_edge_enhance("edge_enhance", "x", x, amount, sigma, kernel_size, false);
}

Tensor edge_enhance_backward(const Tensor& grad, double amount, double sigma,
                             std::int64_t kernel_size) {
  return run_edge_enhance("edge_enhance_backward", "grad", grad, amount, sigma, kernel_size, true);
}

FUSEDOPS_LIBRARY(m) {
  m.def("edge_enhance(Tensor x, float amount, float sigma, int kernel_size=3) -> Tensor");
  m.def("edge_enhance_backward(Tensor grad, float amount, float sigma, int kernel_size) -> Tensor");
}

FUSEDOPS_LIBRARY_IMPL(CPU, m) {
  m.impl("edge_enhance", FUSEDOPS_BOX(edge_enhance));
  m.impl("edge_enhance_backward", FUSEDOPS_BOX(edge_enhance_backward));
}

#ifdef FUSEDOPS_WITH_CUDA
FUSEDOPS_LIBRARY_IMPL(CUDA, m) {
  m.impl("edge_enhance", FUSEDOPS_BOX(edge_enhance));
  m.impl("edge_enhance_backward", FUSEDOPS_BOX(edge_enhance_backward));
}
#endif

}  // namespace
}  // namespace fusedops
