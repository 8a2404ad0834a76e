"""The checks of `robust` by size, on a GPU: more than 2^31 elements, and memory that ends.

Both call an operator at a size of their choice, so they are for operators that compute each element by itself; of
another, such as a matrix product, the report says that they were left out.
"""

from __future__ import annotations

import fcntl
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gates_runner import GateFault, said_by_cuda, sibling

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gates_runner import Unit

values, common = sibling("gates_values"), sibling("gates_robust")
# Both products pass 2^31: of two dimensions, and of one.
LARGE = ((46_342, 46_342), (2**31 + 1024,))
ROOM = 1.3


def _grown(unit: Unit, sample: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """The arguments with every tensor replaced by one of another shape, of the sample's values over and over.

    Integers keep their dtype, for they may be indices.
    """

    def grow(one: Any) -> Any:
        made = one.new_empty(shape, dtype=dtype if values.differentiable(one) else one.dtype)
        flat, source = made.view(-1), one.reshape(-1).to(made.dtype)[: made.numel()]
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
    if len({one.shape for one in every}) != 1 or any(values.written(unit.operator)) or not every[0].numel():
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
    except (RuntimeError, ValueError, NotImplementedError, IndexError, TypeError) as error:
        if said_by_cuda(str(error)):
            raise
        return False
    return alike


def _sizes(unit: Unit) -> Iterator[tuple[Any, Any, tuple[int, ...]]]:
    """(sample, dtype, shape) of what is above 2^31 elements and fits, or a note of why not."""
    torch = unit.torch
    dtype = min(unit.dtypes, key=lambda one: one.itemsize)
    _, _, sample = common.first(unit)
    shapes = [shape for shape in LARGE if _pointwise(unit, sample, len(shape), dtype)]
    if not shapes:
        unit.leave_out("more than 2^31 elements: it is not known to be pointwise")
    for shape in shapes:
        every = values.tensors(torch, sample.args)
        wide = sum(dtype.itemsize if values.differentiable(one) else one.itemsize for one in every)
        need = int(prod(shape) * (wide + dtype.itemsize) * ROOM)
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


def out_of_memory(unit: Unit) -> None:
    """Where no memory is left it raises an error that does not cost the device, and works again once there is some.

    The stable ABI carries no exception's type before torch 2.13: there a RuntimeError stands for it.
    """
    torch = unit.torch
    error_type = getattr(torch, "OutOfMemoryError", None) or torch.cuda.OutOfMemoryError
    _, _, sample = common.first(unit)
    dtype, shape = unit.dtypes[0], (4096, 4096)
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
