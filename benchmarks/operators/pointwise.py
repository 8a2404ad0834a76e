"""The pointwise operators: large calls on a GPU and on the CPU, small ones by what the host spends. Needs torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

import fusedops
from fusedops import reference
from fusedops.testing import TOLERANCES

from .measure import Held, Work, attempt, fitting, free_memory, poison

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SCALARS: dict[str, tuple[float, ...]] = {
    "clip_add": (-0.6, 0.7, 0.3),
    "scale_clamp_add": (1.7, -0.6, 0.7, 0.3),
    "affine": (-1.3, 0.6),
    "vector_add": (),
}
# Tensors read and written.
FORWARD = {"clip_add": 2, "scale_clamp_add": 2, "affine": 2, "vector_add": 3}
COPY = 2
# As many tensors of the size as a row holds at most: graphs of three candidates, and what eager makes on its way.
HELD = {"forward": 8, "backward": 14}
PIECE = 1 << 24  # elements in float64 at a time
NEAR = 2.0**-20  # of a bound: on which side of it the product is, its rounding decides


def inputs(operator: str, elements: int, dtype: torch.dtype, device: str) -> list[Tensor]:
    return [torch.randn(elements, dtype=dtype, device=device) for _ in range(2 if operator == "vector_add" else 1)]


def sized(how: Mapping[str, Any], held: int, device: str) -> tuple[int, str | None]:
    """Elements that fit, and what was shrunk."""
    dtype = getattr(torch, how["dtype"])
    exponent = fitting(how["exponent"], held * dtype.itemsize, free_memory(device))
    less = f"2^{exponent} elements in place of 2^{how['exponent']}, for want of memory"
    return 2**exponent, None if exponent == how["exponent"] else less


def forward(operator: str, how: Mapping[str, Any], device: str) -> Work:
    elements, shrunk = sized(how, HELD["forward"], device)
    dtype, scalars = getattr(torch, how["dtype"]), SCALARS[operator]
    ours, eager = getattr(fusedops, operator), getattr(reference, operator)
    every = inputs(operator, elements, dtype, device)
    target = torch.empty_like(every[0])
    calls: dict[str, Callable[[], object]] = {
        "fusedops": lambda: ours(*every, *scalars),
        "copy": lambda: target.copy_(every[0]),
        "eager": lambda: eager(*every, *scalars),
    }
    left_out: dict[str, str] = {}
    if device == "cuda":
        compiled = torch.compile(lambda *tensors: eager(*tensors, *scalars), dynamic=False)
        calls["torch.compile"] = lambda: compiled(*every)
        attempt(calls, left_out, "torch.compile")

    def check() -> dict[str, Any]:
        held = Held(*TOLERANCES[dtype])
        poison((elements,), dtype, device)
        result = ours(*every, *scalars)
        for start in range(0, elements, PIECE):
            part = slice(start, start + PIECE)
            held.add(operator, result[part], eager(*(one[part].double() for one in every), *scalars))
        return held.told()

    size = dtype.itemsize * elements
    amounts = {name: float(COPY * size) for name in calls} | {"fusedops": float(FORWARD[operator] * size)}
    del amounts["eager"]  # which makes as many passes as it has operators
    if "torch.compile" in calls:
        amounts["torch.compile"] = amounts["fusedops"]
    return Work(calls=calls, check=check, amounts=amounts, amount="byte", left_out=left_out, shrunk=shrunk)


def backward(operator: str, how: Mapping[str, Any], device: str) -> Work:
    elements, shrunk = sized(how, HELD["backward"], device)
    dtype, scalars = getattr(torch, how["dtype"]), SCALARS[operator]
    ours, eager = getattr(fusedops, operator), getattr(reference, operator)
    (x,) = inputs(operator, elements, dtype, device)
    seed = torch.randn_like(x)
    x.requires_grad_()
    target = torch.empty_like(seed)

    def gradient(function: Callable[..., Tensor]) -> Callable[[], Tensor]:
        """The gradient alone; the forward pass is done here, once."""
        output = function(x, *scalars)
        return lambda: torch.autograd.grad(output, x, seed, retain_graph=True)[0]

    def compiled() -> Callable[[], Tensor]:
        import torch._functorch.config

        # Or the memory of what it keeps could be given away in its first run.
        if hasattr(torch._functorch.config, "donated_buffer"):  # noqa: SLF001
            torch._functorch.config.donated_buffer = False  # noqa: SLF001
        call = torch.compile(lambda tensor: eager(tensor, *scalars), dynamic=False)
        return gradient(lambda tensor, *_: call(tensor))

    calls: dict[str, Callable[[], object]] = {
        "fusedops": gradient(ours),
        "copy": lambda: target.copy_(seed),
        "eager": gradient(eager),
    }
    left_out: dict[str, str] = {}
    made: list[Callable[[], Tensor]] = []
    calls["torch.compile"] = lambda: made.append(compiled())
    attempt(calls, left_out, "torch.compile")
    if made:
        calls["torch.compile"] = made[0]
        attempt(calls, left_out, "torch.compile")

    def check() -> dict[str, Any]:
        held = Held(*TOLERANCES[dtype])
        call = gradient(ours)
        poison((elements,), dtype, device)
        result = call()
        for start in range(0, elements, PIECE):
            part = slice(start, start + PIECE)
            want, clear = expected_gradient(operator, seed[part].double(), x.detach()[part].double())
            held.add(f"gradient of {operator}", result[part][clear], want[clear])
        return held.told()

    size = dtype.itemsize * elements
    amounts = {"fusedops": float(COPY * size + kept(ours(x, *scalars))), "copy": float(COPY * size)}
    return Work(calls=calls, check=check, amounts=amounts, amount="byte", left_out=left_out, shrunk=shrunk)


def kept(output: Tensor) -> int:
    """Bytes that the forward pass left for the backward, which it reads beside a gradient and writes another."""
    return sum(tensor.nbytes for tensor in output.grad_fn.saved_tensors)


def expected_gradient(operator: str, seed: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient, and where it does not depend on a rounding: next to a bound it may be either of two."""
    scalars = SCALARS[operator]
    if operator == "affine":
        return seed * scalars[0], torch.ones_like(x, dtype=torch.bool)
    scale, low, high = scalars[:3] if operator == "scale_clamp_add" else (1.0, *scalars[:2])
    product = x * scale
    inside = (product >= low) & (product <= high)
    clear = ((product - low).abs() > NEAR) & ((product - high).abs() > NEAR)
    return torch.where(inside, seed * scale, 0.0), clear


