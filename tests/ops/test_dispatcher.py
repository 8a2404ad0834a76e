"""Schemas, fake kernels, autograd registration, torch.compile and torch.func."""

import shutil
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

import fusedops
from fusedops.testing import OPERATORS, Operator, error_samples, samples
from fusedops.testing.pointwise import POINTWISE

EVERY_CHECK = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")

operators = pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)


@operators
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # opcheck itself reads it
def test_opcheck(operator: Operator, device: str) -> None:
    seen: set[bool] = set()
    for sample in samples(operator, device, torch.float32):
        # opcheck compares without regard for NaN; `many` only costs time.
        expected = sample.reference()
        results = expected if isinstance(expected, tuple) else (expected,)
        if sample.name == "many" or not all(one.isfinite().all() for one in results):
            continue
        # What AOTAutograd makes of a call depends on the operator, and takes seconds.
        checks = EVERY_CHECK if sample.gradcheck not in seen else EVERY_CHECK[:-1]
        seen.add(sample.gradcheck)
        for call in (sample, sample.require_grad()) if operator.differentiable else (sample,):
            torch.library.opcheck(operator.op, call.args, test_utils=checks)


@operators
def test_fake_kernels_refuse_what_kernels_refuse(operator: Operator) -> None:
    for sample in error_samples(operator, "meta"):
        if sample.name != "integers":
            with pytest.raises(RuntimeError, match=r"^fusedops::\w+: .* must "):
                operator.op(*sample.args)


CALLS: dict[str, Callable[[Tensor], Tensor]] = {
    "clip_add": lambda x: fusedops.clip_add(x, -0.5, 0.5, 0.1),
    "scale_clamp_add": lambda x: fusedops.scale_clamp_add(x, 1.5, -0.5, 0.5, 0.1),
    "affine": lambda x: fusedops.affine(x, 1.5, 0.1),
    "vector_add": lambda x: fusedops.vector_add(x, x.sin()),
    "copy_async": fusedops.copy_async,
    "chain": lambda x: fusedops.clip_add(fusedops.affine(x.cos(), 2.0, -0.3), -0.5, 0.5, 0.1).exp(),
}
calls = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


def value_and_gradient(call: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
    x = x.detach().requires_grad_()
    y = call(x)
    return y.detach(), torch.autograd.grad(y.square().sum(), x)[0]


def assert_compiles(call: Callable[[Tensor], Tensor], x: Tensor, backend: str, *, dynamic: bool) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(call, fullgraph=True, backend=backend, dynamic=dynamic)
    value, gradient = value_and_gradient(compiled, x)
    expected_value, expected_gradient = value_and_gradient(call, x)
    torch.testing.assert_close(value, expected_value)
    torch.testing.assert_close(gradient, expected_gradient, check_stride=False)
    assert value.stride() == expected_value.stride()


@calls
@pytest.mark.parametrize("dynamic", [False, True])
def test_compile(call: Callable[[Tensor], Tensor], dynamic: bool, device: str) -> None:
    assert_compiles(call, torch.randn(5, 7, device=device).t(), "aot_eager", dynamic=dynamic)


@pytest.mark.skipif(
    not (shutil.which("g++") and Path(sysconfig.get_path("include"), "Python.h").exists()),
    reason="inductor compiles with g++ and Python.h",
)
# Inductor's own imports use what torch has since deprecated.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_compile_with_inductor(device: str) -> None:
    from torch._inductor import config

    # Else it tries each instruction set in a process of its own that imports torch.
    with config.patch({"cpp.vec_isa_ok": False}):
        assert_compiles(CALLS["chain"], torch.randn(5, 7, device=device), "inductor", dynamic=False)


@calls
def test_vmap(call: Callable[[Tensor], Tensor], device: str) -> None:
    x = torch.randn(4, 5, device=device)
    actual = value_and_gradient(torch.vmap(call, in_dims=1, out_dims=1), x)
    torch.testing.assert_close(actual, value_and_gradient(call, x))


@calls
def test_func_grad(call: Callable[[Tensor], Tensor], device: str) -> None:
    x = torch.randn(4, 5, device=device, dtype=torch.float64)

    def loss(x: Tensor) -> Tensor:
        return call(x).square().sum()

    _, expected = value_and_gradient(call, x)
    torch.testing.assert_close(torch.func.grad(loss)(x), expected)
    torch.testing.assert_close(torch.vmap(torch.func.grad(loss))(x), expected)
    once = torch.func.grad(lambda x: torch.func.grad(loss)(x).sin().sum())(x)
    x.requires_grad_()
    (first,) = torch.autograd.grad(loss(x), x, create_graph=True)
    torch.testing.assert_close(once, torch.autograd.grad(first.sin().sum(), x)[0])


@calls
def test_export(call: Callable[[Tensor], Tensor], device: str) -> None:
    class Module(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return call(x)

    x = torch.randn(5, 7, device=device)
    batch = torch.export.Dim("batch", min=2)
    exported = torch.export.export(Module(), (x,), dynamic_shapes=({0: batch},))
    for rows in (5, 9):
        x = torch.randn(rows, 7, device=device)
        torch.testing.assert_close(exported.module()(x), call(x))


def test_vmap_over_one_of_two(device: str) -> None:
    x, y = torch.randn(4, 5, device=device), torch.randn(5, device=device)
    result = torch.vmap(fusedops.vector_add, in_dims=(0, None))(x, y)
    torch.testing.assert_close(result, x + y)


@pytest.mark.parametrize("name", POINTWISE)
def test_autocast_leaves_dtypes_alone(name: str, device: str) -> None:
    operator = OPERATORS[name]
    sample = next(iter(samples(operator, device, torch.float32)))
    with torch.autocast(device, torch.bfloat16):
        assert operator.op(*sample.args).dtype == torch.float32
