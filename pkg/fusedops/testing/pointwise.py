"""Samples of the pointwise operators: tensors of one shape, then numbers."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf, nan
from typing import Any

import torch
from torch import Tensor

from fusedops import reference
from fusedops.testing._base import Device, ErrorSample, Operator, Sample


@dataclass(frozen=True, kw_only=True)
class Pointwise:
    """What the calls of a pointwise operator are made of: `tensors` tensor arguments, then float ones."""

    name: str
    tensors: int
    reference: Callable[..., Tensor]
    scalars: tuple[float, ...] = ()
    """For ordinary samples: not exact in binary."""
    exact: tuple[float, ...] = ()
    """Exact in every dtype, so that a bound can be hit."""
    edges: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """By name, scalars with a meaning of their own."""

    @property
    def op(self) -> Any:
        """The torch.ops overload."""
        return getattr(torch.ops.fusedops, self.name).default


def _pointwise() -> Iterator[Pointwise]:
    clip_edges = {"min_above_max": (0.5, -0.25), "min_nan": (nan, 0.5), "max_nan": (-0.5, nan)}
    clip_edges |= {"unbounded": (-inf, inf)}
    scale_edges = {name: (2.0, *bounds) for name, bounds in clip_edges.items()}
    scale_edges |= {"scale_negative": (-1.5, -0.5, 0.75), "scale_zero": (0.0, -0.5, 0.75)}
    with_bias = {name: (*bounds, 0.25) for name, bounds in clip_edges.items()}
    scale_with_bias = {name: (*scalars, 0.25) for name, scalars in scale_edges.items()}
    yield Pointwise(
        name="clip_add",
        tensors=1,
        reference=reference.clip_add,
        scalars=(-0.6, 0.7, 0.3),
        exact=(-0.5, 0.75, 0.25),
        edges=with_bias,
    )
    yield Pointwise(
        name="clip_add_backward",
        tensors=2,
        reference=reference.clip_add_backward,
        scalars=(-0.6, 0.7),
        exact=(-0.5, 0.75),
        edges=clip_edges,
    )
    yield Pointwise(
        name="scale_clamp_add",
        tensors=1,
        reference=reference.scale_clamp_add,
        scalars=(1.7, -0.6, 0.7, 0.3),
        exact=(2.0, -0.5, 0.75, 0.25),
        edges=scale_with_bias,
    )
    yield Pointwise(
        name="scale_clamp_add_backward",
        tensors=2,
        reference=reference.scale_clamp_add_backward,
        scalars=(1.7, -0.6, 0.7),
        exact=(2.0, -0.5, 0.75),
        edges=scale_edges,
    )
    yield Pointwise(
        name="affine",
        tensors=1,
        reference=reference.affine,
        scalars=(-1.3, 0.6),
        exact=(-1.5, 0.5),
        edges={"a_zero": (0.0, 0.5)},
    )
    yield Pointwise(name="vector_add", tensors=2, reference=reference.vector_add)


POINTWISE = {made.name: made for made in _pointwise()}

Make = Callable[[tuple[int, ...]], Tensor]

LAYOUTS: dict[str, Callable[[Make], Tensor]] = {
    "typical": lambda make: make((3, 43)),
    "empty": lambda make: make((0, 3)),
    "one_element": lambda make: make((1,)),
    "zero_dim": lambda make: make(()),
    "transposed": lambda make: make((5, 7)).t(),
    "strided": lambda make: make((6, 10))[::2, 1::3],
    "misaligned": lambda make: make((130,))[1:],
    "channels_last": lambda make: make((2, 3, 4, 5)).contiguous(memory_format=torch.channels_last),
    "expanded": lambda make: make((4, 1)).expand(4, 5),
    "many": lambda make: make((70_001,)),
}
"""Odd sizes, so that each has elements after the last whole vector; `many` is beyond what a CPU
thread takes alone."""

NOT_FOR_GRADCHECK = {"expanded", "many"}
SPECIAL_VALUES = (nan, inf, -inf, 0.0, -0.0, -0.5, 0.75, -0.25, 0.375, 2.0**-24, 3.0, -3.0)


def _samples(operator: Operator, device: Device, dtype: torch.dtype) -> Iterator[Sample]:
    """Calls of `operator` that must give the reference's values and layout."""
    made = POINTWISE[operator.name]
    generator = torch.Generator().manual_seed(0)

    def make(shape: tuple[int, ...]) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(device, dtype)

    def sample(name: str, tensors: list[Tensor], scalars: tuple[float, ...], *, gradcheck: bool = False) -> Sample:
        args = (*tensors, *scalars)
        return Sample(operator=operator, name=name, args=args, gradcheck=gradcheck)

    for name, layout in LAYOUTS.items():
        tensors = [layout(make) for _ in range(made.tensors)]
        smooth = name not in NOT_FOR_GRADCHECK
        yield sample(name, tensors, made.scalars, gradcheck=smooth)
    if made.tensors > 1:
        mixed = [make((5, 7)).t(), make((7, 5))]
        yield sample("mixed_layouts", mixed, made.scalars, gradcheck=True)
        yield sample("mixed_layouts_swapped", mixed[::-1], made.scalars, gradcheck=True)
    special = torch.tensor(SPECIAL_VALUES, dtype=torch.float64).to(device, dtype)
    tensors = [special.roll(k) for k in range(made.tensors)]
    yield sample("special_values", tensors, made.exact)
    for name, scalars in made.edges.items():
        yield sample(name, tensors, scalars)


BENCH_ELEMENTS = 2**25
"""Whose time a GPU spends on memory and not on the launch."""


def _bench(operator: Operator, device: Device, dtype: torch.dtype) -> Iterator[Sample]:
    made = POINTWISE[operator.name]
    tensors = [torch.randn(BENCH_ELEMENTS, device=device, dtype=dtype) for _ in range(made.tensors)]
    yield Sample(operator=operator, name="large", args=(*tensors, *made.scalars))


def _errors(operator: Operator, device: Device) -> Iterator[ErrorSample]:
    made = POINTWISE[operator.name]

    def sample(name: str, tensors: list[Tensor], match: str) -> ErrorSample:
        args = (*tensors, *made.scalars)
        return ErrorSample(operator=operator, name=name, args=args, match=match)

    prefix = f"fusedops::{operator.name}: "
    integers = [torch.ones(2, 3, dtype=torch.int32, device=device)] * made.tensors
    yield sample(
        "integers",
        integers,
        prefix + "x must be a float16, bfloat16, float32 or float64 tensor, but got Int",
    )
    if made.tensors == 1:
        return
    # The argument held to the other one, and its place.
    checked, like, place = ("grad", "x", 0) if "backward" in operator.name else ("y", "x", 1)
    right = torch.ones(2, 3, device=device)
    faults = {
        "shape": (torch.ones(3, 2, device=device), r"shape of {}, \[2, 3\], but got \[3, 2\]"),
        "dimensions": (torch.ones(3, device=device), r"shape of {}, \[2, 3\], but got \[3\]"),
        "dtype": (right.double(), "dtype of {}, Float, but got Double"),
    }
    if torch.device(device).type == "cuda":
        faults["device"] = (right.cpu(), "device of {}, cuda:[0-9]+, but got cpu")
    for name, (wrong, match) in faults.items():
        tensors = [right, right]
        tensors[place] = wrong
        yield sample(name, tensors, f"{prefix}{checked} must .* {match.format(like)}")


OPERATORS = [
    Operator(name=made.name, reference=made.reference, samples=_samples, errors=_errors, bench=_bench)
    for made in POINTWISE.values()
]
