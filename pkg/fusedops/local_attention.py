"""Sliding-window attention in one pass, with memory for the rows alone."""

from typing import Any

import torch
from torch import Tensor

from fusedops._attention_gradients import second_gradients
from fusedops._autocast import register_autocast_lower_precision
from fusedops._autograd import _library, register_autograd
from fusedops._registration import check_like, register_folding_vmap

_attention = torch.ops.fusedops.local_attention.default
_forward = torch.ops.fusedops.local_attention_forward.default
_backward = torch.ops.fusedops.local_attention_backward.default


def local_attention(
    q: Tensor, k: Tensor, v: Tensor, window: int, causal: bool = False, scale: float | None = None
) -> Tensor:
    """Attention in which query i sees the keys j with `|i - j| <= window`, or `0 <= i - j <= window`.

    Row i of a head is `sum_j p[j] * v[j]` with `p = softmax_j(scale * dot(q[i], k[j]))` over the j that i
    sees; the second kind is `causal`. `scale` is `1 / sqrt(D)` where it is None.

    `q`, `k` and `v` are (B, H, S, D) tensors of one shape, dtype and device: float16, bfloat16, float32 or
    float64, 1 <= D <= 128, on CPU or CUDA. Any strides do: rows of D elements that are contiguous, as
    those of `x.view(B, S, H, D).transpose(1, 2)`, are read in place, others are copied first. The result
    has the shape and dtype of `q`, and its strides where it is dense.

    The 16-bit types are multiplied exactly and summed in float32; weights are rounded to the dtype before
    they meet `v` where tensor cores do it (SM 8.0 and later). No memory is used that grows faster than S,
    forward or backward. The same bits in every run, gradients included. A NaN or an infinity reaches the
    rows that see it and no others. Differentiable any number of times; second derivatives are composed of
    torch's operators, in memory that grows as S times the window.

    Raises RuntimeError for another dtype or shape, for unequal arguments and for `window < 0`. Under
    autocast, `q`, `k` and `v` are cast to its dtype, as for scaled_dot_product_attention. The algorithm is
    FlashAttention-2's (https://arxiv.org/abs/2307.08691).
    """
    return _call(q, k, v, window, causal, scale)[0]


def _check(op: str, q: Tensor, k: Tensor, v: Tensor, window: int) -> None:
    torch._check(  # noqa: SLF001
        q.dim() == 4,
        lambda: f"fusedops::{op}: q must have 4 dimensions, (B, H, S, D), but got the shape {list(q.shape)}",
    )
    check_like(op, "k", k, "q", q)
    check_like(op, "v", v, "q", q)
    torch._check(  # noqa: SLF001
        1 <= q.shape[3] <= 128,
        lambda: f"fusedops::{op}: q must have 1 to 128 elements in a row, D, but got {q.shape[3]}",
    )
    torch._check(window >= 0, lambda: f"fusedops::{op}: window must be 0 or more, but got {window}")  # noqa: SLF001


def _like_rows(t: Tensor) -> Tensor:
    """What the kernels give for `t`: rows of D elements are contiguous."""
    return torch.empty_like(t if t.shape[3] == 1 or t.stride(3) == 1 else t.contiguous())


def _row_values(q: Tensor) -> Tensor:
    dtype = torch.float64 if q.dtype == torch.float64 else torch.float32
    return q.new_empty(q.shape[:3], dtype=dtype)


@torch.library.register_fake("fusedops::local_attention")
def _(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    window: int,
    causal: bool = False,  # noqa: ARG001
    scale: float | None = None,  # noqa: ARG001
) -> Tensor:
    _check("local_attention", q, k, v, window)
    return _like_rows(q)


@torch.library.register_fake("fusedops::local_attention_forward")
def _(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    window: int,
    causal: bool = False,  # noqa: ARG001
    scale: float | None = None,  # noqa: ARG001
) -> tuple[Tensor, Tensor]:
    _check("local_attention", q, k, v, window)
    return _like_rows(q), _row_values(q)


@torch.library.register_fake("fusedops::local_attention_backward")
def _(
    grad: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    lse: Tensor,
    window: int,
    causal: bool = False,  # noqa: ARG001
    scale: float | None = None,  # noqa: ARG001
    grad_lse: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    op = "local_attention_backward"
    _check(op, q, k, v, window)
    check_like(op, "grad", grad, "q", q)
    check_like(op, "out", out, "q", q)
    expected = _row_values(q)
    for argument, values in (("lse", lse), ("grad_lse", grad_lse)):
        if values is not None:
            check_like(op, argument, values, "q's rows", expected)
    return _like_rows(q), _like_rows(k), _like_rows(v)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    q, k, v, *ctx.options = inputs
    ctx.save_for_backward(q, k, v, *output)
    # Most callers use the result alone: no zeros are made for the gradient of the other output.
    ctx.set_materialize_grads(False)


def _gradient(ctx: Any, grad: Tensor | None, grad_lse: Tensor | None) -> tuple[Tensor | None, ...]:
    q, k, v, out, lse = ctx.saved_tensors
    if grad is None and grad_lse is None:
        return (None,) * 6
    grad = torch.zeros_like(out) if grad is None else grad
    return (*_call_backward(grad, q, k, v, out, lse, *ctx.options, grad_lse), None, None, None)


def _save_twice(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:  # noqa: ARG001
    *tensors, window, causal, scale, grad_lse = inputs
    ctx.options = window, causal, scale
    ctx.save_for_backward(*tensors, grad_lse)


def _second_gradient(ctx: Any, *cotangents: Tensor) -> tuple[Tensor | None, ...]:
    *tensors, grad_lse = ctx.saved_tensors
    *gradients, toward_lse = second_gradients(cotangents, tensors, grad_lse, *ctx.options)
    return (*gradients, None, None, None, toward_lse if grad_lse is not None else None)


def _differentiable(*args: Any) -> Tensor:
    """Gradients need the other output: here `local_attention` is the operator that gives both."""
    return _forward(*args)[0]


_call = register_autograd(_forward, _gradient, _save)
_call_backward = register_autograd(_backward, _second_gradient, _save_twice)
_library.impl(_attention, _differentiable, "Autograd")
for _op in (_attention, _forward):
    register_autocast_lower_precision(_op)
for _op in (_attention, _forward, _backward):
    register_folding_vmap(_op)
