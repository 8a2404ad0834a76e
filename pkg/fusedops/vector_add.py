"""x + y for two tensors of one shape."""

from typing import Any

import torch
from torch import Tensor

from fusedops._autograd import register_autograd
from fusedops._registration import check_like, register_pointwise_vmap

_vector_add = torch.ops.fusedops.vector_add.default


def vector_add(x: Tensor, y: Tensor) -> Tensor:
    """`x + y`, rounded once.

    Both are float16, bfloat16, float32 or float64, of the same shape, dtype and device (there is no
    broadcasting and no type promotion), each with any strides, on CPU or CUDA; the result has the
    shape, dtype and, where `x` is dense, the strides of `x`. Differentiable in both any number of
    times. Raises RuntimeError for another dtype and where `y` is not like `x`.
    """
    return _call(x, y)


@torch.library.register_fake("fusedops::vector_add")
def _(x: Tensor, y: Tensor) -> Tensor:
    check_like("vector_add", "y", y, "x", x)
    return torch.empty_like(x)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    """The gradient needs nothing."""


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:  # noqa: ARG001
    return grad, grad


_call = register_autograd(_vector_add, _backward, _save)
register_pointwise_vmap("fusedops::vector_add", _vector_add, tensors=2)
