"""What only a GPU shows of every operator: streams, graphs, devices."""

from typing import Any

import pytest
import torch
from torch import Tensor

from fusedops.testing import OPERATORS, Operator, Sample, samples

pytestmark = pytest.mark.cuda

operators = pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
capturable = pytest.mark.parametrize(
    "operator",
    [operator for operator in OPERATORS.values() if operator.capturable],
    ids=lambda operator: operator.name,
)


def typical(operator: Operator, device: str) -> Sample:
    return next(iter(samples(operator, device, operator.dtypes[-2])))


def outcome(sample: Sample) -> Any:
    """What a call gives; where it returns nothing, the arguments after it."""
    result = sample.operator.op(*sample.args)
    return result if result is not None else tuple(arg for arg in sample.args if isinstance(arg, Tensor))


def with_tensors(sample: Sample, tensors: list[Tensor]) -> Sample:
    given = iter(tensors)
    args = tuple(next(given) if isinstance(arg, Tensor) else arg for arg in sample.args)
    return Sample(operator=sample.operator, name=sample.name, args=args)


def tensors_of(sample: Sample) -> list[Tensor]:
    return [arg for arg in sample.args if isinstance(arg, Tensor)]


@operators
def test_follows_its_producer_on_a_side_stream(operator: Operator) -> None:
    sample = typical(operator, "cuda")
    expected = outcome(typical(operator, "cuda"))
    produced = [torch.zeros_like(tensor) for tensor in tensors_of(sample)]
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000_000)  # a tenth of a second: a kernel on another stream runs first
        for target, tensor in zip(produced, tensors_of(sample), strict=True):
            target.copy_(tensor)
        result = outcome(with_tensors(sample, produced))
    side.synchronize()
    torch.testing.assert_close(result, expected, rtol=0, atol=0, equal_nan=True)


@capturable
def test_captured_in_a_graph(operator: Operator) -> None:
    sample = typical(operator, "cuda")
    expected = outcome(typical(operator, "cuda"))
    call = with_tensors(sample, [torch.zeros_like(tensor) for tensor in tensors_of(sample)])
    outcome(call)  # loads the kernel, which a capture need not allow
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = outcome(call)
    for target, tensor in zip(tensors_of(call), tensors_of(sample), strict=True):
        target.copy_(tensor)
    graph.replay()
    torch.cuda.synchronize()
    torch.testing.assert_close(result, expected, rtol=0, atol=0, equal_nan=True)


@operators
def test_another_device_than_the_current(operator: Operator) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    expected = outcome(typical(operator, "cuda:0"))
    with torch.cuda.device(0):
        result = outcome(typical(operator, "cuda:1"))
        assert torch.cuda.current_device() == 0
    torch.testing.assert_close(result, expected, rtol=0, atol=0, equal_nan=True, check_device=False)


@operators
def test_same_values_on_both_devices(operator: Operator) -> None:
    for dtype in operator.dtypes:
        rtol, atol = operator.tolerances[dtype]
        for on_gpu, on_cpu in zip(samples(operator, "cuda", dtype), samples(operator, "cpu", dtype), strict=True):
            pair = outcome(on_gpu), outcome(on_cpu)
            torch.testing.assert_close(
                *pair, rtol=2 * rtol, atol=2 * atol, equal_nan=True, check_device=False, check_stride=False
            )
