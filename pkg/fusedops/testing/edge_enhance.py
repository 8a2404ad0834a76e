"""Samples of the unsharp mask and its adjoint."""

from collections.abc import Iterator
from math import inf, nan
from typing import Any

import torch
from torch import Tensor

from fusedops import reference
from fusedops.testing._base import TOLERANCES, Device, ErrorSample, Operator, Sample

# (amount, sigma), and the window.
_SMALL = (1.3, 0.8, 3)
_LARGE = (-0.7, 1.4, 5)

_SHAPES: dict[str, tuple[tuple[int, ...], tuple[Any, ...]]] = {
    "typical": ((2, 3, 21, 33), _SMALL),
    "typical_5x5": ((2, 3, 21, 33), _LARGE),
    "vectors": ((2, 2, 19, 48), _SMALL),
    "vectors_5x5": ((2, 2, 19, 48), _LARGE),
    "one_vector_a_row": ((3, 2, 6, 8), _SMALL),
    "one_vector_a_row_5x5": ((3, 2, 6, 8), _LARGE),
    "least": ((1, 1, 2, 2), _SMALL),
    "least_5x5": ((1, 2, 3, 3), _LARGE),
    "least_rows_5x5": ((1, 1, 3, 16), _LARGE),
    "two_vectors_5x5": ((1, 3, 4, 4), _LARGE),
    "empty": ((0, 3, 5, 7), _SMALL),
    "one_plane": ((1, 1, 5, 9), _SMALL),
    "many": ((2, 3, 131, 264), _LARGE),
    "long_rows": ((1, 2, 3, 1030), _LARGE),
}
"""Rows that 16-byte vectors fill and rows that they do not; a row of one vector has both borders in it, and one of
four elements has them within reach of every vector. `many` is beyond what a CPU thread takes alone, `long_rows`
beyond what it takes of a row at a time."""

_FOR_GRADCHECK = {"one_vector_a_row", "one_vector_a_row_5x5", "least", "least_5x5", "two_vectors_5x5", "one_plane"}
_SPECIAL_VALUES = (nan, inf, -inf, 0.0, -0.0, 2.0**-24, 3.0)


def _samples(operator: Operator, device: Device, dtype: torch.dtype) -> Iterator[Sample]:
    generator = torch.Generator().manual_seed(0)

    def make(shape: tuple[int, ...]) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(device, dtype)

    def sample(name: str, x: Tensor, numbers: tuple[Any, ...], *, gradcheck: bool = False) -> Sample:
        return Sample(operator=operator, name=name, args=(x, *numbers), gradcheck=gradcheck)

    for name, (shape, numbers) in _SHAPES.items():
        yield sample(name, make(shape), numbers, gradcheck=name in _FOR_GRADCHECK)
    channels_last = make((2, 3, 5, 8)).contiguous(memory_format=torch.channels_last)
    yield sample("channels_last", channels_last, _SMALL, gradcheck=True)
    yield sample("transposed", make((2, 1, 8, 5)).mT, _SMALL, gradcheck=True)
    yield sample("strided", make((2, 4, 10, 24))[:, ::2, ::2, ::3], _SMALL)
    yield sample("expanded", make((1, 1, 6, 8)).expand(2, 3, 6, 8), _SMALL)
    yield sample("misaligned", make((6 * 16 + 1,))[1:].view(1, 1, 6, 16), _LARGE)
    yield sample("no_amount", make((1, 2, 4, 8)), (0.0, 1.0, 3))
    yield sample("flat_filter", make((1, 2, 5, 8)), (1.0, 1e6, 5))
    yield sample("point_filter", make((1, 2, 5, 8)), (1.0, 0.1, 5))
    special = make((len(_SPECIAL_VALUES), 1, 7, 16))
    special[:, 0, 1, 1] = torch.tensor(_SPECIAL_VALUES, dtype=torch.float64).to(device, dtype)
    yield sample("special_values", special, _SMALL)
    yield sample("special_values_5x5", special, _LARGE)


BENCH_SHAPE = (4, 3, 2048, 2048)
"""Whose time a GPU spends on memory and not on the launch."""


def _bench(operator: Operator, device: Device, dtype: torch.dtype) -> Iterator[Sample]:
    for numbers in (_SMALL, _LARGE):
        x = torch.randn(BENCH_SHAPE, device=device, dtype=dtype)
        yield Sample(operator=operator, name=f"{numbers[-1]}x{numbers[-1]}", args=(x, *numbers))


def _errors(operator: Operator, device: Device) -> Iterator[ErrorSample]:
    argument = "grad" if operator.name.endswith("_backward") else "x"
    right = torch.ones(1, 2, 4, 5, device=device)
    refused: dict[str, tuple[tuple[Any, ...], str]] = {
        "integers": (
            (right.int(), *_SMALL),
            f"{argument} must be a float16, bfloat16, float32 or float64 tensor, but got Int",
        ),
        "dimensions": (
            (right[0], *_SMALL),
            rf"{argument} must have 4 dimensions, \(N, C, H, W\), but got .*\[2, 4, 5\]",
        ),
        "rows": ((right[:, :, :1], *_SMALL), rf"{argument} must have more than 1 rows .* but got \[1, 2, 1, 5\]"),
        "columns": ((right[..., :2], *_LARGE), rf"{argument} must have more than 2 rows .* but got \[1, 2, 4, 2\]"),
        "no_rows": ((right[:, :, :0], *_SMALL), rf"{argument} must have more than 1 rows .* but got \[1, 2, 0, 5\]"),
        "kernel_size": ((right, 1.0, 1.0, 4), "kernel_size must be 3 or 5, but got 4"),
        "sigma": ((right, 1.0, 0.0, 3), "sigma must be greater than 0, but got 0.0"),
        "sigma_nan": ((right, 1.0, nan, 3), "sigma must be greater than 0, but got nan"),
    }
    for name, (args, match) in refused.items():
        yield ErrorSample(operator=operator, name=name, args=args, match=f"fusedops::{operator.name}: {match}")


# Sums of up to 25 terms, of which the 16-bit types see no more than their own rounding.
_TOLERANCES = TOLERANCES | {
    torch.float16: (2.0**-11 * 1.01, 4e-6),
    torch.bfloat16: (2.0**-8 * 1.01, 4e-6),
    torch.float32: (2e-6, 4e-6),
    torch.float64: (1e-14, 1e-14),
}

OPERATORS = [
    Operator(
        name=name,
        reference=getattr(reference, name),
        samples=_samples,
        errors=_errors,
        bench=_bench,
        tolerances=_TOLERANCES,
    )
    for name in ("edge_enhance", "edge_enhance_backward")
]
