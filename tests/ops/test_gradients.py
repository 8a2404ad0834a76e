"""Gradients and double gradients, numerically."""

from typing import Any

import pytest
import torch

from fusedops.testing import OPERATORS, Operator, Sample, samples
from fusedops.testing.pointwise import POINTWISE

differentiable = pytest.mark.parametrize(
    "operator",
    [operator for operator in OPERATORS.values() if operator.differentiable],
    ids=lambda operator: operator.name,
)


def smooth(operator: Operator, device: str) -> list[Sample]:
    every = samples(operator, device, torch.float64)
    return [sample.require_grad() for sample in every if sample.gradcheck]


def needs_grad(results: Any) -> bool:
    return any(one.requires_grad for one in (results if isinstance(results, tuple) else (results,)))


@differentiable
def test_gradcheck(operator: Operator, device: str) -> None:
    calls = smooth(operator, device)
    assert calls
    for sample in calls:
        assert torch.autograd.gradcheck(operator.op, sample.args, nondet_tol=operator.nondet_tol), sample.name


@differentiable
def test_gradgradcheck(operator: Operator, device: str) -> None:
    for sample in smooth(operator, device):
        if sample.args[0].numel() < 100:  # the cost is quadratic
            # By random projections where an element of the result depends on many.
            fast = operator.name not in POINTWISE
            assert torch.autograd.gradgradcheck(
                operator.op, sample.args, nondet_tol=operator.nondet_tol, fast_mode=fast
            ), sample.name


@differentiable
def test_no_graph_without_need(operator: Operator, device: str) -> None:
    sample = next(iter(samples(operator, device, torch.float32)))
    assert not needs_grad(operator.op(*sample.args))
    with torch.no_grad():
        assert not needs_grad(operator.op(*sample.require_grad().args))
