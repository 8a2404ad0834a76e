"""Samples of matmul: every layout of the factors, on and off the alignment and the tiles of the kernels."""

from collections.abc import Callable, Iterator
from math import inf, nan

import torch
from torch import Tensor

from fusedops import reference
from fusedops.testing._base import Device, ErrorSample, Operator, Sample

Make = Callable[..., Tensor]

SMALL: dict[str, Callable[[Make], tuple[Tensor, Tensor]]] = {
    "typical": lambda make: (make(5, 7), make(7, 3)),
    "empty": lambda make: (make(0, 3), make(3, 4)),
    "empty_sums": lambda make: (make(3, 0), make(0, 2)),
    "one_element": lambda make: (make(1, 1), make(1, 1)),
    "outer_product": lambda make: (make(4, 1), make(1, 3)),
    "transposed": lambda make: (make(7, 4).t(), make(3, 7).t()),
    "strided": lambda make: (make(8, 9)[::2, 1::3], make(6, 8)[::2, ::3]),
    "batch_transposed": lambda make: (make(3, 2, 2, 4).transpose(1, 2), make(3, 4, 2, 2).mT.transpose(1, 2)),
    "rows_and_matrix": lambda make: (make(2, 3, 4), make(4, 2)),
    "broadcast": lambda make: (make(2, 1, 1, 3), make(3, 3, 2)),
    "misaligned": lambda make: (make(16)[1:].view(3, 5), make(11)[1:].view(5, 2)),
}
"""Small enough to check derivatives of, numerically."""

LARGE: dict[str, Callable[[Make], tuple[Tensor, Tensor]]] = {
    "expanded": lambda make: (make(3, 1).expand(3, 5), make(5, 4).expand(2, 5, 4)),
    "five_batch_dims": lambda make: (make(2, 1, 2, 1, 2, 3, 4), make(1, 3, 1, 2, 1, 4, 2)),
    "deep": lambda make: (make(9, 1100), make(1100, 5)),
    "vector": lambda make: (make(1, 333), make(333, 130)),
    "tiles": lambda make: (make(136, 72), make(72, 264)),
    "tiles_left_transposed": lambda make: (make(72, 136).t(), make(72, 264)),
    "tiles_right_transposed": lambda make: (make(136, 72), make(264, 72).t()),
    "tiles_both_transposed": lambda make: (make(72, 136).t(), make(264, 72).t()),
    "tiles_odd_columns": lambda make: (make(130, 40), make(131, 40).t()),
    "tiles_misaligned": lambda make: (make(131, 70), make(70, 133)),
    "many": lambda make: (make(200, 33, 40), make(200, 40, 24)),
}
"""Beyond one tile, a vector or a stage of the kernels, or not for numeric derivatives."""

# A sum of K products of values about 1 is about sqrt(K), and the kernels' sums of float32 are off by
# about sqrt(K) half places of it; factors are drawn so that the sums are about 1.
TOLERANCES = {
    torch.float16: (2.0**-11 * 1.02, 2e-5),
    torch.bfloat16: (2.0**-8 * 1.02, 2e-5),
    torch.float32: (1e-5, 1e-5),
    torch.float64: (1e-13, 1e-13),
}


def _maker(device: Device, dtype: torch.dtype) -> Make:
    generator = torch.Generator().manual_seed(0)

    def make(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(device, dtype)

    return make


def _samples(operator: Operator, device: Device, dtype: torch.dtype) -> Iterator[Sample]:
    make = _maker(device, dtype)
    for name, factors in (SMALL | LARGE).items():
        a, b = factors(make)
        a = a * max(1, a.shape[-1]) ** -0.5 if name in {"deep", "vector"} else a
        yield Sample(operator=operator, name=name, args=(a, b), gradcheck=name in SMALL)
    special = torch.tensor([[nan, 1.0, 0.0], [inf, 1.0, 2.0], [-inf, inf, 0.0], [0.5, -1.0, 2.0]], dtype=torch.float64)
    finite = torch.tensor([[1.0, 0.0], [2.0, -1.0], [0.0, 3.0]], dtype=torch.float64)
    yield Sample(operator=operator, name="special_values", args=(special.to(device, dtype), finite.to(device, dtype)))
    largest = torch.finfo(dtype).max
    overflow = torch.tensor([[largest, largest]], dtype=dtype, device=device)
    yield Sample(operator=operator, name="overflow", args=(overflow, overflow.t() * 2))


def _bench(operator: Operator, device: Device, dtype: torch.dtype) -> Iterator[Sample]:
    size = 4096
    a, b = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    yield Sample(operator=operator, name="square", args=(a, b))


def _errors(operator: Operator, device: Device) -> Iterator[ErrorSample]:
    def ones(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.ones(shape, device=device, dtype=dtype)

    right = ones(2, 3)
    faults = {
        "integers": (*(ones(2, 2, dtype=torch.int32),) * 2, "a must be a float16, bfloat16, float32 or float64 tensor"),
        "dtype": (right, ones(3, 2).double(), "b must have the dtype of a, .*loat.*, but got .*(ouble|oat64)"),
        "vector": (right, ones(3), r"b must have 2 or more dimensions, \(\.\.\., K, N\), but got the shape \[3\]"),
        "no_dimension": (ones(), right, "a must have 2 or more dimensions, .* but got the shape"),
        "rows": (right, right, r"b must have as many rows as a has columns, 3, but got the shape \[2, 3\]"),
        "batch": (ones(2, 2, 3), ones(3, 3, 2), r"b must have batch dimensions that broadcast with those of a"),
    }
    if torch.device(device).type == "cuda":
        faults["device"] = (right, ones(3, 2).cpu(), "b must be on the device of a, cuda:[0-9]+, but got cpu")
    for name, (a, b, match) in faults.items():
        yield ErrorSample(operator=operator, name=name, args=(a, b), match=f"fusedops::matmul: {match}")


OPERATORS = [
    Operator(
        name="matmul",
        reference=reference.matmul,
        samples=_samples,
        errors=_errors,
        bench=_bench,
        tolerances=TOLERANCES,
    )
]
