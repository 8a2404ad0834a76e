"""Samples of the clamps' forward passes that give a mask as well, and of the gradient from it."""

from collections.abc import Callable, Iterator
from math import inf, nan
from typing import Any

import torch
from torch import Tensor

from fusedops import reference
from fusedops.testing._base import Device, ErrorSample, Operator, Sample
from fusedops.testing.pointwise import BENCH_ELEMENTS, LAYOUTS, NOT_FOR_GRADCHECK, POINTWISE, SPECIAL_VALUES, Make


def _maker(device: Device, dtype: torch.dtype) -> tuple[torch.Generator, Make]:
    generator = torch.Generator().manual_seed(0)
    return generator, lambda shape: torch.randn(shape, generator=generator, dtype=torch.float64).to(device, dtype)


def _forward_samples(operator: Operator, device: Device, dtype: torch.dtype) -> Iterator[Sample]:
    made = POINTWISE[operator.name.removesuffix("_forward")]
    _, make = _maker(device, dtype)
    for name, layout in LAYOUTS.items():
        args = (layout(make), *made.scalars)
        yield Sample(operator=operator, name=name, args=args, gradcheck=name not in NOT_FOR_GRADCHECK)
    special = torch.tensor(SPECIAL_VALUES, dtype=torch.float64).to(device, dtype)
    yield Sample(operator=operator, name="special_values", args=(special, *made.exact))
    for name, scalars in made.edges.items():
        yield Sample(operator=operator, name=name, args=(special, *scalars))


def _forward_bench(operator: Operator, device: Device, dtype: torch.dtype) -> Iterator[Sample]:
    made = POINTWISE[operator.name.removesuffix("_forward")]
    x = torch.randn(BENCH_ELEMENTS, device=device, dtype=dtype)
    yield Sample(operator=operator, name="large", args=(x, *made.scalars))


def _forward_errors(operator: Operator, device: Device) -> Iterator[ErrorSample]:
    made = POINTWISE[operator.name.removesuffix("_forward")]
    integers = torch.ones(2, 3, dtype=torch.int32, device=device)
    match = f"fusedops::{operator.name}: x must be a float16, bfloat16, float32 or float64 tensor, but got Int"
    yield ErrorSample(operator=operator, name="integers", args=(integers, *made.scalars), match=match)


def _mask(generator: torch.Generator, grad: Tensor) -> Tensor:
    """Random, the bits after the last included: none of those has a meaning."""
    return torch.randint(256, ((grad.numel() + 7) // 8,), generator=generator, dtype=torch.uint8).to(grad.device)


def _samples(operator: Operator, device: Device, dtype: torch.dtype) -> Iterator[Sample]:
    generator, make = _maker(device, dtype)

    def sample(name: str, grad: Tensor, like: Tensor, scale: float, *, gradcheck: bool = False) -> Sample:
        args = (grad, _mask(generator, grad), list(torch.empty_like(like).stride()), scale)
        return Sample(operator=operator, name=name, args=args, gradcheck=gradcheck)

    for name, layout in LAYOUTS.items():
        grad = layout(make)
        yield sample(name, grad, grad, 1.7, gradcheck=name not in NOT_FOR_GRADCHECK)
    grad = make((5, 7)).t()
    yield sample("mixed_layouts", grad, grad.contiguous(), 1.7, gradcheck=True)
    yield sample("mixed_layouts_swapped", grad.contiguous(), grad, 1.7, gradcheck=True)
    special = torch.tensor(SPECIAL_VALUES, dtype=torch.float64).to(device, dtype)
    for name, scale in {"one": 1.0, "negative": -2.0, "zero": 0.0, "infinite": inf, "nan": nan}.items():
        yield sample(f"scale_{name}", special, special, scale)


def _bench(operator: Operator, device: Device, dtype: torch.dtype) -> Iterator[Sample]:
    grad = torch.randn(BENCH_ELEMENTS, device=device, dtype=dtype)
    yield Sample(operator=operator, name="large", args=(grad, _mask(torch.Generator(), grad), [1], 1.7))


def _errors(operator: Operator, device: Device) -> Iterator[ErrorSample]:
    grad = torch.ones(2, 3, device=device)
    mask = torch.ones(1, dtype=torch.uint8, device=device)
    faults: dict[str, tuple[tuple[Any, ...], str]] = {
        "integers": ((grad.int(), mask, [3, 1]), "grad must be a float16, bfloat16, float32 or float64 tensor"),
        "mask_dtype": ((grad, mask.int(), [3, 1]), "mask must be a uint8 tensor, but got"),
        "mask_size": ((grad, mask.expand(2), [3, 1]), r"mask must have a bit .* shape \[1\], but got \[2\]"),
        "mask_dimensions": ((grad, mask[0], [3, 1]), r"mask must have a bit .* shape \[1\], but got \[\]"),
        "strides": ((grad, mask, [1]), "stride must have a number for each dimension of grad, 2, but got 1"),
    }
    if torch.device(device).type == "cuda":
        faults["device"] = ((grad, mask.cpu(), [3, 1]), "mask must be on the device of grad, cuda:[0-9]+, but got cpu")
    for name, (args, match) in faults.items():
        yield ErrorSample(operator=operator, name=name, args=(*args, 1.0), match=f"fusedops::masked_scale: {match}")


def _forward(name: str, computes: Callable[..., Any]) -> Operator:
    return Operator(
        name=name, reference=computes, samples=_forward_samples, errors=_forward_errors, bench=_forward_bench
    )


OPERATORS = [
    _forward("clip_add_forward", reference.clip_add_forward),
    _forward("scale_clamp_add_forward", reference.scale_clamp_add_forward),
    Operator(name="masked_scale", reference=reference.masked_scale, samples=_samples, errors=_errors, bench=_bench),
]
