"""The checks of `robust` that need a GPU: streams, devices, more than 2^31 elements, graphs, and memory that ends."""

from __future__ import annotations

import fcntl
import gc
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gates_runner import GateFault, sibling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gates_runner import Unit

values, common = sibling("gates_values"), sibling("gates_robust")
# About 50 ms on a card of 1 to 2 GHz: long beside what the host takes to launch what follows.
DELAY = 80_000_000
POISON = 77
# Both products pass 2^31: of two dimensions, and of one.
LARGE = ((46_342, 46_342), (2**31 + 1024,))
ROOM = 1.3


def _poisoned(unit: Unit, args: Any) -> Any:
    """Arguments laid out alike whose values are not there yet; an integer may be an index, so it stays one."""
    return values.changed(unit.torch, args, lambda one: one.clone().fill_(POISON if values.differentiable(one) else 0))


def _delayed(unit: Unit, late: Any, args: Any) -> None:
    """Fill `late` behind a producer that takes its time, on the current stream of the current device."""
    torch = unit.torch
    torch.cuda._sleep(DELAY)
    for one, other in zip(values.tensors(torch, late), values.tensors(torch, args), strict=True):
        one.copy_(other)


def _tells(unit: Unit, args: Any, expected: Any, dtype: Any, what: str) -> None:
    """Note where other values give the same result, so that values which come too late would not show.

    The call also loads the kernels and finds the memory that the next one uses: either may wait for the device, and so
    for the delayed producer. Halves stay where most operators take them.
    """
    torch, floats = unit.torch, [one for one in values.tensors(unit.torch, args) if values.differentiable(one)]
    halved = values.changed(torch, args, lambda one: one.clone().mul_(0.5 if values.differentiable(one) else 1))
    value = values.called(unit, halved)
    torch.cuda.synchronize()
    try:
        values.compare(unit, what, value, expected, dtype)
    except GateFault:
        return
    if floats:
        unit.leave_out(f"{what}: its result is the same for other values, so that values which come late do not show")


def side_stream(unit: Unit) -> None:
    """On a stream of its own behind a delayed producer: a kernel on another stream reads what is not there yet."""
    torch = unit.torch
    dtype, name, sample = common.first(unit)
    expected = sample.reference()
    args = values.copied(torch, sample.args)
    late, stream = _poisoned(unit, args), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        _tells(unit, args, expected, dtype, "a side stream")
        _delayed(unit, late, args)
        result = values.called(unit, late)
    stream.synchronize()
    try:
        values.compare(unit, name, result, expected, dtype)
    except GateFault as error:
        raise GateFault(f"it does not run on the current stream: {error}") from error


def _second(torch: Any) -> str | None:
    """Why the second GPU is of no use here, if so."""
    if torch.cuda.device_count() < 2:  # noqa: PLR2004
        return "this machine has one GPU"
    if torch.cuda.get_device_capability(1) != torch.cuda.get_device_capability(0):
        return "the second GPU is of another kind"
    try:
        torch.ones(1, device="cuda:1").cpu()
    except RuntimeError as error:
        return f"the second GPU cannot be used: {' '.join(str(error).split())[:120]}"
    return None


def second_device(unit: Unit) -> None:
    """Inputs on another device than the current one, behind a delayed producer there."""
    torch = unit.torch
    if (why := _second(torch)) is not None:
        unit.leave_out(f"a device that is not the current one: {why}")
        return
    dtype, name, sample = common.first(unit)
    expected = sample.reference()
    args = values.changed(torch, values.copied(torch, sample.args), lambda one: one.to("cuda:1"))
    late = _poisoned(unit, args)
    torch.cuda.synchronize(1)
    with torch.cuda.device(1):
        _tells(unit, args, expected, dtype, "a device that is not the current one")
        _delayed(unit, late, args)
    result = values.called(unit, late)
    torch.cuda.synchronize(1)
    if any(one.device.index != 1 for one in values.tensors(torch, result)):
        raise GateFault(f"{name}: inputs on cuda:1 give a result elsewhere")
    values.compare(unit, f"{name} on cuda:1", result, expected, dtype)


