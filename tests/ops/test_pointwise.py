"""The pointwise operators: layout, tails, alignment, rounding and clamping."""

import math

import pytest
import torch
from torch import Tensor

from fusedops.testing import DTYPES, OPERATORS, TOLERANCES, samples
from fusedops.testing.pointwise import POINTWISE, Pointwise

operators = pytest.mark.parametrize("operator", POINTWISE.values(), ids=POINTWISE)
dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def assert_reference(actual: Tensor, expected: Tensor, dtype: torch.dtype, name: str = "") -> None:
    assert actual.dtype == dtype
    rtol, atol = TOLERANCES[dtype]
    torch.testing.assert_close(
        actual.double(),
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=True,
        check_stride=False,
        msg=lambda message: f"{name}: {message}",
    )


@operators
def test_result_lies_as_empty_like_its_first_named_tensor(operator: Pointwise, device: str) -> None:
    for sample in samples(OPERATORS[operator.name], device, torch.float32):
        like = sample.args[1] if operator.name.endswith("_backward") else sample.args[0]
        result = operator.op(*sample.args)
        assert result.stride() == torch.empty_like(like).stride(), sample.name
        assert result.device == like.device


@operators
@dtypes
def test_every_tail_and_alignment(operator: Pointwise, dtype: torch.dtype, device: str) -> None:
    pool = [torch.randn(96).to(device, dtype) for _ in range(operator.tensors)]
    for offset in range(9):
        for size in range(40):
            tensors = [tensor[offset * (k + 1) :][:size] for k, tensor in enumerate(pool)]
            expected = operator.reference(*(t.double() for t in tensors), *operator.scalars)
            assert_reference(operator.op(*tensors, *operator.scalars), expected, dtype)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_every_16_bit_value_survives(dtype: torch.dtype, device: str) -> None:
    every = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(dtype).to(device)
    result = torch.ops.fusedops.clip_add(every, -math.inf, math.inf, 0.0)
    assert torch.equal(result.isnan(), every.isnan())
    assert torch.equal(result.nan_to_num(), every.nan_to_num())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_16_bit_rounding_is_torchs(dtype: torch.dtype, device: str) -> None:
    every = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(dtype).to(device)
    for factor in (1.0 + 2.0**-12, 1.0 / 3.0, 2.0**-8, 2.0**-13, 3.0):
        result = torch.ops.fusedops.affine(every, factor, 0.0)
        expected = (every.float() * factor).to(dtype)
        assert torch.equal(result.isnan(), expected.isnan())
        assert torch.equal(result.nan_to_num(), expected.nan_to_num())


@dtypes
@pytest.mark.parametrize("bounds", [(-0.5, 0.75), (0.5, -0.25), (math.nan, 1.0), (-1.0, math.nan)])
def test_clamps_exactly_as_torch(bounds: tuple[float, float], dtype: torch.dtype, device: str) -> None:
    values = [math.nan, math.inf, -math.inf, -0.5, 0.75, 0.0, 2.0, -2.0, 0.5, -0.25]
    x = torch.tensor(values, dtype=dtype, device=device)
    expected = torch.clamp(x, *bounds)
    torch.testing.assert_close(torch.ops.fusedops.clip_add(x, *bounds, 0.0), expected, rtol=0, atol=0, equal_nan=True)
    torch.testing.assert_close(
        torch.ops.fusedops.scale_clamp_add(x, 1.0, *bounds, 0.0),
        expected,
        rtol=0,
        atol=0,
        equal_nan=True,
    )


@operators
def test_negated_view(operator: Pointwise, device: str) -> None:
    tensors = [torch.randn(8, device=device) for _ in range(operator.tensors)]
    negated = [torch._neg_view(tensor) for tensor in tensors]
    expected = operator.op(*(-tensor for tensor in tensors), *operator.scalars)
    assert torch.equal(operator.op(*negated, *operator.scalars), expected)
