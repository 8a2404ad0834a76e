"""The gates `ops` and `gradcheck`: values, schemas, fake kernels and gradients over an operator's samples."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from gates_runner import GateFault

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gates_runner import Unit

# opcheck and numeric Jacobians cost time with size, and find nothing more in a larger sample.
SMALL, TINY = 100_000, 150
STATIC = "test_aot_dispatch_static"  # has no word for a size of data's making
UTILS = ("test_schema", "test_autograd_registration", "test_faketensor", STATIC, "test_aot_dispatch_dynamic")


def tensors(torch: Any, value: Any) -> list[Any]:
    """Every tensor in an argument list or a result, in order."""
    leaves = torch.utils._pytree.tree_leaves(value)
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def differentiable(tensor: Any) -> bool:
    return bool(tensor.is_floating_point() or tensor.is_complex())


def changed(torch: Any, args: Any, change: Any) -> Any:
    """The same arguments with each tensor replaced by `change(tensor)`."""
    return torch.utils._pytree.tree_map(lambda leaf: change(leaf) if isinstance(leaf, torch.Tensor) else leaf, args)


def requiring_grad(torch: Any, args: Any) -> Any:
    """The same values, laid out alike, that require gradients where they can."""
    return changed(torch, args, lambda one: one.detach().requires_grad_() if differentiable(one) else one)


def copied(torch: Any, args: Any) -> Any:
    """The same values and strides in memory of their own."""
    return changed(torch, args, lambda one: one.clone())


def wide(one: Any, other: Any) -> tuple[Any, Any]:
    """Both in a type that holds every value of theirs; float64 does not hold every integer."""
    if not differentiable(one) and not differentiable(other):
        return one.long(), other.long()
    return (one.cdouble(), other.cdouble()) if one.is_complex() else (one.double(), other.double())


def allowed(unit: Unit, dtype: Any, result: Any) -> tuple[float, float]:
    """(rtol, atol) of one result: none of integers, else the sample's dtype's, or its own dtype's where that is wider.

    What is stated of neither has float64's.
    """
    if not differentiable(result):
        return 0.0, 0.0
    stated = getattr(unit.operator, "tolerances", unit.samples.TOLERANCES)
    every = [stated[one] for one in (dtype, result.dtype) if one in stated] or [stated[unit.torch.float64]]
    return max(rtol for rtol, _ in every), max(atol for _, atol in every)


def compare(unit: Unit, name: str, actual: Any, expected: Any, dtype: Any) -> None:
    """Hold a result against the reference's. Raises GateFault that names the sample."""
    torch = unit.torch
    got, want = tensors(torch, actual), tensors(torch, expected)
    if not want:
        raise GateFault(f"{dtype}, {name}: the reference gives no tensor to hold its result against")
    if len(got) != len(want):
        raise GateFault(f"{dtype}, {name}: {len(got)} results, and the reference gives {len(want)}")
    for one, other in zip(got, want, strict=True):
        rtol, atol = allowed(unit, dtype, one)
        both = wide(one, other.to(one.device))
        try:
            torch.testing.assert_close(*both, rtol=rtol, atol=atol, equal_nan=True, check_stride=False)
        except AssertionError as error:
            raise GateFault(f"{dtype}, {name}: {error}") from error


def called(unit: Unit, args: Any, op: Any = None) -> Any:
    """What a call of the operator, or of `op` for it, gives; where it returns no tensor, what it writes to."""
    value = (op or unit.operator.op)(*args)
    if tensors(unit.torch, value):
        return value
    return [one for one, into in zip(args, written(unit.operator), strict=False) if into]


def finite(torch: Any, value: Any) -> bool:
    return all(bool(one.isfinite().all()) for one in tensors(torch, value) if differentiable(one))


