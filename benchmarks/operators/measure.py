"""Times on the device and on the host, and values against float64. Needs torch."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

FLUSH = 256 << 20  # bytes, more than any card's L2
# Cycles that the device waits before each call, in which the host launches it: about a millisecond.
AHEAD = 2_000_000
ROUNDS = (11, 101)  # at least, at most
BATCH = 200  # of small calls, whose mean is one value


@dataclass(kw_only=True)
class Work:
    """A row made ready: what to call, and how to tell that it is right.

    `amounts` are what a call of each candidate handles: bytes read and written, or arithmetic operations, as `amount`
    says. `check` raises Wrong, and is told with the row. `left_out` says of other candidates why they are not here.
    """

    calls: dict[str, Callable[[], object]]
    check: Callable[[], dict[str, Any]]
    amounts: dict[str, float] = field(default_factory=dict)
    amount: str | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    shrunk: str | None = None
    small: bool = False


class Wrong(Exception):  # noqa: N818 - what is wrong with a result, not with this program
    """A result is not the reference's."""


def spread(values: list[float]) -> dict[str, float]:
    """Median and quartiles."""
    q1, median, q3 = statistics.quantiles(values, n=4)
    return {"median": median, "q1": q1, "q3": q3, "count": len(values)}


def synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def rounds(calls: Mapping[str, Callable[[], object]], device: str, seconds: float) -> int:
    """How often all of them can be called in so many seconds, within limits; they are warm afterwards."""
    for call in calls.values():
        call()
    synchronize(device)
    start = time.perf_counter()
    for call in calls.values():
        call()
    synchronize(device)
    once = time.perf_counter() - start
    return max(ROUNDS[0], min(ROUNDS[1], int(seconds / once)))


def timed(work: Work, device: str, seconds: float) -> tuple[str, dict[str, dict[str, float]]]:
    """The unit, and median and quartiles by candidate; all are called in turn, to share the clock and the heat."""
    if work.small:
        return "us", _host(work.calls, device, seconds)
    count = rounds(work.calls, device, seconds)
    return "ms", (_device if device == "cuda" else _wall)(work.calls, count)


def _device(calls: Mapping[str, Callable[[], object]], count: int) -> dict[str, dict[str, float]]:
    """Milliseconds between two events around a call, each with a cold L2.

    The cache is filled by reading: what a write left in it would be written back in the time of the call.
    """
    flush = torch.zeros(FLUSH // 4, device="cuda")
    pairs: dict[str, list[tuple[Any, Any]]] = {name: [] for name in calls}
    for _ in range(count):
        for name, call in calls.items():
            torch.cuda._sleep(AHEAD)  # noqa: SLF001 - torch's own tests wait with it
            flush.sum()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            call()
            end.record()
            pairs[name].append((start, end))
        # Else the host runs ahead of the device without an end, and what it makes is not freed.
        torch.cuda.synchronize()
    return {name: spread([start.elapsed_time(end) for start, end in both]) for name, both in pairs.items()}


def _wall(calls: Mapping[str, Callable[[], object]], count: int) -> dict[str, dict[str, float]]:
    """Milliseconds of a call on the CPU."""
    measured: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(count):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            measured[name].append((time.perf_counter() - start) * 1e3)
    return {name: spread(values) for name, values in measured.items()}


def _host(calls: Mapping[str, Callable[[], object]], device: str, seconds: float) -> dict[str, dict[str, float]]:
    """Microseconds by the wall clock of one call, as means over batches: what the host spends on it."""

    def batch(call: Callable[[], object]) -> float:
        start = time.perf_counter()
        for _ in range(BATCH):
            call()
        synchronize(device)
        return (time.perf_counter() - start) / BATCH

    batches = {name: (lambda call=call: batch(call)) for name, call in calls.items()}
    count = rounds(batches, device, seconds)
    measured: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(count):
        for name, call in batches.items():
            synchronize(device)
            measured[name].append(call() * 1e6)
    return {name: spread(values) for name, values in measured.items()}


def poison(shape: Iterable[int], dtype: torch.dtype, device: str) -> None:
    """Leave NaN in the memory that the allocator gives next to a result of that size; an integer's bytes are -1."""
    if device == "cuda":
        torch.cuda.empty_cache()  # or it has other memory of that size
    made = torch.empty(tuple(shape), dtype=dtype, device=device)
    made.fill_(float("nan") if dtype.is_floating_point else -1)
    synchronize(device)
    del made


class Held:
    """The worst of many comparisons with float64: 1 is what `rtol` and `atol` allow."""

    def __init__(self, rtol: float, atol: float) -> None:
        self.rtol, self.atol = rtol, atol
        self.worst, self.elements = 0.0, 0

    def add(self, what: str, got: Tensor, want: Tensor) -> None:
        """Raises Wrong that says what is beyond the tolerance, and where."""
        if got.shape != want.shape:
            raise Wrong(f"{what}: the shape is {list(got.shape)} and not {list(want.shape)}")
        if not got.numel():
            return
        difference = (got.double() - want).abs_()
        ratio = difference.div_(want.abs().mul_(self.rtol).add_(self.atol)).nan_to_num_(nan=float("inf"))
        worst, at = ratio.reshape(-1).max(dim=0)
        self.worst, self.elements = max(self.worst, worst.item()), self.elements + got.numel()
        if self.worst > 1:
            place = tuple(one.item() for one in torch.unravel_index(at, got.shape))
            raise Wrong(f"{what}: at {list(place)} it is {got[place].item():.9g} and not {want[place].item():.9g}")

    def told(self) -> dict[str, Any]:
        return {"worst": self.worst, "rtol": self.rtol, "atol": self.atol, "elements": self.elements}


def attempt(work: dict[str, Callable[[], object]], left_out: dict[str, str], name: str) -> None:
    """Call a candidate once; one that cannot be called here is left out, with the reason."""
    try:
        work[name]()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
    except Exception as error:  # noqa: BLE001 - whatever a compiler or another package says
        left_out[name] = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        del work[name]


def fitting(exponent: int, bytes_each: float, free: int) -> int:
    """The largest exponent, at most the one given, of whose elements so many bytes each are at most `free`."""
    while exponent > 0 and 2**exponent * bytes_each > free:
        exponent -= 1
    return exponent


def free_memory(device: str) -> int:
    """Bytes that a row may use: nine tenths of what the device has free, torch's cache included."""
    if device == "cuda":
        torch.cuda.empty_cache()
        return int(torch.cuda.mem_get_info()[0] * 0.9)
    import os

    return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES") * 0.9)