def small(operator: str, how: Mapping[str, Any], device: str) -> Work:
    scalars = SCALARS[operator]
    ours, eager = getattr(fusedops, operator), getattr(reference, operator)
    every = inputs(operator, how["elements"], torch.float32, device)
    other, seed = torch.randn_like(every[0]), torch.randn_like(every[0])

    def check() -> dict[str, Any]:
        held = Held(*TOLERANCES[torch.float32])
        poison(other.shape, torch.float32, device)
        result = ours(*every, *scalars)
        held.add(operator, result.detach(), eager(*(one.detach().double() for one in every), *scalars))
        if how["gradients"]:
            got = torch.autograd.grad(ours(*every, *scalars), every[0], seed)[0]
            want, clear = expected_gradient(operator, seed.double(), every[0].detach().double())
            held.add(f"gradient of {operator}", got[clear], want[clear])
        return held.told()

    if how["gradients"]:
        for one in every:
            one.requires_grad_()
        calls: dict[str, Callable[[], object]] = {
            "fusedops": lambda: torch.autograd.grad(ours(*every, *scalars), every, seed),
            "eager": lambda: torch.autograd.grad(eager(*every, *scalars), every, seed),
        }
    else:
        calls = {
            "fusedops": lambda: ours(*every, *scalars),
            "torch.add": lambda: torch.add(every[0], other),
            "eager": lambda: eager(*every, *scalars),
        }
    return Work(calls=calls, check=check, small=True)


def cpu(operator: str, how: Mapping[str, Any], device: str) -> Work:
    torch.set_num_threads(how["threads"])
    return forward(operator, how, device)
