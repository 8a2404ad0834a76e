"""The product of matrices and of batches of them."""

from typing import Any

import torch
from torch import Tensor

from fusedops._autocast import register_autocast_lower_precision
from fusedops._autograd import register_autograd

_matmul = torch.ops.fusedops.matmul.default


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """`a @ b`: sums of products along the last dimension of `a` and the last but one of `b`.

    Shapes are as in torch.matmul: (..., M, K) and (..., K, N) give (..., M, N), whose batch dimensions
    are those of both, broadcast; `a` of shape (K,) stands for one row and `b` of shape (K,) for one
    column, which the result then lacks. Every size may be 0; sums over K = 0 are 0. Both are
    float16, bfloat16, float32 or float64, of the same dtype and device, with any strides; the result is
    contiguous. Where the rows or the columns of a matrix are contiguous it is read in place, transposed
    or not, and so are broadcast batches; what else there is is copied first.

    float16 and bfloat16 are summed in float32 and rounded once; float32 is float32 throughout, never
    TF32, whatever torch's settings for its own products. Differentiable in both any number of
    times; under autocast in its dtype. The same bits in every run. Raises RuntimeError for another
    dtype, for tensors of no dimension, and for shapes, dtypes or devices that do not fit each other.
    """
    if a.dim() > 1 and b.dim() > 1:
        return _call(a, b)
    if 0 in (a.dim(), b.dim()):
        return _matmul(a, b)  # which refuses them
    result = _call(a.unsqueeze(0) if a.dim() == 1 else a, b.unsqueeze(1) if b.dim() == 1 else b)
    if b.dim() == 1:
        result = result.squeeze(-1)
    return result.squeeze(-1 if b.dim() == 1 else -2) if a.dim() == 1 else result


def _check(ok: bool, argument: str, expected: str, given: object) -> None:  # noqa: FBT001
    torch._check(ok, lambda: f"fusedops::matmul: {argument} must {expected}, but got {given}")  # noqa: SLF001


@torch.library.register_fake("fusedops::matmul")
def _(a: Tensor, b: Tensor) -> Tensor:
    _check(a.dtype == b.dtype, "b", f"have the dtype of a, {a.dtype}", b.dtype)
    for argument, tensor, meaning in (("a", a, "(..., M, K)"), ("b", b, "(..., K, N)")):
        shape = f"the shape {list(tensor.shape)}"
        _check(tensor.dim() >= 2, argument, f"have 2 or more dimensions, {meaning}", shape)  # noqa: PLR2004
    given = f"the shape {list(b.shape)}"
    _check(a.shape[-1] == b.shape[-2], "b", f"have as many rows as a has columns, {a.shape[-1]}", given)
    try:
        batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except RuntimeError:
        expected = f"have batch dimensions that broadcast with those of a, {list(a.shape)}"
        _check(False, "b", expected, given)  # noqa: FBT003
        raise
    return a.new_empty((*batch, a.shape[-2], b.shape[-1]))


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG001
    ctx.save_for_backward(*inputs)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    a, b = ctx.saved_tensors
    grad_a = grad_b = None
    if ctx.needs_input_grad[0]:
        grad_a = _call(grad, b.mT).sum_to_size(a.shape)
    if ctx.needs_input_grad[1] and b.dim() == 2:  # noqa: PLR2004
        # A batch of rows times one matrix: one product sums over all the rows, and rounds once.
        grad_b = _call(a.flatten(0, -2).mT, grad.flatten(0, -2))
    elif ctx.needs_input_grad[1]:
        grad_b = _call(a.mT, grad).sum_to_size(b.shape)
    return grad_a, grad_b


_call = register_autograd(_matmul, _backward, _save)
register_autocast_lower_precision(_matmul)

if hasattr(torch.library, "register_vmap"):

    @torch.library.register_vmap("fusedops::matmul")
    def _(info: Any, in_dims: tuple[int | None, ...], *args: Tensor) -> tuple[Tensor, int]:  # noqa: ARG001
        logical = max(arg.dim() - (dim is not None) for arg, dim in zip(args, in_dims, strict=True))

        def aligned(arg: Tensor, dim: int | None) -> Tensor:
            """The batch in front of as many dimensions as the other factor has."""
            if dim is None:
                return arg
            arg = arg.movedim(dim, 0)
            return arg[(slice(None), *(None,) * (logical + 1 - arg.dim()))]

        return _matmul(*(aligned(arg, dim) for arg, dim in zip(args, in_dims, strict=True))), 0
