"""The pointwise operators. Gradients of the clamps are held to the `_backward` functions, not to torch's
derivative, which from torch 2.14 on is 0 on a bound.
"""

from collections.abc import Sequence

import torch
from torch import Tensor


def clip_add(x: Tensor, min: float, max: float, bias: float) -> Tensor:  # noqa: A002
    """The value of fusedops::clip_add."""
    return torch.clamp(x, min, max) + bias


def clip_add_backward(grad: Tensor, x: Tensor, min: float, max: float) -> Tensor:  # noqa: A002
    """The value of fusedops::clip_add_backward; both bounds belong to the inside."""
    return torch.where((x >= min) & (x <= max), grad, 0.0)


def scale_clamp_add(x: Tensor, scale: float, min: float, max: float, bias: float) -> Tensor:  # noqa: A002
    """The value of fusedops::scale_clamp_add."""
    return torch.clamp(x * scale, min, max) + bias


def scale_clamp_add_backward(
    grad: Tensor,
    x: Tensor,
    scale: float,
    min: float,  # noqa: A002
    max: float,  # noqa: A002
) -> Tensor:
    """The value of fusedops::scale_clamp_add_backward."""
    return clip_add_backward(grad, x * scale, min, max) * scale


def clip_add_forward(x: Tensor, min: float, max: float, bias: float) -> tuple[Tensor, Tensor]:  # noqa: A002
    """The values of fusedops::clip_add_forward."""
    return scale_clamp_add_forward(x, 1.0, min, max, bias)


def scale_clamp_add_forward(
    x: Tensor,
    scale: float,
    min: float,  # noqa: A002
    max: float,  # noqa: A002
    bias: float,
) -> tuple[Tensor, Tensor]:
    """The values of fusedops::scale_clamp_add_forward: the result, and as bits where the gradient goes through."""
    out = scale_clamp_add(x, scale, min, max, bias)
    product = in_memory(torch.empty_like(x).copy_(x)) * scale
    inside = (product >= min) & (product <= max)
    bits = torch.nn.functional.pad(inside, (0, -inside.numel() % 8)).view(-1, 8)
    return out, (bits << torch.arange(8, device=x.device)).sum(1).to(torch.uint8)


def masked_scale(grad: Tensor, mask: Tensor, stride: Sequence[int], scale: float) -> Tensor:
    """The value of fusedops::masked_scale; the bits of `mask` are in the order of elements that lie by `stride`."""
    out = grad.new_empty_strided(grad.shape, stride).copy_(grad)
    bits = (mask[:, None] >> torch.arange(8, device=mask.device) & 1).view(-1)[: grad.numel()]
    in_memory(out).masked_fill_(bits == 0, 0.0)
    in_memory(out).mul_(scale)
    return out


def in_memory(dense: Tensor) -> Tensor:
    """The elements of a dense tensor, one after the other."""
    return dense.as_strided((dense.numel(),), (1,))


def affine(x: Tensor, a: float, b: float) -> Tensor:
    """The value of fusedops::affine."""
    return a * x + b


def vector_add(x: Tensor, y: Tensor) -> Tensor:
    """The value of fusedops::vector_add."""
    return x + y
