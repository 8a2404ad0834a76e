"""What describes an operator and its calls."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

Device = torch.device | str

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)

TOLERANCES = {
    torch.float16: (2.0**-11 * 1.01, 1e-6),
    torch.bfloat16: (2.0**-8 * 1.01, 1e-6),
    torch.float32: (1e-6, 1e-6),
    torch.float64: (1e-14, 1e-14),
}
"""(rtol, atol) against the reference in float64: half a last place for the types that are computed
in float32 and rounded once."""


@dataclass(frozen=True, kw_only=True)
class Operator:
    """An operator of torch.ops.fusedops and how to call it."""

    name: str
    reference: Callable[..., Any]
    """The same computation in plain torch: a tensor or a tuple of tensors."""
    samples: "Callable[[Operator, Device, torch.dtype], Iterator[Sample]]"
    errors: "Callable[[Operator, Device], Iterator[ErrorSample]]"
    bench: "Callable[[Operator, Device, torch.dtype], Iterator[Sample]]"
    """Calls large enough to time."""
    dtypes: tuple[torch.dtype, ...] = DTYPES
    tolerances: Mapping[torch.dtype, tuple[float, float]] = field(default_factory=lambda: TOLERANCES)
    differentiable: bool = True
    nondet_tol: float = 0.0
    """0: the same bits in every run."""
    capturable: bool = True
    """A CUDA graph can hold it: it never waits for the device."""

    @property
    def op(self) -> Any:
        """The torch.ops overload."""
        return getattr(torch.ops.fusedops, self.name).default


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A call `operator.op(*args)`."""

    operator: Operator
    name: str
    args: tuple[Any, ...]
    gradcheck: bool = False
    """Small, finite, without overlap and away from where the operator has no derivative."""

    def reference(self) -> Any:
        """The reference's value of the same call, in float64."""
        return self.operator.reference(*(arg.double() if floating(arg) else arg for arg in self.args))

    def require_grad(self) -> "Sample":
        """The same call on detached tensors, laid out alike, of which the floating ones require gradients."""
        args = (arg.detach().requires_grad_() if floating(arg) else arg for arg in self.args)
        return Sample(operator=self.operator, name=self.name, args=tuple(args), gradcheck=self.gradcheck)


@dataclass(frozen=True, kw_only=True)
class ErrorSample:
    """A call that raises RuntimeError with a message in which the pattern `match` is found."""

    operator: Operator
    name: str
    args: tuple[Any, ...]
    match: str


def floating(arg: Any) -> bool:
    """Whether an argument is a tensor that can have a gradient."""
    return isinstance(arg, Tensor) and arg.is_floating_point()
