"""local_attention beside dense SDPA and flex_attention, and matmul beside cuBLAS. Needs torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional

import fusedops

from .measure import Held, Work, attempt, free_memory, poison

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

BATCH, HEADS, DEPTH = 2, 16, 64
BLOCK = 512  # queries in float64 at a time
# Of the largest value: half a last place of bfloat16 is 2^-8 of a value, and weights and sums add less. One key too
# many or too few changes a value of these inputs by some hundredths.
FORWARD, BACKWARD = 2.0**-7, 2.0**-6
# An error of a sum of K products, in units of K, of values around 1: TF32's rounding of the factors makes some
# hundredths at 4,096, and the rounding of sums in float32 some thousandths at 8,192.
OF_SUM = 2.0**-20
ROUNDED = {torch.float32: 2.0**-22, torch.bfloat16: 2.0**-8 * 1.01}


def window_of(q: Tensor, k: Tensor, v: Tensor, window: int, grad: Tensor | None) -> tuple[Tensor, ...]:
    """The result in float64, and with `grad` the gradients in q, k and v: block by block, over the keys it sees."""
    length = q.shape[2]
    result = torch.empty(q.shape, dtype=torch.float64, device=q.device)
    gradients = [torch.zeros_like(result) for _ in range(3 if grad is not None else 0)]
    place = torch.arange(length, device=q.device)
    for start in range(0, length, BLOCK):
        rows = slice(start, min(start + BLOCK, length))
        columns = slice(max(0, start - window), min(rows.stop + window, length))
        parts = [q[:, :, rows], k[:, :, columns], v[:, :, columns]]
        leaves = [part.detach().double().requires_grad_(grad is not None) for part in parts]
        scores = leaves[0] @ leaves[1].transpose(-1, -2) * DEPTH**-0.5
        hidden = (place[rows, None] - place[None, columns]).abs() > window
        block = scores.masked_fill(hidden, float("-inf")).softmax(dim=-1) @ leaves[2]
        result[:, :, rows] = block.detach()
        if grad is not None:
            found = torch.autograd.grad(block, leaves, grad[:, :, rows].double())
            for whole, part, one in zip(gradients, (rows, columns, columns), found, strict=True):
                whole[:, :, part] += one
    return (result, *gradients)


def attention(operator: str, how: Mapping[str, Any], device: str) -> Work:  # noqa: ARG001 - as every row is made ready
    length, window = how["length"], how["window"]
    every = [torch.randn(BATCH, HEADS, length, DEPTH, dtype=torch.bfloat16, device=device) for _ in range(3)]
    seed = torch.randn_like(every[0])
    if how["gradients"]:
        for one in every:
            one.requires_grad_()

    def whole(function: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Callable[[], object]:
        if how["gradients"]:
            return lambda: torch.autograd.grad(function(*every), every, seed)
        return lambda: function(*every)

    def ours(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        result: Tensor = fusedops.local_attention(q, k, v, window)
        return result

    calls: dict[str, Callable[[], object]] = {"fusedops": whole(ours)}
    left_out: dict[str, str] = {}
    for name, make in (("SDPA", dense), ("flex_attention", flexible)):
        try:
            calls[name] = whole(make(length, window, device))
        except (ImportError, RuntimeError) as error:
            left_out[name] = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        else:
            attempt(calls, left_out, name)

    def check() -> dict[str, Any]:
        return held_to_window(ours, every, seed if how["gradients"] else None, window)

    return Work(calls=calls, check=check, left_out=left_out)


def held_to_window(
    function: Callable[[Tensor, Tensor, Tensor], Tensor], every: list[Tensor], seed: Tensor | None, window: int
) -> dict[str, Any]:
    """The comparison that is nearest to its bound, of the result and with `seed` of the gradients."""
    poison(every[0].shape, every[0].dtype, every[0].device.type)
    result = function(*every)
    found = {"local_attention": (result.detach(), FORWARD)}
    if seed is not None:
        gradients = torch.autograd.grad(result, every, seed)
        found |= {f"d{name}": (one, BACKWARD) for name, one in zip("qkv", gradients, strict=True)}
    told = []
    for (name, (got, bound)), want in zip(found.items(), window_of(*every, window, seed), strict=True):
        held = Held(0.0, bound * want.abs().max().item())
        held.add(name, got, want)
        told.append(held.told())
    return max(told, key=lambda one: one["worst"])


def dense(length: int, window: int, device: str) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """SDPA of torch, with the window as a mask of every pair."""
    place = torch.arange(length, device=device)
    mask = (place[:, None] - place).abs() <= window
    return lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def flexible(length: int, window: int, device: str) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """The compiled flex_attention of torch, with the window as a block mask."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    if device != "cuda":
        raise RuntimeError("it is timed on a GPU alone")

    def seen(_batch: Tensor, _head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return (query - key).abs() <= window

    mask = create_block_mask(seen, None, None, length, length, device=device)
    call = torch.compile(flex_attention, dynamic=False)
    return lambda q, k, v: call(q, k, v, block_mask=mask)


def matmul(operator: str, how: Mapping[str, Any], device: str) -> Work:  # noqa: ARG001
    dtype, side = getattr(torch, how["dtype"]), how["side"]
    # In float64 both factors and the product, and a piece of what they are compared with.
    while side > 1 and 40 * side * side > free_memory(device):
        side //= 2
    shrunk = None if side == how["side"] else f"{side:,} in place of {how['side']:,}, for want of memory"
    torch.set_float32_matmul_precision("highest")  # no TF32
    a, b = (torch.randn(side, side, device=device).to(dtype) for _ in range(2))
    calls: dict[str, Callable[[], object]] = {
        "fusedops": lambda: fusedops.matmul(a, b),
        "cuBLAS": lambda: torch.matmul(a, b),
    }

    def check() -> dict[str, Any]:
        held = Held(ROUNDED[dtype], OF_SUM * side)
        poison((side, side), dtype, device)
        result = fusedops.matmul(a, b)
        want = a.double() @ b.double()
        for start in range(0, side, 1024):
            held.add("matmul", result[start : start + 1024], want[start : start + 1024])
        return held.told()

    operations = 2.0 * side**3
    amounts = {"fusedops": operations, "cuBLAS": operations}
    return Work(calls=calls, check=check, amounts=amounts, amount="operation", shrunk=shrunk)
