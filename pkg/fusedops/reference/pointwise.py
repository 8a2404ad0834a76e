"""The pointwise operators. Gradients of the clamps are held to the `_backward` functions, not to torch's
derivative, which from torch 2.14 on is 0 on a bound.
"""

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


def affine(x: Tensor, a: float, b: float) -> Tensor:
    """The value of fusedops::affine."""
    return a * x + b


def vector_add(x: Tensor, y: Tensor) -> Tensor:
    """The value of fusedops::vector_add."""
    return x + y
