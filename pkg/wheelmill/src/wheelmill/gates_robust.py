"""The gate `robust`: an operator where its inputs lie oddly, where others use the device, and where memory ends."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from gates_runner import LOST, GateFault, said_by_cuda, sibling

if TYPE_CHECKING:
    from collections.abc import Callable

    from gates_runner import Unit

values = sibling("gates_values")
ROUNDS = 20


def first(unit: Unit) -> tuple[Any, str, Any]:
    """(dtype, name, sample) of the first sample that holds elements, in float32 where there is one."""
    for name, sample in unit.drawn(unit.dtype):
        if any(one.numel() for one in values.tensors(unit.torch, sample.args)):
            return unit.dtype, name, sample
    raise GateFault("no sample of it holds an element")


def first_values(unit: Unit) -> None:
    """The first sample's values are right."""
    dtype, name, sample = first(unit)
    expected = sample.reference()
    values.compare(unit, name, values.called(unit, values.copied(unit.torch, sample.args)), expected, dtype)


def robust(unit: Unit) -> None:
    """Every check of the device, one after another: a failed one is told with the others, a lost device ends it."""
    checks: dict[str, Callable[[Unit], None]] = {
        "aliasing and mutation": untouched,
        "non-contiguous inputs": strided,
        "misaligned inputs": misaligned,
        "empty inputs": empty,
        "two threads": threads,
        "a spawned process": spawned,
        "torch.compile": compiled,
    }
    if unit.device == "cuda":
        checks |= sibling("gates_robust_cuda").CHECKS
    failed: list[str] = []
    for name, check in checks.items():
        unit.at(name)
        try:
            check(unit)
            if unit.device == "cuda":
                unit.torch.cuda.synchronize()
        except Exception as error:
            text = " ".join(str(error).split())
            if any(sign in text for sign in LOST):
                raise RuntimeError(f"{'; '.join([*failed, name])}: {text}") from error
            kind = "" if isinstance(error, GateFault) else f"{type(error).__name__}: "
            failed.append(f"{name}: {kind}{text[:500]}")
    unit.found["checks"] = list(checks)
    if failed:
        unit.at("the checks")
        raise GateFault("; ".join(failed))


def untouched(unit: Unit) -> None:
    """No result shares memory with an input and no input is written to, but where the schema says so."""
    torch, schema = unit.torch, unit.operator.op._schema
    if any(one.alias_info is not None for one in schema.returns):
        unit.leave_out("aliasing: its schema states what its result shares")
    written = values.written(unit.operator)
    for dtype in unit.dtypes:
        for name, sample in unit.drawn(dtype):
            args, kept = sample.args, values.copied(torch, sample.args)
            result = unit.operator.op(*args)
            for place, (now, before) in enumerate(zip(args, kept, strict=True)):
                if place < len(written) and written[place]:
                    continue
                both = zip(values.tensors(torch, now), values.tensors(torch, before), strict=True)
                if not all(torch.equal(_bits(torch, a), _bits(torch, b)) for a, b in both):
                    raise GateFault(f"{dtype}, {name}: argument {place} was written to, and the schema does not say so")
            if all(one.alias_info is None for one in schema.returns):
                _alone(torch, result, args, f"{dtype}, {name}")


def _bits(torch: Any, tensor: Any) -> Any:
    """The bytes of the elements, so that NaN equals itself."""
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def _alone(torch: Any, result: Any, args: Any, name: str) -> None:
    inputs = {one.untyped_storage().data_ptr() for one in values.tensors(torch, args) if one.numel()}
    for one in values.tensors(torch, result):
        if one.numel() and one.untyped_storage().data_ptr() in inputs:
            raise GateFault(f"{name}: the result shares an input's memory, and the schema does not say so")


