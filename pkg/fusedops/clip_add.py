"""clamp(x, min, max) + bias in one pass over memory."""

from typing import Any

import torch
from torch import Tensor

from fusedops._autograd import Formula, register_autograd
from fusedops._masked_scale import keep_mask, mask_like, masked_gradient
from fusedops._registration import (
    check_like,
    keep_order_of_strides,
    register_looping_vmap,
    register_pointwise_vmap,
)

_clip_add = torch.ops.fusedops.clip_add.default
_clip_add_forward = torch.ops.fusedops.clip_add_forward.default
_clip_add_backward = torch.ops.fusedops.clip_add_backward.default


def clip_add(x: Tensor, min: float, max: float, bias: float) -> Tensor:  # noqa: A002
    """`torch.clamp(x, min, max) + bias`, rounded once.

    `x` is float16, bfloat16, float32 or float64, of any shape and strides, on CPU or CUDA; the
    result has its shape, dtype and, where it is dense, its strides. As in torch.clamp, NaN passes
    through, and the result is `max + bias` where `min > max`. The gradient is 1 for
    `min <= x <= max`, bounds included on every torch, and 0 elsewhere. On CUDA one bit an
    element is kept for it, elsewhere `x`. Raises RuntimeError for another dtype.
    """
    return _call(x, min, max, bias)


@torch.library.register_fake("fusedops::clip_add")
def _(x: Tensor, min: float, max: float, bias: float) -> Tensor:  # noqa: A002, ARG001
    return torch.empty_like(x)


@torch.library.register_fake("fusedops::clip_add_forward")
def _(x: Tensor, min: float, max: float, bias: float) -> tuple[Tensor, Tensor]:  # noqa: A002, ARG001
    return torch.empty_like(x), mask_like(x)


@torch.library.register_fake("fusedops::clip_add_backward")
def _(grad: Tensor, x: Tensor, min: float, max: float) -> Tensor:  # noqa: A002, ARG001
    check_like("clip_add_backward", "grad", grad, "x", x)
    return torch.empty_like(x)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG001
    x, ctx.min, ctx.max, _bias = inputs
    ctx.save_for_backward(x)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    (x,) = ctx.saved_tensors
    return _call_backward(grad, x, ctx.min, ctx.max), None, None, None


def _save_twice(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG001
    _grad, x, ctx.min, ctx.max = inputs
    ctx.save_for_backward(x)


def _save_mask(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:  # noqa: ARG001
    keep_mask(ctx, output, 1.0)


def _backward_of_mask(ctx: Any, grad: Tensor | None, _inside: None = None) -> tuple[Tensor | None, ...]:
    return masked_gradient(ctx, grad), None, None, None


_forward = Formula(_clip_add_forward, _backward_of_mask, _save_mask)
register_autograd(*_forward)
_call = register_autograd(_clip_add, _backward, _save, on_cuda=_forward)
# Linear in grad, with the same factor; constant in x wherever it has a derivative.
_call_backward = register_autograd(_clip_add_backward, _backward, _save_twice)
register_pointwise_vmap("fusedops::clip_add", _clip_add, tensors=1)
register_pointwise_vmap("fusedops::clip_add_backward", _clip_add_backward, tensors=2)
register_looping_vmap(_clip_add_forward)
keep_order_of_strides(_clip_add_forward)  # in which its mask lies
