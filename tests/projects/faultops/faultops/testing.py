"""Samples of every operator, as gates read them.

An ordinary sample lies contiguously and has elements, so that a gate which makes other layouts is the one that sees
what is wrong with them. `int_overflow`, `crash` and `hang` have one more sample, which their fault needs.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

import faultops  # noqa: F401  it registers the operators

DTYPES = (torch.float32, torch.float64)

TOLERANCES = {torch.float32: (1e-6, 1e-6), torch.float64: (1e-14, 1e-14)}
"""(rtol, atol) against the reference in float64."""

TILE = 256


@dataclass(frozen=True, kw_only=True)
class Operator:
    """An operator of torch.ops.faultops."""

    name: str
    fault: str | None
    """None for a clean twin."""
    gate: str
    """ops, gradcheck, sanitize, robust or bench: the one that is meant to catch the fault."""
    tool: str
    """What of that gate."""
    reference: Callable[..., Tensor]
    differentiable: bool = False
    complex: bool = False
    nondet_tol: float = 0.0
    cpu: bool = False
    """Whether the CPU kernel, or what is registered for both devices, holds the fault too."""

    @property
    def op(self) -> Any:
        """The torch.ops overload."""
        return getattr(torch.ops.faultops, self.name).default


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A call `operator.op(*args)`."""

    operator: Operator
    name: str
    args: tuple[Any, ...]
    gradcheck: bool = False
    """Small enough for derivatives by differences."""

    def reference(self) -> Tensor:
        """The value of the same call, in float64."""
        return self.operator.reference(*(arg.double() if _is_real(arg) else arg for arg in self.args))

    def require_grad(self) -> "Sample":
        """The same call on detached tensors that require gradients, where their dtype can."""
        return replace(self, args=tuple(arg.detach().requires_grad_() if _is_real(arg) else arg for arg in self.args))


def _is_real(arg: Any) -> bool:
    return isinstance(arg, Tensor) and arg.is_floating_point()


def _twice(x: Tensor, chunk: int = 0) -> Tensor:
    return 2 * x


def _difference(x: Tensor) -> Tensor:
    flat = x.flatten()
    return (torch.cat([flat[1:], flat.new_zeros(1)])[: flat.numel()] - flat).reshape(x.shape)


def _previous(x: Tensor) -> Tensor:
    flat = x.flatten()
    before = torch.cat([flat.new_zeros(1), flat[:-1]])[: flat.numel()]
    before[::TILE] = 0
    return (flat + before).reshape(x.shape)


def _row_start(x: Tensor, columns: int) -> Tensor:
    rows = torch.arange(x.numel(), device=x.device).reshape(x.shape)
    return x * (rows * columns)


def _gather_sum(x: Tensor, index: Tensor) -> Tensor:
    places = index.flatten()
    return (x.flatten()[places] / (1 + torch.arange(places.numel(), device=x.device))).sum()


def _operators() -> Iterator[Operator]:
    def pair(fault: str, gate: str, tool: str, reference: Callable[..., Tensor] = _twice, **more: bool) -> None:
        common = {"gate": gate, "tool": tool, "reference": reference, **more}
        made.append(Operator(name=fault, fault=fault, **common))
        made.append(Operator(name=f"{fault}_clean", fault=None, **common))

    made: list[Operator] = []
    pair("out_of_bounds_write", "sanitize", "memcheck")
    pair("out_of_bounds_read", "sanitize", "memcheck", _difference)
    pair("shared_race", "sanitize", "racecheck", _previous)
    pair("uninitialised_read", "sanitize", "initcheck")
    pair("divergent_barrier", "sanitize", "synccheck", _previous)
    pair("int_overflow", "ops", "values", _row_start)
    pair("empty_grid", "robust", "empty")
    pair("default_stream", "robust", "streams")
    pair("strides_ignored", "robust", "layouts", cpu=True)
    pair("misaligned_vector", "robust", "layouts")
    pair("missing_guard", "robust", "devices")
    pair("sync_in_capture", "robust", "capture")
    pair("wrong_gradient", "gradcheck", "gradcheck", torch.square, differentiable=True, cpu=True)
    pair("nondeterministic_gradient", "gradcheck", "gradcheck", _gather_sum, differentiable=True)
    pair("gradient_missing", "gradcheck", "gradcheck", torch.mul, differentiable=True, cpu=True)
    pair("fake_missing", "ops", "opcheck", cpu=True)
    pair("fake_wrong_shape", "ops", "opcheck", cpu=True)
    pair("undeclared_mutation", "ops", "opcheck", lambda x: x.clamp(-1, 1), cpu=True)
    pair("aliasing_output", "ops", "opcheck", torch.clone, cpu=True)
    pair("leaked_allocation", "sanitize", "memcheck")
    pair("crash", "ops", "values", cpu=True)
    pair("hang", "ops", "values", cpu=True)
    pair("slow", "bench", "bench", cpu=True)
    return iter(made)


OPERATORS = {operator.name: operator for operator in _operators()}

SHAPES = {"typical": (3, 43), "one_element": (1,), "many": (70_001,)}
"""Of no sample's elements do the bytes fill blocks of 512, to which torch's allocator rounds: an element past the end
harms nobody, and only a tool that knows the true end sees it."""

LARGE = 2**26
"""Elements whose time a GPU spends on memory and not on the launch."""


def samples(operator: Operator, device: torch.device | str, dtype: torch.dtype) -> Iterator[Sample]:
    """Calls of `operator` that must give the reference's values."""
    generator = torch.Generator().manual_seed(0)

    def make(shape: tuple[int, ...]) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(device, dtype)

    base = operator.name.removesuffix("_clean")
    if base == "nondeterministic_gradient":
        places = torch.randint(3, SHAPES["many"], generator=generator).to(device)
        yield Sample(operator=operator, name="many_places", args=(make((3,)), places), gradcheck=True)
        return
    more: dict[str, tuple[Any, ...]] = {"int_overflow": (43,), "crash": (4096,), "hang": (4096,)}
    for name, shape in SHAPES.items():
        tensors = [make(shape) for _ in range(2 if base == "gradient_missing" else 1)]
        args = (*tensors, *more.get(base, ()))
        yield Sample(operator=operator, name=name, args=args, gradcheck=name != "many")
    if base == "int_overflow":
        yield Sample(operator=operator, name="overflows", args=(make((4097,)), 2**20))
    if base in {"crash", "hang"}:
        yield Sample(operator=operator, name="no_chunk", args=(make((7,)), 0))
    if base == "slow" and torch.device(device).type == "cuda":
        yield Sample(operator=operator, name="large", args=(make((1024,)).repeat(LARGE // 1024),))