def overlapping(tensor: Any) -> bool:
    """Whether two elements share memory, as in an expanded tensor."""
    return any(size > 1 and stride == 0 for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def written(operator: Any) -> list[bool]:
    """For each argument, whether the schema says that it is written to."""
    infos = [argument.alias_info for argument in operator.op._schema.arguments]
    return [info is not None and info.is_write for info in infos]


def overloads(torch: Any, namespace: str, name: str) -> Iterator[str]:
    """The overloads of an operator; the default one is empty."""
    for full in torch._C._dispatch_get_all_op_names():
        operator, _, overload = full.partition(".")
        if operator == f"{namespace}::{name}":
            yield overload


def ops(unit: Unit) -> None:
    """Values of every sample against the reference, metadata of the fake kernel, and torch's opcheck."""
    counts, utils = {}, list(UTILS)
    own = unit.operator.op._schema.overload_name
    if others := sorted({one for one in overloads(unit.torch, unit.job["namespace"], unit.name) if one != own}):
        unit.leave_out(f"overloads that its samples do not call: {', '.join(one or 'default' for one in others)}")
    for dtype in unit.dtypes:
        counts[str(dtype)] = 0
        for name, sample in unit.drawn(dtype):
            unit.at(f"computing {dtype}, {name}")
            expected = sample.reference()
            value = called(unit, sample.args)
            compare(unit, name, value, expected, dtype)
            unit.at(f"calling the fake kernel, {dtype}, {name}")
            if fake(unit, name, sample.args, value) and STATIC in utils:
                utils.remove(STATIC)
            counts[str(dtype)] += 1
    unit.found["samples"] = counts
    if not sum(counts.values()):
        raise GateFault(f"the samples' module gives none for {unit.device}")
    unit.found["opchecks"] = sum(1 for _ in opchecks(unit, utils))
    if not unit.found["opchecks"]:
        raise GateFault(f"no sample of it is finite and of at most {SMALL} elements, as opcheck needs")


def faked(unit: Unit, args: Any) -> list[Any]:
    """What the fake kernel gives; a size of data's making is symbolic there, and every other one a number."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    with FakeTensorMode(shape_env=ShapeEnv(), static_shapes=True) as mode:
        return tensors(unit.torch, called(unit, changed(unit.torch, args, mode.from_tensor)))


def sized_by_data(every: Sequence[Any]) -> bool:
    """Whether any of the fake kernel's results has a size that data makes. The stable ABI has no tag for it."""
    return any(not isinstance(size, int) for one in every for size in one.shape)


def fake(unit: Unit, name: str, args: Any, value: Any) -> bool:
    """The fake kernel's shapes, strides, dtypes and devices against the real ones; whether data makes a size."""
    torch = unit.torch
    try:
        made = faked(unit, args)
    except Exception as error:
        text = " ".join(str(error).split())[:400]
        raise GateFault(
            f"{name}: it has no fake kernel that takes this call, so torch.compile and export do not: {text}"
        ) from error
    if len(made) != len(tensors(torch, value)):
        raise GateFault(
            f"{name}: the fake kernel gives {len(made)} results, and the real one {len(tensors(torch, value))}"
        )
    for real, other in zip(tensors(torch, value), made, strict=True):
        for what, right, wrong in (("dtype", real.dtype, other.dtype), ("device", real.device, other.device)):
            if right != wrong:
                raise GateFault(f"{name}: the fake kernel's {what} is {wrong}, and the real one's {right}")
        if real.dim() != other.dim() or any(map(_differ, real.shape, other.shape)):
            shape = tuple(other.shape)
            raise GateFault(f"{name}: the fake kernel's shape is {shape}, and the real one's {tuple(real.shape)}")
        both = zip(real.shape, real.stride(), other.stride(), strict=True)
        if real.numel() and any(size > 1 and _differ(a, b) for size, a, b in both):
            raise GateFault(
                f"{name}: the fake kernel's strides are {other.stride()}, and the real one's {real.stride()}"
            )
    return sized_by_data(made)


def _differ(real: int, other: Any) -> bool:
    return isinstance(other, int) and real != other


def opchecks(unit: Unit, utils: Sequence[str]) -> Iterator[str]:
    """Run torch.library.opcheck on each sample of one dtype, without and with gradients."""
    torch = unit.torch
    for name, sample in unit.drawn(unit.dtype):
        sized = tensors(torch, sample.args)
        # opcheck compares without regard for NaN.
        if any(one.numel() > SMALL for one in sized) or not finite(torch, sample.reference()):
            continue
        calls = [sample.args]
        wanted = getattr(unit.operator, "differentiable", True) and any(map(differentiable, sized))
        if wanted and not any(map(overlapping, sized)) and not any(written(unit.operator)):
            calls.append(requiring_grad(torch, sample.args))
        for args in calls:
            for util in utils:
                unit.at(f"opcheck {util}, {name}")
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    torch.library.opcheck(unit.operator.op, args, test_utils=util)
            yield name


def gradcheck(unit: Unit) -> None:
    """Numeric against analytic first and second derivatives, in double precision, of every small smooth sample."""
    torch = unit.torch
    wanted = [one for one in unit.dtypes if one in (torch.float64, torch.complex128)]
    if torch.float64 not in wanted:
        raise GateFault("its samples have no float64, in which alone a gradient can be checked numerically")
    counts = {"gradcheck": 0, "gradgradcheck": 0}
    tolerance = float(getattr(unit.operator, "nondet_tol", 0.0))
    for dtype in wanted:
        for name, sample in unit.drawn(dtype):
            if not _smooth(torch, sample):
                continue
            args = requiring_grad(torch, sample.args)
            unit.at(f"gradcheck of {dtype}, {name}")
            _first(unit, args, name, tolerance)
            counts["gradcheck"] += 1
            if sum(one.numel() for one in tensors(torch, args) if one.requires_grad) <= TINY:
                unit.at(f"gradgradcheck of {dtype}, {name}")
                torch.autograd.gradgradcheck(unit.operator.op, args, nondet_tol=tolerance)
                counts["gradgradcheck"] += 1
    unit.found.update(counts)
    if not counts["gradgradcheck"]:
        unit.leave_out(f"gradgradcheck: no sample to check gradients with has at most {TINY} elements")
    if not counts["gradcheck"]:
        raise GateFault(f"it has no small finite sample in float64 on {unit.device} to check gradients with")


def _smooth(torch: Any, sample: Any) -> bool:
    """What the sample itself says; where it says nothing, whether it is small, finite and without overlap."""
    stated = getattr(sample, "gradcheck", None)
    if stated is not None:
        return bool(stated)
    every = [one for one in tensors(torch, sample.args) if differentiable(one)]
    small = bool(every) and all(one.numel() <= TINY for one in every)
    return (
        small and not any(map(overlapping, every)) and finite(torch, sample.args) and finite(torch, sample.reference())
    )


def _first(unit: Unit, args: Any, name: str, tolerance: float) -> None:
    """Gradcheck, and of a failure whether an input got no gradient at all."""
    torch = unit.torch
    inputs = [one for one in tensors(torch, args) if one.requires_grad]
    outputs = [one for one in tensors(torch, unit.operator.op(*args)) if differentiable(one)]
    attached = [one for one in outputs if one.requires_grad]
    if not attached:
        raise GateFault(f"{name}: its result is cut off from its inputs: no autograd formula is registered")
    got = torch.autograd.grad(attached, inputs, [torch.ones_like(one) for one in attached], allow_unused=True)
    absent = [number for number, one in enumerate(got) if one is None]
    try:
        torch.autograd.gradcheck(unit.operator.op, args, nondet_tol=tolerance, fast_mode=False)
    except RuntimeError as error:
        if absent and "not reentrant" not in str(error):
            which = ", ".join(map(str, absent))
            raise GateFault(
                f"{name}: differentiable input {which} gets no gradient, though the result changes with it"
            ) from error
        raise