def in_order(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A change of layout that keeps the order of the strides.

    A result may be stated by it: of one, the layout; of a mask, in which order its bits are.
    """

    def changed(tensor: Any) -> Any:
        steps = tensor.stride()
        if 0 in steps:
            return change(tensor)
        order = sorted(range(tensor.dim()), key=lambda at: -steps[at])
        return change(tensor.permute(order)).permute([order.index(at) for at in range(tensor.dim())])

    return changed


def _spread(tensor: Any) -> Any:
    """The same values with a gap after each element, filled with what must not be read."""
    wide = tensor.new_full((*tensor.shape, 2), 77)
    wide[..., 0] = tensor
    return wide[..., 0]


def _shifted(tensor: Any) -> Any:
    """The same values, contiguous, one element after where an allocation begins."""
    flat = tensor.new_zeros(tensor.numel() + 1)
    view = flat[1:].view(tensor.shape)
    view.copy_(tensor)
    return view


def _refused(unit: Unit, what: str, error: Exception) -> None:
    """Note what the operator refuses in its own words; those of the first sample stand for all."""
    begins = f"{what}: refused with "
    if not any(one.startswith(begins) for one in unit.left_out):
        unit.leave_out(f"{begins}{' '.join(str(error).split())[:120]!r}")


def strided(unit: Unit) -> None:
    _laid_out(unit, in_order(_spread), "non-contiguous inputs")


def misaligned(unit: Unit) -> None:
    _laid_out(unit, in_order(_shifted), "misaligned inputs")


def _laid_out(unit: Unit, change: Callable[[Any], Any], what: str) -> None:
    """Samples give the reference's values in another layout, or are refused in the operator's own words."""
    torch = unit.torch
    for dtype in unit.dtypes:
        for name, sample in unit.drawn(dtype):
            expected = sample.reference()
            try:
                result = values.called(unit, values.changed(torch, sample.args, change))
                if unit.device == "cuda":
                    torch.cuda.synchronize()
            except (RuntimeError, ValueError) as error:
                if said_by_cuda(str(error)) or "Assertion" in str(error):
                    raise
                _refused(unit, what, error)
                continue
            values.compare(unit, name, result, expected, dtype)


def empty(unit: Unit) -> None:
    """Inputs without elements give a result or are refused; no kernel is launched on a grid of nothing."""
    torch, tried = unit.torch, 0
    for dtype in unit.dtypes:
        for name, sample in unit.drawn(dtype):
            every = values.tensors(torch, sample.args)
            if not every or any(not one.dim() for one in every):
                continue
            tried += 1
            try:
                unit.operator.op(*values.changed(torch, sample.args, lambda one: one.new_empty((0, *one.shape[1:]))))
                if unit.device == "cuda":
                    torch.cuda.synchronize()
            except (RuntimeError, ValueError, IndexError) as error:
                if said_by_cuda(str(error)):
                    raise GateFault(f"{dtype}, {name}: {' '.join(str(error).split())[:300]}") from error
                _refused(unit, "empty inputs", error)
    if not tried:
        unit.leave_out("empty inputs: no sample has tensors of one dimension or more alone")


def threads(unit: Unit) -> None:
    """Two threads at once, each on a stream of its own where there are streams, get the same values as one."""
    torch = unit.torch
    dtype, *_ = first(unit)
    every = [one for _, one in unit.drawn(dtype) if any(part.numel() for part in values.tensors(torch, one.args))]
    faults: list[str] = []

    def work(sample: Any, expected: Any) -> None:
        try:
            stream = torch.cuda.Stream() if unit.device == "cuda" else None
            with torch.cuda.stream(stream):
                for _ in range(ROUNDS):
                    got = values.called(unit, values.copied(torch, sample.args))
                    if stream is not None:
                        stream.synchronize()
                    for one, other in zip(values.tensors(torch, got), values.tensors(torch, expected), strict=True):
                        torch.testing.assert_close(one, other, equal_nan=True)
        except Exception as error:
            faults.append(f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")

    # Two different calls, so that what one leaves for the other shows.
    chosen = [(one, values.called(unit, values.copied(torch, one.args))) for one in (every[0], every[-1])]
    if unit.device == "cuda":
        torch.cuda.synchronize()
    both = [threading.Thread(target=work, args=pair) for pair in chosen]
    for one in both:
        one.start()
    for one in both:
        one.join()
    if faults:
        raise GateFault(faults[0])


def spawned(unit: Unit) -> None:
    """A process that this one spawned, after it has used the device, computes the same."""
    import multiprocessing
    import sys

    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    target = sys.modules["__main__"].spawned
    process = context.Process(target=target, args=(unit.job, unit.name, unit.device, answer))
    process.start()
    process.join(unit.job["timeouts"]["unit"] / 2)
    if process.is_alive():
        process.kill()
        raise GateFault("it hung there")
    if process.exitcode:
        raise GateFault(f"the process ended with status {process.exitcode}")
    if (said := answer.get(timeout=10)) is not None:
        raise GateFault(said)


def _called(op: Any) -> Callable[..., Any]:
    """A function of a user's, of which the operator is a part."""

    def call(*args: Any) -> Any:
        return op(*args)

    return call


def compiled(unit: Unit) -> None:
    """torch.compile takes it without a graph break, and gives its values; of gradients under it, opcheck tells."""
    import shutil
    import sysconfig
    from pathlib import Path

    torch = unit.torch
    dtype, name, sample = first(unit)
    backends = ["aot_eager"]
    if shutil.which("g++") and Path(sysconfig.get_path("include"), "Python.h").exists():
        backends.append("inductor")
    else:
        unit.leave_out("torch.compile with inductor: it needs g++ and Python.h")
    expected = sample.reference()
    for backend in backends:
        for dynamic in (False, True):
            torch._dynamo.reset()
            call = torch.compile(_called(unit.operator.op), fullgraph=True, backend=backend, dynamic=dynamic)
            # Or a result whose size is of data's making breaks the graph.
            with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
                result = values.called(unit, values.copied(torch, sample.args), call)
            values.compare(unit, f"{backend}, {name}", result, expected, dtype)
