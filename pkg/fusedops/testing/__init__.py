"""Samples of every operator, shared by the tests and by checks that run on a GPU.

`OPERATORS` names the operators; `samples` gives calls that must work and `error_samples` calls that
must be refused. Values are drawn on the CPU from a fixed seed, so they are the same on each device.
"""

from collections.abc import Iterator

import torch

from fusedops.testing import copy_async, edge_enhance, local_attention, masks, matmul, nms, pointwise
from fusedops.testing._base import DTYPES, TOLERANCES, Device, ErrorSample, Operator, Sample

__all__ = [
    "DTYPES",
    "OPERATORS",
    "TOLERANCES",
    "ErrorSample",
    "Operator",
    "Sample",
    "bench_samples",
    "error_samples",
    "samples",
]

_MODULES = (pointwise, masks, copy_async, edge_enhance, local_attention, matmul, nms)
OPERATORS = {operator.name: operator for module in _MODULES for operator in module.OPERATORS}


def samples(operator: Operator, device: Device, dtype: torch.dtype) -> Iterator[Sample]:
    """Calls of `operator` that must give the reference's values; none for a dtype that it does not take."""
    if dtype in operator.dtypes:
        yield from operator.samples(operator, device, dtype)


def bench_samples(operator: Operator, device: Device, dtype: torch.dtype) -> Iterator[Sample]:
    """Calls of `operator` to time."""
    if dtype in operator.dtypes:
        yield from operator.bench(operator, device, dtype)


def error_samples(operator: Operator, device: Device) -> Iterator[ErrorSample]:
    """Calls of `operator` that must be refused by its kernels on `device`."""
    yield from operator.errors(operator, device)
