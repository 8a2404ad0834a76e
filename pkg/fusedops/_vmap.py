"""torch.vmap for pointwise operators."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Rule = Callable[..., tuple[Tensor, int]]


def register_pointwise_vmap(name: str, op: Callable[..., Tensor], tensors: int) -> None:
    """Gives the operator `name` a rule: its first `tensors` arguments are batched, the rest not.

    torch 2.4 has no `register_vmap`; there vmap falls back to a loop over the batch.
    """
    if not hasattr(torch.library, "register_vmap"):
        return

    def rule(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Tensor, int]:  # noqa: ANN401
        batched = [
            arg.expand(info.batch_size, *arg.shape) if dim is None else arg.movedim(dim, 0)
            for arg, dim in zip(args[:tensors], in_dims, strict=False)
        ]
        return op(*batched, *args[tensors:]), 0

    torch.library.register_vmap(name, rule)
