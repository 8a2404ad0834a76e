"""Sliding-window attention, by whole matrices of scores. A NaN or an infinity reaches the rows that see it,
and no others: where a product would meet it as 0 · NaN, it is left out.
"""

import math

import torch
from torch import Tensor


def local_attention(
    q: Tensor, k: Tensor, v: Tensor, window: int, causal: bool = False, scale: float | None = None
) -> Tensor:
    """The value of fusedops::local_attention."""
    return local_attention_forward(q, k, v, window, causal, scale)[0]


def local_attention_forward(
    q: Tensor, k: Tensor, v: Tensor, window: int, causal: bool = False, scale: float | None = None
) -> tuple[Tensor, Tensor]:
    """The values of fusedops::local_attention_forward: the result, and the logarithm of each row's sum."""
    seen = _seen(q, window, causal)
    scores = (_scale(q, scale) * q @ k.mT).masked_fill(~seen, -math.inf)
    if q.numel() == 0:
        return torch.empty_like(q), q.new_empty(q.shape[:3])
    most = scores.amax(-1, keepdim=True)
    lse = most + (scores - most).exp().sum(-1, keepdim=True).log()
    return _product((scores - lse).exp(), v, seen), lse.squeeze(-1)


def local_attention_backward(
    grad: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    lse: Tensor,
    window: int,
    causal: bool = False,
    scale: float | None = None,
    grad_lse: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The values of fusedops::local_attention_backward."""
    seen = _seen(q, window, causal)
    factor = _scale(q, scale)
    weights = (factor * q @ k.mT - lse.unsqueeze(-1)).exp()
    delta = (grad * out).sum(-1)
    if grad_lse is not None:
        delta = delta - grad_lse
    slopes = weights * (grad @ v.mT - delta.unsqueeze(-1))
    dq = factor * _product(slopes, k, seen)
    dk = factor * _product(slopes.mT, q, seen.mT)
    return dq, dk, _product(weights.mT, grad, seen.mT)


def _scale(q: Tensor, scale: float | None) -> float:
    return 1 / math.sqrt(q.shape[3]) if scale is None else scale


def _seen(q: Tensor, window: int, causal: bool) -> Tensor:
    """Whether query i sees key j, a matrix of S rows."""
    at = torch.arange(q.shape[2], device=q.device)
    ahead = at - at.unsqueeze(1)
    return (ahead >= -window) & (ahead <= (0 if causal else window))


def _product(weights: Tensor, values: Tensor, seen: Tensor) -> Tensor:
    """`weights @ values` of what is seen."""
    if values.isfinite().all():
        return weights.masked_fill(~seen, 0.0) @ values
    terms = weights.unsqueeze(-1) * values.unsqueeze(-3)
    return terms.masked_fill(~seen.unsqueeze(-1), 0.0).sum(-2)
