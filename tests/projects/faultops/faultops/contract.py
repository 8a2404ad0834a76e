"""Fake kernels."""

import torch
from torch import Tensor

LIKE_X = [
    "aliasing_output",
    "crash",
    "default_stream",
    "divergent_barrier",
    "empty_grid",
    "gradient_missing",
    "hang",
    "int_overflow",
    "leaked_allocation",
    "misaligned_vector",
    "missing_guard",
    "out_of_bounds_read",
    "out_of_bounds_write",
    "shared_race",
    "slow",
    "strides_ignored",
    "sync_in_capture",
    "undeclared_mutation",
    "uninitialised_read",
    "wrong_gradient",
]


def _like_x(x: Tensor, *_: object) -> Tensor:
    """A contiguous result of the shape of `x`."""
    return x.new_empty(x.shape)


def _reversed_shape(x: Tensor) -> Tensor:
    """The fault; right for what has one dimension."""
    return x.new_empty(x.shape[::-1])


def _scalar(x: Tensor, index: Tensor) -> Tensor:
    return x.new_empty(())


for name in LIKE_X:
    torch.library.register_fake(f"faultops::{name}", _like_x)
    torch.library.register_fake(f"faultops::{name}_clean", _like_x)
torch.library.register_fake("faultops::fake_missing_clean", _like_x)
torch.library.register_fake("faultops::fake_wrong_shape", _reversed_shape)
torch.library.register_fake("faultops::fake_wrong_shape_clean", _like_x)
torch.library.register_fake("faultops::nondeterministic_gradient", _scalar)
torch.library.register_fake("faultops::nondeterministic_gradient_clean", _scalar)