def _grown(unit: Unit, sample: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """The arguments with every tensor replaced by one of another shape, of the sample's values over and over."""

    def grow(one: Any) -> Any:
        made = one.new_empty(shape, dtype=dtype)
        flat, source = made.view(-1), one.reshape(-1).to(dtype)[: made.numel()]
        flat[: len(source)].copy_(source)
        filled = len(source)
        while filled < flat.numel():
            more = min(filled, flat.numel() - filled)
            flat[filled : filled + more].copy_(flat[:more])
            filled += more
        return made

    return values.changed(unit.torch, sample.args, grow)


def _pointwise(unit: Unit, sample: Any, dims: int, dtype: Any) -> bool:
    """Whether it takes tensors of any one shape and computes each element of them by itself.

    Then it can be called at any size, and held against itself on a slice.
    """
    torch = unit.torch
    every = values.tensors(torch, sample.args)
    if len({one.shape for one in every}) != 1 or any(values.written(unit.operator)):
        return False
    shape, piece = ((40, 40), (10, 10)) if dims > 1 else ((1600,), (100,))
    try:
        args = _grown(unit, sample, shape, dtype)
        results = values.tensors(torch, unit.operator.op(*args))
        alike = bool(results) and all(one.shape == shape for one in results)
        for start in (0, 577, 1500) if alike else ():
            part = slice(start, start + prod(piece))
            pieces = values.changed(torch, args, lambda one, part=part: one.view(-1)[part].view(piece).clone())
            wanted = values.tensors(torch, unit.operator.op(*pieces))
            alike = alike and all(
                torch.equal(one.reshape(-1)[part].nan_to_num(), other.reshape(-1).nan_to_num())
                for one, other in zip(results, wanted, strict=True)
            )
        torch.cuda.synchronize()
    except (RuntimeError, ValueError, NotImplementedError, IndexError) as error:
        if "CUDA error" in str(error):
            raise
        return False
    return alike


def _sizes(unit: Unit) -> Iterator[tuple[Any, Any, tuple[int, ...]]]:
    """(sample, dtype, shape) of what is above 2^31 elements and fits, or a note of why not."""
    torch = unit.torch
    dtype = min(unit.samples.DTYPES, key=lambda one: one.itemsize)
    _, _, sample = common.first(unit)
    shapes = [shape for shape in LARGE if _pointwise(unit, sample, len(shape), dtype)]
    if not shapes:
        unit.leave_out("more than 2^31 elements: it is not known to be pointwise")
    for shape in shapes:
        count = len(values.tensors(torch, sample.args)) + 1
        need = int(prod(shape) * dtype.itemsize * count * ROOM)
        torch.cuda.empty_cache()
        free, _ = torch.cuda.mem_get_info()
        if free < need:
            unit.leave_out(f"more than 2^31 elements: {need / 1e9:.0f} GB are needed, and {free / 1e9:.0f} GB are free")
            continue
        yield sample, dtype, shape


def large(unit: Unit) -> None:
    """Above 2^31 elements, the values at the start, around 2^31 and at the end are those of the slices alone."""
    # One process at a time: others would take the memory that this one found free.
    with (Path.cwd().parents[1] / "memory.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _large(unit)
        unit.torch.cuda.empty_cache()


def _large(unit: Unit) -> None:
    torch = unit.torch
    for sample, dtype, shape in _sizes(unit):
        args = _grown(unit, sample, shape, dtype)
        results = values.tensors(torch, unit.operator.op(*args))
        torch.cuda.synchronize()
        total = prod(shape)
        for start in (0, 2**30 - 512, 2**31 - 512, total - 1024):
            part = slice(start, start + 1024)
            pieces = values.changed(torch, args, lambda one, part=part: one.view(-1)[part].view(32, 32).clone())
            if len(shape) == 1:
                pieces = values.changed(torch, pieces, lambda one: one.view(-1))
            wanted = values.tensors(torch, unit.operator.op(*pieces))
            for got, want in zip(results, wanted, strict=True):
                flat = got.as_strided((total,), (1,))[part]
                if not torch.equal(flat.nan_to_num(), want.reshape(-1).nan_to_num()):
                    raise GateFault(f"of {' x '.join(map(str, shape))} elements, those from {start} on are wrong")
        del args, results


def graph(unit: Unit) -> None:
    """Captured into a CUDA graph and replayed with other values in its inputs."""
    torch = unit.torch
    if torch.Tag.dynamic_output_shape in unit.operator.op.tags:
        unit.leave_out("a CUDA graph: its tags say that the size of its result is of data's making")
        return
    dtype, name, sample = common.first(unit)
    expected = sample.reference()
    args = values.copied(torch, sample.args)
    live = values.changed(torch, args, lambda one: one.clone().zero_())
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            unit.operator.op(*live)
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        result = values.called(unit, live)
    for one, other in zip(values.tensors(torch, live), values.tensors(torch, args), strict=True):
        one.copy_(other)
    captured.replay()
    torch.cuda.synchronize()
    values.compare(unit, f"{name}, replayed", result, expected, dtype)


def out_of_memory(unit: Unit) -> None:
    """Where no memory is left it raises an error that does not cost the device, and works again once there is some.

    The stable ABI carries no exception's type before torch 2.13: there a RuntimeError stands for it.
    """
    torch = unit.torch
    error_type = getattr(torch, "OutOfMemoryError", None) or torch.cuda.OutOfMemoryError
    _, _, sample = common.first(unit)
    dtype, shape = unit.samples.DTYPES[0], (4096, 4096)
    if not _pointwise(unit, sample, len(shape), dtype):
        unit.leave_out("out of memory: it is not known to be pointwise")
        return
    args = _grown(unit, sample, shape, dtype)
    unit.operator.op(*args)  # with memory it is not refused, so that without, memory is why
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(torch.cuda.memory_reserved() / total)
    kept: list[Any] = []
    try:
        # What the allocator keeps may hold one result more; a hundred it does not.
        kept.extend(unit.operator.op(*args) for _ in range(100))
    except error_type as error:
        unit.found["out of memory"] = type(error).__name__
    except RuntimeError as error:
        if "CUDA error" in str(error):
            raise
        unit.found["out of memory"] = type(error).__name__
    else:
        raise GateFault(f"{len(kept)} results were made where there was no memory for one")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
        kept.clear()
        del args
        torch.cuda.empty_cache()
    common.first_values(unit)


def returned(unit: Unit) -> None:
    """What calls take of torch's memory comes back once their results are gone."""
    torch = unit.torch

    def calls() -> int:
        for _, sample in unit.drawn(unit.samples.DTYPES[0]):
            unit.operator.op(*sample.args)
        gc.collect()
        torch.cuda.synchronize()
        held: int = torch.cuda.memory_allocated()
        return held

    calls()
    before, after = calls(), calls()
    if after > before:
        raise GateFault(f"{after - before} bytes of torch's memory do not come back after its calls")


CHECKS: dict[str, Callable[[Unit], None]] = {
    "a side stream": side_stream,
    "a device that is not the current one": second_device,
    "more than 2^31 elements": large,
    "memory that comes back": returned,
    "out of memory": out_of_memory,
    "a CUDA graph": graph,  # last, for a capture that fails may leave its mark
}
