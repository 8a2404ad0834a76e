"""Every operator, dtype and sample has the reference's values, and leaves its inputs as they were."""

from typing import Any

import pytest
import torch
from torch import Tensor

from fusedops.testing import DTYPES, OPERATORS, Operator, Sample, samples

operators = pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def tensors(value: Any) -> tuple[Tensor, ...]:
    """The tensors among a call's arguments or results."""
    return tuple(one for one in (value if isinstance(value, tuple) else (value,)) if isinstance(one, Tensor))


def written(sample: Sample) -> tuple[Tensor, ...]:
    """The arguments that the schema says a call writes to."""
    stated = sample.operator.op._schema.arguments
    return tuple(
        arg for arg, said in zip(sample.args, stated, strict=False) if said.alias_info and said.alias_info.is_write
    )


def assert_reference(sample: Sample, result: Any) -> None:
    actual, expected = tensors(result) or written(sample), tensors(sample.reference())
    assert len(actual) == len(expected)
    for got, want in zip(actual, expected, strict=True):
        floating = got.is_floating_point()
        rtol, atol = sample.operator.tolerances[got.dtype] if floating else (0, 0)
        torch.testing.assert_close(
            got.double() if floating else got,
            want,
            rtol=rtol,
            atol=atol,
            equal_nan=True,
            check_stride=False,
            msg=lambda message: f"{sample.name}: {message}",
        )


@operators
@dtypes
def test_values(operator: Operator, dtype: torch.dtype, device: str) -> None:
    for sample in samples(operator, device, dtype):
        result = operator.op(*sample.args)
        # What comes after the first may be of the dtype that sums are in.
        assert all(one.dtype == dtype for one in tensors(result)[:1] if one.is_floating_point())
        assert_reference(sample, result)


@operators
def test_inputs_are_left_as_they_were(operator: Operator, device: str) -> None:
    for sample in samples(operator, device, torch.float32):
        target = {id(one) for one in written(sample)}
        inputs = [one for one in tensors(sample.args) if id(one) not in target]
        before = [one.clone() for one in inputs]
        results = tensors(operator.op(*sample.args))
        for one, kept in zip(inputs, before, strict=True):
            assert torch.equal(one.nan_to_num(), kept.nan_to_num())
            assert all(result.numel() == 0 or result.data_ptr() != one.data_ptr() for result in results)


@operators
def test_the_same_bits_each_time(operator: Operator, device: str) -> None:
    if operator.nondet_tol:
        return
    for sample in samples(operator, device, torch.float32):
        first, second = (tensors(operator.op(*sample.args)) for _ in range(2))
        for one, other in zip(first, second, strict=True):
            assert torch.equal(one.nan_to_num(), other.nan_to_num()), sample.name
