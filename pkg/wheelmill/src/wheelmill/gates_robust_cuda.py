"""The checks of `robust` that need a GPU: streams, devices, graphs, memory that comes back, and those by size."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

from gates_runner import GateFault, sibling

if TYPE_CHECKING:
    from collections.abc import Callable

    from gates_runner import Unit

values, common, size = sibling("gates_values"), sibling("gates_robust"), sibling("gates_robust_size")
# About 50 ms on a card of 1 to 2 GHz: long beside what the host takes to launch what follows.
DELAY = 80_000_000
POISON = 77


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


def _sized_by_data(unit: Unit, sample: Any) -> bool:
    """Whether its fake kernel says so; where it has none, `ops` tells."""
    try:
        return bool(values.sized_by_data(values.faked(unit, sample.args)))
    except Exception:
        return False


def graph(unit: Unit) -> None:
    """Captured into a CUDA graph and replayed with other values in its inputs."""
    torch = unit.torch
    if not getattr(unit.operator, "capturable", True):
        unit.leave_out("a CUDA graph: it is stated that none can hold it")
        return
    dtype, name, sample = common.first(unit)
    if torch.Tag.dynamic_output_shape in unit.operator.op.tags or _sized_by_data(unit, sample):
        unit.leave_out("a CUDA graph: the size of its result is of data's making")
        return
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


def returned(unit: Unit) -> None:
    """What calls take of torch's memory comes back once their results are gone."""
    torch = unit.torch

    def calls() -> int:
        for _, sample in unit.drawn(unit.dtypes[0]):
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
    "more than 2^31 elements": size.large,
    "memory that comes back": returned,
    "out of memory": size.out_of_memory,
    "a CUDA graph": graph,  # last, for a capture that fails may leave its mark
}
