#include <torch/extension.h>

torch::Tensor twice(const torch::Tensor& x) { return x * 2; }

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("twice", &twice); }
