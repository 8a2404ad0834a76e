"""The derivative of local_attention's gradient, in torch's operators, differentiable again.

A block of rows meets one span of columns, so that memory grows as the number of rows times the window. Every
sum is over a row's own span: gradients of queries come from blocks of queries and gradients of keys from
blocks of keys, each of which computes the weights anew, and none from a sum over blocks.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

_LEAST_BLOCK = 16


@dataclass(frozen=True, kw_only=True)
class _Band:
    """Row i meets columns [i - before, i + after] of `rows`; blocks of `size` rows."""

    rows: int
    size: int
    before: int
    after: int

    def blocks(self, t: Tensor) -> Tensor:
        """(B, H, rows, C) as (B, H, blocks, size, C), with zeros after the last row."""
        padding = -self.rows % self.size
        return torch.nn.functional.pad(t, (0, 0, 0, padding)).unflatten(2, (-1, self.size))

    def spans(self, t: Tensor) -> Tensor:
        """The columns that each block meets, (B, H, blocks, size + before + after, C); zeros outside."""
        padding = -self.rows % self.size
        padded = torch.nn.functional.pad(t, (0, 0, self.before, self.after + padding))
        return padded.unfold(2, self.size + self.before + self.after, self.size).mT

    def rejoin(self, t: Tensor) -> Tensor:
        """The inverse of `blocks`."""
        return t.flatten(2, 3).narrow(2, 0, self.rows)

    def unseen(self, device: torch.device) -> Tensor:
        """Which columns of its span a row does not meet, (blocks, size, size + before + after)."""
        blocks = -(-self.rows // self.size)
        row = torch.arange(self.size, device=device).unsqueeze(1)
        column = torch.arange(self.size + self.before + self.after, device=device)
        first = torch.arange(blocks, device=device).view(-1, 1, 1) * self.size - self.before
        outside = (column + first < 0) | (column + first >= self.rows)
        return outside | (column < row) | (column > row + self.before + self.after)


@dataclass(frozen=True, kw_only=True)
class _Queries:
    """Of rows or columns that are queries: `a` is the cotangent of dq."""

    q: Tensor
    grad: Tensor
    a: Tensor
    lse: Tensor
    delta: Tensor


@dataclass(frozen=True, kw_only=True)
class _Keys:
    """Of rows or columns that are keys: `b` and `c` are the cotangents of dk and dv."""

    k: Tensor
    v: Tensor
    b: Tensor
    c: Tensor


Side = TypeVar("Side", _Queries, _Keys)


def second_gradients(
    cotangents: Sequence[Tensor],
    tensors: Sequence[Tensor],
    grad_lse: Tensor | None,
    window: int,
    causal: bool,
    scale: float | None,
) -> tuple[Tensor, ...]:
    """Gradients of `<cotangents, local_attention_backward(*tensors, …)>`, of `tensors` and of grad_lse.

    With p = exp(scale q·k - lse), e = grad·v - delta and delta = grad·out - grad_lse, backward is
    dq = scale Σ p e k, dk = scale Σ p e q, dv = Σ p grad. `tensors` are grad, q, k, v, out, lse, as
    independent of each other as backward takes them.
    """
    if tensors[0].numel() == 0:
        return tuple(torch.zeros_like(t) for t in (*tensors, tensors[-1]))
    dtypes = [t.dtype for t in tensors]
    wide = tensors[-1].dtype
    grad, q, k, v, out, lse = (t.to(wide) for t in tensors)
    a, b, c = (t.to(wide) for t in cotangents)
    delta = (grad * out).sum(-1)
    if grad_lse is not None:
        delta = delta - grad_lse
    queries = _Queries(q=q, grad=grad, a=a, lse=lse.unsqueeze(-1), delta=delta.unsqueeze(-1))
    keys = _Keys(k=k, v=v, b=b, c=c)
    factor = 1 / math.sqrt(q.shape[3]) if scale is None else scale
    toward_grad, toward_q, toward_lse, toward_delta = _of_queries(queries, keys, window, causal, factor)
    toward_k, toward_v = _of_keys(queries, keys, window, causal, factor)
    toward_grad = toward_grad + toward_delta.unsqueeze(-1) * out
    toward_out = toward_delta.unsqueeze(-1) * grad
    gradients = toward_grad, toward_q, toward_k, toward_v, toward_out, toward_lse
    return *(gradient.to(dtype) for gradient, dtype in zip(gradients, dtypes, strict=True)), -toward_delta


def _band(q: Tensor, before: int, after: int) -> _Band:
    rows = q.shape[2]
    before, after = min(before, rows), min(after, rows)
    return _Band(rows=rows, size=max(1, min(rows, max(_LEAST_BLOCK, before, after))), before=before, after=after)


def _of_queries(
    queries: _Queries, keys: _Keys, window: int, causal: bool, scale: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of grad (without what comes by delta), q, lse and delta."""
    band = _band(queries.q, window, 0 if causal else window)
    rows, columns = _map(band.blocks, queries), _map(band.spans, keys)
    p, e, w, u = _pairs(rows, columns, lambda query, key: query @ key.mT, band, scale)
    toward_score = p * (e * w + u)
    toward_grad = (p * w) @ columns.v + p @ columns.c
    toward_q = scale * (toward_score @ columns.k + (p * e) @ columns.b)
    sums = torch.stack((-toward_score.sum(-1), -(p * w).sum(-1)), -1)
    toward_lse, toward_delta = band.rejoin(sums).unbind(-1)
    return band.rejoin(toward_grad), band.rejoin(toward_q), toward_lse, toward_delta


def _of_keys(queries: _Queries, keys: _Keys, window: int, causal: bool, scale: float) -> tuple[Tensor, Tensor]:
    """Gradients of k and v."""
    band = _band(queries.q, 0 if causal else window, window)
    rows, columns = _map(band.blocks, keys), _map(band.spans, queries)
    across = _Queries(q=columns.q, grad=columns.grad, a=columns.a, lse=columns.lse.mT, delta=columns.delta.mT)
    p, e, w, u = _pairs(across, rows, lambda query, key: key @ query.mT, band, scale)
    toward_k = scale * ((p * (e * w + u)) @ columns.q + (p * e) @ columns.a)
    return band.rejoin(toward_k), band.rejoin((p * w) @ columns.grad)


def _map(function: Callable[[Tensor], Tensor], side: Side) -> Side:
    return type(side)(**{name: function(t) for name, t in vars(side).items()})


def _pairs(
    queries: _Queries, keys: _Keys, product: Callable[[Tensor, Tensor], Tensor], band: _Band, scale: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Of each pair p and e, and what the cotangents give: w of p·e and u of p."""
    scores = scale * product(queries.q, keys.k) - queries.lse
    p = scores.masked_fill(band.unseen(scores.device), -math.inf).exp()
    e = product(queries.grad, keys.v) - queries.delta
    w = scale * (product(queries.a, keys.k) + product(queries.q, keys.b))
    return p, e, w, product(queries.grad, keys.c)
