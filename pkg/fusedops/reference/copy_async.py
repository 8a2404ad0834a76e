"""Copies."""

from torch import Tensor


def copy_async(x: Tensor) -> Tensor:
    """The value of fusedops::copy_async."""
    return x.clone()


def copy_async_out(x: Tensor, out: Tensor) -> Tensor:  # noqa: ARG001
    """What fusedops::copy_async_out leaves in `out`."""
    return x.clone()
