"""What the operators' fake kernels and vmap rules share."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def check_like(op: str, argument: str, tensor: Tensor, like_argument: str, like: Tensor) -> None:
    """Raises RuntimeError where the compiled kernels would, in a fake kernel of `op`."""
    torch._check(  # noqa: SLF001
        tensor.dtype == like.dtype,
        lambda: (
            f"fusedops::{op}: {argument} must have the dtype of {like_argument}, {like.dtype}, but got {tensor.dtype}"
        ),
    )
    torch._check(  # noqa: SLF001
        tensor.shape == like.shape,
        lambda: (
            f"fusedops::{op}: {argument} must have the shape of {like_argument}, "
            f"{list(like.shape)}, but got {list(tensor.shape)}"
        ),
    )


def register_pointwise_vmap(name: str, op: Callable[..., Tensor], tensors: int) -> None:
    """Gives the operator `name` a rule: its first `tensors` arguments may be batched, the rest not.

    torch 2.4 has no `register_vmap`; there vmap falls back to a loop over the batch.
    """
    if not hasattr(torch.library, "register_vmap"):
        return

    def rule(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Tensor, int]:
        batched = [
            arg.expand(info.batch_size, *arg.shape) if dim is None else arg.movedim(dim, 0)
            for arg, dim in zip(args[:tensors], in_dims[:tensors], strict=True)
        ]
        return op(*batched, *args[tensors:]), 0

    torch.library.register_vmap(name, rule)


def register_looping_vmap(op: Any) -> None:
    """Gives the overload `op` a rule: a call for each of the batch, since their results do not lie as one's.

    torch 2.4 has no `register_vmap`; there vmap falls back to the same.
    """
    if not hasattr(torch.library, "register_vmap"):
        return

    def rule(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, Any]:
        dims = (*in_dims, *(None for _ in args[len(in_dims) :]))

        def one(place: int) -> Any:
            return op(
                *(arg.select(dim, place) if isinstance(dim, int) else arg for arg, dim in zip(args, dims, strict=True))
            )

        results = [one(place) for place in range(info.batch_size)]
        if isinstance(results[0], Tensor):
            return torch.stack(results), 0
        return tuple(torch.stack(every) for every in zip(*results, strict=True)), (0,) * len(results[0])

    torch.library.register_vmap(op._schema.name, rule)  # noqa: SLF001


def keep_order_of_strides(op: Any) -> None:
    """Has inductor give the overload `op` its tensors in the order of strides that they were traced with.

    It is what inductor does with every operator from torch 2.6 on; C++ can say it in one of the two ABIs alone.
    """
    tag = torch.Tag.needs_fixed_stride_order
    if tag not in op.tags:
        op.tags.append(tag)


def register_folding_vmap(op: Any) -> None:
    """Gives the overload `op`, whose tensors all begin with a batch, a rule: vmap's becomes part of it.

    torch 2.4 has no `register_vmap`; there vmap falls back to a loop over the batch.
    """
    if not hasattr(torch.library, "register_vmap"):
        return

    def rule(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, Any]:
        def fold(arg: Any, dim: int | None) -> Any:
            if not isinstance(arg, Tensor):
                return arg
            batched = arg.expand(info.batch_size, *arg.shape) if dim is None else arg.movedim(dim, 0)
            return batched.flatten(0, 1)

        def unfold(result: Tensor) -> Tensor:
            return result.unflatten(0, (info.batch_size, result.shape[0] // info.batch_size))

        dims = (*in_dims, *(None for _ in args[len(in_dims) :]))
        results = op(*(fold(arg, dim) for arg, dim in zip(args, dims, strict=True)))
        if isinstance(results, Tensor):
            return unfold(results), 0
        return tuple(unfold(result) for result in results), (0,) * len(results)

    torch.library.register_vmap(op._schema.name, rule)  # noqa: SLF001


def register_image_vmap(name: str, op: Callable[..., Tensor]) -> None:
    """Gives the operator `name` a rule that makes of its first argument's batch and N one dimension."""
    if not hasattr(torch.library, "register_vmap"):
        return

    def rule(info: Any, in_dims: tuple[int | None, ...], x: Tensor, *args: Any) -> tuple[Tensor, int]:  # noqa: ARG001
        batched = x.movedim(in_dims[0] or 0, 0)
        return op(batched.flatten(0, 1), *args).unflatten(0, batched.shape[:2]), 0

    torch.library.register_vmap(name, rule)
