// Calls fusedops' operators through torch's dispatcher, without Python, on the CPU and on a GPU
// where there is one:   example PATH/TO/fusedops/libfusedops.so Exits with 1 where a value is not
// what eager torch gives.

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <dlfcn.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

using at::Tensor;

// Loading registers the operators. It comes after torch, whose libraries this one needs.
void load(const char* path) {
  if (dlopen(path, RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    throw std::runtime_error(dlerror());
  }
}

// The signature is the schema's; `typed` throws where it is another. Looked up once.
Tensor clip_add(const Tensor& x, double min, double max, double bias) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("fusedops::clip_add", "")
                             .typed<Tensor(const Tensor&, double, double, double)>();
  return op.call(x, min, max, bias);
}

Tensor clip_add_backward(const Tensor& grad, const Tensor& x, double min, double max) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("fusedops::clip_add_backward", "")
                             .typed<Tensor(const Tensor&, const Tensor&, double, double)>();
  return op.call(grad, x, min, max);
}

Tensor affine(const Tensor& x, double a, double b) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("fusedops::affine", "")
                             .typed<Tensor(const Tensor&, double, double)>();
  return op.call(x, a, b);
}

// The formula that fusedops' Python side registers, in C++.
struct ClipAdd : torch::autograd::Function<ClipAdd> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, double min,
                        double max, double bias) {
    context->save_for_backward({x});
    context->saved_data["min"] = min;
    context->saved_data["max"] = max;
    at::AutoDispatchBelowAutograd below;
    return clip_add(x, min, max, bias);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    const Tensor x = context->get_saved_variables()[0];
    const double min = context->saved_data["min"].toDouble();
    const double max = context->saved_data["max"].toDouble();
    return {clip_add_backward(grads[0], x, min, max), Tensor(), Tensor(), Tensor()};
  }
};

Tensor clip_add_with_gradient(const Tensor& x, double min, double max, double bias) {
  return ClipAdd::apply(x, min, max, bias);
}

// Without one of these, torch warns once a call of an operator is differentiated, and leaves its
// gradient out.
TORCH_LIBRARY_IMPL(fusedops, Autograd, m) {
  m.impl("clip_add", TORCH_FN(clip_add_with_gradient));
  m.impl("affine", torch::autograd::autogradNotImplementedFallback());
}

void require(bool right, const std::string& what) {
  std::cout << what << ": " << (right ? "right" : "WRONG") << "\n";
  if (!right) {
    throw std::runtime_error(what + " is wrong");
  }
}

void check(at::DeviceType device) {
  const std::string on = std::string(" on ") + c10::DeviceTypeName(device, /*lower_case=*/true);
  const Tensor x = at::randn({1000, 7}, at::device(device));
  const Tensor grad = at::randn_like(x);
  const Tensor inside = x.ge(-0.5).logical_and(x.le(0.5));
  const Tensor gradient = grad.mul(inside);

  require(at::allclose(clip_add(x, -0.5, 0.5, 0.1), at::clamp(x, -0.5, 0.5) + 0.1),
          "clip_add" + on);
  require(at::equal(clip_add_backward(grad, x, -0.5, 0.5), gradient), "clip_add_backward" + on);

  Tensor leaf = x.clone().set_requires_grad(true);
  clip_add(leaf, -0.5, 0.5, 0.1).backward(grad);
  require(at::equal(leaf.grad(), gradient), "the gradient of clip_add" + on);

  leaf = x.clone().set_requires_grad(true);
  bool refused = false;
  try {
    affine(leaf, 2.0, 1.0).backward(grad);
  } catch (const std::exception&) {
    refused = true;
  }
  require(refused, "refusing the gradient of affine" + on);
}

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: example PATH/TO/fusedops/libfusedops.so\n";
    return 2;
  }
  try {
    load(argv[1]);
    check(at::kCPU);
    if (at::hasCUDA() && at::getNumGPUs() > 0) {
      check(at::kCUDA);
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
