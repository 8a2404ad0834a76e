"""Gradients of the pointwise operators, and the clamps' at their edges against torch's own formulas."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import fusedops
from fusedops import reference
from fusedops.testing import DTYPES, OPERATORS, TOLERANCES, Sample, samples
from fusedops.testing.pointwise import POINTWISE, Pointwise

forward_operators = pytest.mark.parametrize(
    "operator",
    [made for made in POINTWISE.values() if "backward" not in made.name],
    ids=lambda made: made.name,
)


def expected_gradients(sample: Sample, seed: Tensor) -> list[Tensor]:
    """By the reference of the backward operator; by torch's autograd where there is none."""
    operator = POINTWISE[sample.operator.name]
    scalars = sample.args[operator.tensors :]
    tensors = [tensor.detach().double() for tensor in sample.args[: operator.tensors]]
    if backward := POINTWISE.get(f"{operator.name}_backward"):
        bounds = scalars[:-1]  # the bias has no part in it
        return [backward.reference(seed.double(), *tensors, *bounds)]
    for tensor in tensors:
        tensor.requires_grad_()
    value = operator.reference(*tensors, *scalars)
    return list(torch.autograd.grad(value, tensors, seed.double()))


@forward_operators
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_gradients_of_every_sample(operator: Pointwise, dtype: torch.dtype, device: str) -> None:
    rtol, atol = TOLERANCES[dtype]
    for sample in samples(OPERATORS[operator.name], device, dtype):
        call = sample.require_grad()
        tensors = call.args[: operator.tensors]
        seed = torch.randn(tensors[0].shape).to(device, dtype)
        actual = torch.autograd.grad(operator.op(*call.args), tensors, seed)
        expected = expected_gradients(sample, seed)
        for got, want, tensor in zip(actual, expected, tensors, strict=True):
            assert got.dtype == dtype, sample.name
            assert got.shape == tensor.shape
            torch.testing.assert_close(got.double(), want, rtol=rtol, atol=atol, equal_nan=True, check_stride=False)


VALUES = [math.nan, math.inf, -math.inf, -0.5, 0.75, 0.0, 2.0, -2.0, 0.5, -0.25, 0.25]


@pytest.mark.parametrize("bounds", [(-0.5, 0.75), (0.5, -0.25), (math.nan, 1.0), (-1.0, math.nan)])
@pytest.mark.parametrize("grad", [1.0, math.inf, math.nan])
@pytest.mark.parametrize("scale", [None, 1.0, -2.0, math.inf])
def test_clamp_gradient_is_torchs_off_the_bounds(
    bounds: tuple[float, float], grad: float, scale: float | None, device: str
) -> None:
    def gradient(clip: Callable[..., Tensor], scale_clamp: Callable[..., Tensor]) -> Tensor:
        x = torch.tensor(VALUES, dtype=torch.float64, device=device, requires_grad=True)
        y = clip(x, *bounds, 0.25) if scale is None else scale_clamp(x, scale, *bounds, 0.25)
        return torch.autograd.grad(y, x, torch.full_like(y, grad))[0]

    scaled = [value * (scale or 1.0) for value in VALUES]
    off = torch.tensor([value not in bounds for value in scaled], device=device)
    actual = gradient(fusedops.clip_add, fusedops.scale_clamp_add)[off]
    expected = gradient(reference.clip_add, reference.scale_clamp_add)[off]
    torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)


def test_clamp_gradient_includes_the_bounds(device: str) -> None:
    x = torch.tensor([-0.5, 0.75], device=device, requires_grad=True)
    (gradient,) = torch.autograd.grad(fusedops.clip_add(x, -0.5, 0.75, 0.25).sum(), x)
    assert gradient.tolist() == [1.0, 1.0]
    y = fusedops.scale_clamp_add(x, -2.0, -1.5, 1.0, 0.25)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    assert gradient.tolist() == [-2.0, -2.0]


@forward_operators
def test_third_derivative_exists(operator: Pointwise, device: str) -> None:
    sample = next(iter(samples(OPERATORS[operator.name], device, torch.float64))).require_grad()
    x = sample.args[0]
    weight = torch.ones_like(x, requires_grad=True)
    y = operator.op(*sample.args)
    (first,) = torch.autograd.grad(y, x, weight, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), weight, create_graph=True)
    assert second.shape == x.shape


def test_gradient_lies_as_the_input(device: str) -> None:
    x = torch.randn(2, 3, 4, 5, device=device).contiguous(memory_format=torch.channels_last)
    x.requires_grad_()
    fusedops.clip_add(x, -0.5, 0.5, 0.1).sum().backward()
    assert x.grad is not None
    assert x.grad.is_contiguous(memory_format=torch.channels_last)


@forward_operators
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # torch itself reads it
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_compiled_autograd(operator: Pointwise, device: str) -> None:
    from torch._dynamo import compiled_autograd

    enable = compiled_autograd._enable if hasattr(compiled_autograd, "_enable") else compiled_autograd.enable
    sample = next(iter(samples(OPERATORS[operator.name], device, torch.float32))).require_grad()
    x = sample.args[0]
    (expected,) = torch.autograd.grad(operator.op(*sample.args).square().sum(), x)
    with enable(torch.compile(backend="eager")):
        operator.op(*sample.args).square().sum().backward()
    torch.testing.assert_close(x.grad, expected)
