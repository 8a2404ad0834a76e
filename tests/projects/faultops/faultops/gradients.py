"""Gradients, as formulas of torch's own operators, which have gradients themselves."""

from typing import Any

import torch
from torch import Tensor


def _save(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _square(ctx: Any, grad: Tensor) -> Tensor:
    (x,) = ctx.saved_tensors
    return 2 * grad * x


def _half_of_it(ctx: Any, grad: Tensor) -> Tensor:
    (x,) = ctx.saved_tensors
    return grad * x


def _product(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
    x, y = ctx.saved_tensors
    return grad * y, grad * x


def _of_x_alone(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
    _x, y = ctx.saved_tensors
    return grad * y, None


def _weights(x: Tensor, index: Tensor) -> Tensor:
    return 1 / (1 + torch.arange(index.numel(), device=x.device, dtype=x.dtype))


def _sum_by_row(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
    """Each element's weights are added up in one order."""
    x, index = ctx.saved_tensors
    chosen = index.flatten() == torch.arange(x.numel(), device=x.device)[:, None]
    return ((chosen * _weights(x, index)).sum(1) * grad).reshape(x.shape), None


def _sum_by_atomics(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
    """On CUDA index_add adds atomically, in the order in which blocks come.

    Each element gets thousands of weights of many sizes, so that even a gradient that is 1 in one place, as gradcheck
    gives it, is rounded otherwise in another order.
    """
    x, index = ctx.saved_tensors
    weights = _weights(x, index) * grad
    return x.new_zeros(x.numel()).index_add(0, index.flatten(), weights).reshape(x.shape), None


for name, faulty, clean in (
    ("wrong_gradient", _half_of_it, _square),
    ("gradient_missing", _of_x_alone, _product),
    ("nondeterministic_gradient", _sum_by_atomics, _sum_by_row),
):
    torch.library.register_autograd(f"faultops::{name}", faulty, setup_context=_save)
    torch.library.register_autograd(f"faultops::{name}_clean", clean, setup_context=_save)
