"""An unsharp mask in one pass over memory."""

from typing import Any

import torch
from torch import Tensor

from fusedops._autograd import register_autograd
from fusedops._registration import register_image_vmap

_edge_enhance = torch.ops.fusedops.edge_enhance.default
_edge_enhance_backward = torch.ops.fusedops.edge_enhance_backward.default


def edge_enhance(x: Tensor, amount: float, sigma: float, kernel_size: int = 3) -> Tensor:
    """`x + amount * (x - blur(x))`, where `blur` is a Gaussian filter of each plane.

    `x` is (N, C, H, W), float16, bfloat16, float32 or float64, on CPU or CUDA, with any strides (it
    is copied where it is not contiguous); the result is contiguous, of its shape and dtype. The
    filter is `kernel_size` times `kernel_size`, 3 or 5; its weights are `exp(-d**2 / (2 * sigma**2))`
    of the distance `d` from its centre, divided by their sum, with `sigma` greater than 0. Borders
    are reflected as by `torch.nn.functional.pad(mode="reflect")`, so H and W must be greater than
    `kernel_size // 2`; they are at most 2**28. A negative `amount` blurs. 16-bit types are computed
    in float32 and rounded once.

    Differentiable in `x` any number of times; deterministic. Raises RuntimeError for arguments other
    than these. The method is unsharp masking: https://en.wikipedia.org/wiki/Unsharp_masking.
    """
    return _call(x, amount, sigma, kernel_size)


def _check(op: str, argument: str, x: Tensor, sigma: float, kernel_size: int) -> None:
    """Raises RuntimeError where the compiled kernels would."""
    prefix = f"fusedops::{op}: "
    shape = list(x.shape)
    radius = kernel_size // 2
    torch._check(  # noqa: SLF001
        x.dim() == 4,  # noqa: PLR2004
        lambda: f"{prefix}{argument} must have 4 dimensions, (N, C, H, W), but got the shape {shape}",
    )
    torch._check(  # noqa: SLF001
        kernel_size in {3, 5}, lambda: f"{prefix}kernel_size must be 3 or 5, but got {kernel_size}"
    )
    torch._check(sigma > 0, lambda: f"{prefix}sigma must be greater than 0, but got {sigma}")  # noqa: SLF001
    for size in x.shape[2:]:
        torch._check(  # noqa: SLF001
            size > radius,
            lambda: (
                f"{prefix}{argument} must have more than {radius} rows and columns, "
                f"for its borders to be reflected, but got {shape}"
            ),
        )


@torch.library.register_fake("fusedops::edge_enhance")
def _(x: Tensor, amount: float, sigma: float, kernel_size: int = 3) -> Tensor:  # noqa: ARG001
    _check("edge_enhance", "x", x, sigma, kernel_size)
    return x.new_empty(x.shape)


@torch.library.register_fake("fusedops::edge_enhance_backward")
def _(grad: Tensor, amount: float, sigma: float, kernel_size: int) -> Tensor:  # noqa: ARG001
    _check("edge_enhance_backward", "grad", grad, sigma, kernel_size)
    return grad.new_empty(grad.shape)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG001
    _x, *ctx.numbers = inputs


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return _call_backward(grad, *ctx.numbers), None, None, None


def _backward_twice(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return _call(grad, *ctx.numbers), None, None, None


# Linear in x, and each the other's adjoint.
_call = register_autograd(_edge_enhance, _backward, _save)
_call_backward = register_autograd(_edge_enhance_backward, _backward_twice, _save)
register_image_vmap("fusedops::edge_enhance", _edge_enhance)
register_image_vmap("fusedops::edge_enhance_backward", _edge_enhance_backward)
