"""The unsharp mask and its adjoint."""

import torch
from torch import Tensor
from torch.nn import functional


def edge_enhance(x: Tensor, amount: float, sigma: float, kernel_size: int = 3) -> Tensor:
    """The value of fusedops::edge_enhance."""
    radius = kernel_size // 2
    padded = functional.pad(x, (radius,) * 4, mode="reflect")
    blurred = functional.conv2d(padded, _window(x, sigma, kernel_size), groups=x.shape[1])
    return x + amount * (x - blurred)


def edge_enhance_backward(grad: Tensor, amount: float, sigma: float, kernel_size: int) -> Tensor:
    """The value of fusedops::edge_enhance_backward: what a border reflected comes back to where it was taken."""
    radius = kernel_size // 2
    spread = functional.conv_transpose2d(grad, _window(grad, sigma, kernel_size), groups=grad.shape[1])
    blurred = _fold(_fold(spread, radius, -1), radius, -2)
    return grad + amount * (grad - blurred)


def _window(x: Tensor, sigma: float, kernel_size: int) -> Tensor:
    """The filter's weights, the same for each of x's channels."""
    offsets = torch.arange(kernel_size, dtype=x.dtype, device=x.device) - kernel_size // 2
    line = torch.exp(-offsets.square() / (2 * sigma**2))
    line = line / line.sum()
    return torch.outer(line, line).expand(x.shape[1], 1, kernel_size, kernel_size)


def _fold(padded: Tensor, radius: int, dim: int) -> Tensor:
    """The adjoint of reflecting `radius` elements at both ends of `dim`."""
    size = padded.shape[dim] - 2 * radius
    folded = padded.narrow(dim, radius, size).clone()
    folded.narrow(dim, 1, radius).add_(padded.narrow(dim, 0, radius).flip(dim))
    folded.narrow(dim, size - 1 - radius, radius).add_(padded.narrow(dim, size + radius, radius).flip(dim))
    return folded
