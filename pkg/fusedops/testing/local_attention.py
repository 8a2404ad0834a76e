"""Samples of the sliding-window attention: tensors of one shape, (B, H, S, D), a window, causal or not."""

from collections.abc import Callable, Iterator
from math import inf, nan
from typing import Any

import torch
from torch import Tensor

from fusedops import reference
from fusedops.testing._base import Device, ErrorSample, Operator, Sample

TOLERANCES = {
    torch.float16: (2.0**-9, 4e-3),
    torch.bfloat16: (2.0**-6, 3e-2),
    torch.float32: (1e-5, 1e-5),
    torch.float64: (1e-12, 1e-12),
}
"""Tensor cores take the weights rounded to the dtype, and a sum of rounded terms may be near zero."""

Make = Callable[[tuple[int, ...]], Tensor]
Options = tuple[Any, ...]


def _transposed(make: Make, batch: int, heads: int, rows: int, dim: int) -> Tensor:
    """As a projection gives it: (B, S, H, D) in memory."""
    return make((batch, rows, heads, dim)).transpose(1, 2)


LAYOUTS: dict[str, tuple[Callable[[Make], Tensor], Options]] = {
    "typical": (lambda make: make((1, 2, 4, 2)), (2, False, None)),
    "causal": (lambda make: make((2, 1, 3, 3)), (1, True, 0.7)),
    "empty": (lambda make: make((2, 2, 0, 4)), (2, False, None)),
    "empty_batch": (lambda make: make((0, 2, 5, 4)), (2, True, None)),
    "one_element": (lambda make: make((1, 1, 1, 1)), (0, False, None)),
    "whole": (lambda make: make((1, 1, 3, 4)), (1000, False, -0.4)),
    "transposed": (lambda make: _transposed(make, 1, 2, 3, 2), (1, False, None)),
    "strided": (lambda make: make((1, 2, 8, 9))[:, :, ::3, 1:4], (1, True, None)),
    "misaligned": (lambda make: make((1 + 4 * 8,))[1:].view(1, 1, 4, 8), (1, False, None)),
    "expanded": (lambda make: make((1, 1, 6, 4)).expand(2, 3, 6, 4), (1, False, None)),
    "odd_dim": (lambda make: make((1, 1, 75, 33)), (17, False, None)),
    "widest_dim": (lambda make: _transposed(make, 1, 2, 70, 128), (5, True, None)),
    "many": (lambda make: _transposed(make, 1, 2, 331, 64), (70, False, None)),
}
"""Rows and windows beyond one tile, of 64 or 128, and not of its size."""

_FOR_GRADCHECK = {"typical", "causal", "empty", "one_element", "whole", "transposed", "strided", "mixed_layouts"}
_BACKWARD = "local_attention_backward"


def _samples(operator: Operator, device: Device, dtype: torch.dtype) -> Iterator[Sample]:
    generator = torch.Generator().manual_seed(0)

    def make(shape: tuple[int, ...]) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(device, dtype)

    def sample(name: str, tensors: list[Tensor], options: Options) -> Sample:
        args = _arguments(operator, tensors, options, make)
        return Sample(operator=operator, name=name, args=args, gradcheck=name in _FOR_GRADCHECK)

    for name, (layout, options) in LAYOUTS.items():
        yield sample(name, [layout(make) for _ in range(3)], options)
    mixed = [_transposed(make, 1, 2, 3, 2), make((1, 2, 3, 2)), make((1, 2, 2, 3)).mT]
    yield sample("mixed_layouts", mixed, (1, False, None))
    for at, value in enumerate((nan, inf, -inf)):
        tensors = [make((1, 1, 90, 20)) for _ in range(3)]
        tensors[at][0, 0, 40, 3] = value
        yield sample(f"special_{'qkv'[at]}", tensors, (7, at == 1, None))


def _arguments(operator: Operator, tensors: list[Tensor], options: Options, make: Make) -> tuple[Any, ...]:
    if operator.name != _BACKWARD:
        return (*tensors, *options)
    q = tensors[0]
    values = reference.local_attention_forward(*(t.double() for t in tensors), *options)
    out, lse = values[0].to(q.dtype), values[1].to(torch.float64 if q.dtype == torch.float64 else torch.float32)
    grad = make(tuple(q.shape))
    # As many calls without a gradient of lse as with one.
    grad_lse = None if options[1] else make(tuple(lse.shape)).to(lse.dtype)
    return (grad, *tensors, out, lse, *options, grad_lse)


def _bench(operator: Operator, device: Device, dtype: torch.dtype) -> Iterator[Sample]:
    rows = 4096 if torch.device(device).type == "cuda" else 512
    generator = torch.Generator(device).manual_seed(0)

    def make(shape: tuple[int, ...]) -> Tensor:
        return torch.randn(shape, generator=generator, device=device, dtype=dtype)

    tensors = [make((2, 16, rows, 64)) for _ in range(3)]
    options = (256, False, None)
    if operator.name == _BACKWARD:
        out, lse = torch.ops.fusedops.local_attention_forward(*tensors, *options)
        args: tuple[Any, ...] = (make((2, 16, rows, 64)), *tensors, out, lse, *options)
    else:
        args = (*tensors, *options)
    yield Sample(operator=operator, name="large", args=args)


def _errors(operator: Operator, device: Device) -> Iterator[ErrorSample]:
    prefix = f"fusedops::{_BACKWARD if operator.name == _BACKWARD else 'local_attention'}: "
    right = torch.ones(1, 2, 3, 4, device=device)

    def sample(name: str, tensors: tuple[Tensor, ...], match: str, window: int = 1) -> ErrorSample:
        args: tuple[Any, ...] = (*tensors, window)
        if operator.name == _BACKWARD:
            q = tensors[0]
            args = (q, *tensors, q, q.new_ones(q.shape[:3], dtype=torch.float32), window)
        return ErrorSample(operator=operator, name=name, args=args, match=prefix + match)

    dtypes = "q must be a float16, bfloat16, float32 or float64 tensor, but got Int"
    yield sample("integers", (right.int(),) * 3, dtypes)
    yield sample("dimensions", (right[0],) * 3, r"q must have 4 dimensions, \(B, H, S, D\), but got .*\[2, 3, 4\]")
    yield sample("shape", (right, right[:, :, :2], right), r"k must have the shape of q, .* but got \[1, 2, 2, 4\]")
    yield sample("dtype", (right, right, right.double()), "v must have the dtype of q, .* but got .*")
    wide = torch.ones(1, 1, 2, 129, device=device)
    yield sample("dim", (wide,) * 3, "q must have 1 to 128 elements in a row, D, but got 129")
    yield sample("window", (right,) * 3, "window must be 0 or more, but got -1", window=-1)
    if torch.device(device).type == "cuda":
        yield sample("device", (right, right.cpu(), right), "k must be on the device of q, cuda:[0-9]+, but got cpu")


OPERATORS = [
    Operator(
        name=name,
        reference=getattr(reference, name),
        samples=_samples,
        errors=_errors,
        bench=_bench,
        tolerances=TOLERANCES,
    )
    for name in ("local_attention", "local_attention_forward", _BACKWARD)
]
