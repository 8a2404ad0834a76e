"""The gradient of the clamps from the mask that their forward pass keeps on CUDA: one bit an element."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from fusedops._autograd import register_autograd
from fusedops._registration import register_looping_vmap

_masked_scale = torch.ops.fusedops.masked_scale.default


def mask_like(x: Tensor) -> Tensor:
    """Of the size of a mask of `x`, uninitialised: the bit i % 8 of byte i // 8 is of element i in memory."""
    return x.new_empty((x.numel() + 7) // 8, dtype=torch.uint8)


@torch.library.register_fake("fusedops::masked_scale")
def _(grad: Tensor, mask: Tensor, stride: Sequence[int], scale: float) -> Tensor:  # noqa: ARG001
    check = torch._check  # noqa: SLF001
    op, bytes_ = "fusedops::masked_scale", (grad.numel() + 7) // 8
    check(mask.dtype == torch.uint8, lambda: f"{op}: mask must be a uint8 tensor, but got {mask.dtype}")
    check(
        mask.dim() == 1 and mask.shape[0] == bytes_,
        lambda: (
            f"{op}: mask must have a bit for each element of grad, the shape [{bytes_}], but got {list(mask.shape)}"
        ),
    )
    check(
        len(stride) == grad.dim(),
        lambda: f"{op}: stride must have a number for each dimension of grad, {grad.dim()}, but got {len(stride)}",
    )
    return grad.new_empty_strided(grad.shape, stride)


def keep_mask(ctx: Any, output: tuple[Tensor, Tensor], scale: float) -> None:
    """What `masked_gradient` needs of a forward pass that gave a result and its mask."""
    out, mask = output
    ctx.stride, ctx.scale = out.stride(), scale
    ctx.mark_non_differentiable(mask)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(mask)


def masked_gradient(ctx: Any, grad: Tensor | None) -> Tensor | None:
    """`grad * scale` where the mask has ones, else 0, laid out as the forward pass's result."""
    (mask,) = ctx.saved_tensors
    return None if grad is None else _call(grad, mask, ctx.stride, ctx.scale)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG001
    _grad, mask, ctx.stride, ctx.scale = inputs
    ctx.save_for_backward(mask)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return masked_gradient(ctx, grad), None, None, None


# Linear in grad.
_call = register_autograd(_masked_scale, _backward, _save)
register_looping_vmap(_masked_scale)
