"""Samples of copy_async and copy_async_out: tensors in every layout, to others in every layout."""

from collections.abc import Iterator

import torch
from torch import Tensor

from fusedops import reference
from fusedops.testing._base import Device, ErrorSample, Operator, Sample
from fusedops.testing.pointwise import BENCH_ELEMENTS, LAYOUTS, Make

_LAYOUTS = {**LAYOUTS, "many": lambda make: make((300_001,))}
"""`many` is beyond what a CPU thread copies alone, in every dtype."""


def _maker(device: Device, dtype: torch.dtype) -> Make:
    generator = torch.Generator().manual_seed(0)
    return lambda shape: torch.randn(shape, generator=generator, dtype=torch.float64).to(device, dtype)


def _samples(operator: Operator, device: Device, dtype: torch.dtype) -> Iterator[Sample]:
    make = _maker(device, dtype)
    for name, layout in _LAYOUTS.items():
        smooth = name not in ("expanded", "many")
        yield Sample(operator=operator, name=name, args=(layout(make),), gradcheck=smooth)
    special = torch.tensor([torch.nan, torch.inf, -torch.inf, 0.0, -0.0, 2.0**-24], dtype=torch.float64)
    yield Sample(operator=operator, name="special_values", args=(special.to(device, dtype),))


def _samples_out(operator: Operator, device: Device, dtype: torch.dtype) -> Iterator[Sample]:
    make = _maker(device, dtype)
    for name, layout in _LAYOUTS.items():
        x = layout(make)
        yield Sample(operator=operator, name=name, args=(x, torch.full_like(x, 7)))
        if x.dim() > 1:
            strided = torch.full((*x.shape, 2), 7.0, dtype=dtype, device=device)[..., 1]
            yield Sample(operator=operator, name=f"{name}_to_strided", args=(x, strided))
    columns = make((9, 8))
    yield Sample(operator=operator, name="beside_each_other", args=(columns[:, :4], columns[:, 4:]))
    yield Sample(operator=operator, name="transposed_to_dense", args=(make((5, 7)).t(), make((7, 5))))


def _bench(operator: Operator, device: Device, dtype: torch.dtype) -> Iterator[Sample]:
    tensors = 2 if operator.name.endswith("_out") else 1
    args = tuple(torch.randn(BENCH_ELEMENTS, device=device, dtype=dtype) for _ in range(tensors))
    yield Sample(operator=operator, name="large", args=args)


def _errors(operator: Operator, device: Device) -> Iterator[ErrorSample]:
    if not operator.name.endswith("_out"):
        return
    x = torch.ones(2, 3, device=device)
    faults: dict[str, tuple[Tensor, str]] = {
        "shape": (torch.ones(3, 2, device=device), r"shape of x, \[2, 3\], but got \[3, 2\]"),
        "dimensions": (torch.ones(3, device=device), r"shape of x, \[2, 3\], but got \[3\]"),
        "dtype": (x.double(), "dtype of x, .*, but got .*([Dd]ouble|float64)"),
    }
    if torch.device(device).type == "cuda":
        faults["device"] = (x.cpu(), "device of x, cuda:[0-9]+, but got cpu")
    for name, (out, match) in faults.items():
        pattern = f"fusedops::{operator.name}: out must .* {match}"
        yield ErrorSample(operator=operator, name=name, args=(x, out), match=pattern)


OPERATORS = [
    Operator(
        name="copy_async",
        reference=reference.copy_async,
        samples=_samples,
        errors=_errors,
        bench=_bench,
    ),
    Operator(
        name="copy_async_out",
        reference=reference.copy_async_out,
        samples=_samples_out,
        errors=_errors,
        bench=_bench,
        differentiable=False,
    ),
]
