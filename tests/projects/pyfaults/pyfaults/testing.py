"""Samples of every operator but `unsampled`."""

from dataclasses import dataclass

import torch

DTYPES = (torch.float32, torch.float64)
TOLERANCES = {torch.float32: (1e-6, 1e-6), torch.float64: (1e-14, 1e-14)}
SQUARES = ("wrong_gradient", "random_gradient", "no_gradient")


@dataclass(frozen=True)
class Operator:
    name: str

    @property
    def base(self):
        return self.name.removesuffix("_clean")

    @property
    def op(self):
        return getattr(torch.ops.pyfaults, self.name).default

    @property
    def differentiable(self):
        return self.base in (*SQUARES, "gradient_missing")


@dataclass(frozen=True)
class Sample:
    operator: Operator
    name: str
    args: tuple

    def reference(self):
        first, *others = (one.double() for one in self.args)
        if others:
            return first * others[0]
        if self.operator.base == "aliasing_output":
            return first.clone()
        if self.operator.base == "fake_wrong_dtype":
            return first[first > 0]
        return first * first if self.operator.base in SQUARES else first * 2


NAMES = (
    *("wrong_value", "fake_missing", "fake_wrong_shape", "undeclared_mutation", "aliasing_output", "strides_ignored"),
    *(
        "empty_launch",
        "shared_scratch",
        "wrong_gradient",
        "random_gradient",
        "gradient_missing",
        "no_gradient",
        "wrong_in_place",
        "fake_wrong_dtype",
        "crowded",
        "crash",
        "leaves",
    ),
    "hang",
)
OPERATORS = {name: Operator(name) for base in NAMES for name in (base, f"{base}_clean")}


def samples(operator, device, dtype):
    generator = torch.Generator().manual_seed(0)
    for name, shape in (("typical", (3, 5)), ("one_element", (1,))):
        tensors = [torch.randn(shape, generator=generator, dtype=torch.float64).to(device, dtype) for _ in range(2)]
        yield Sample(operator, name, tuple(tensors[: 2 if operator.base == "gradient_missing" else 1]))
