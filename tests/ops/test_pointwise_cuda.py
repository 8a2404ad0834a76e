"""What only a GPU shows of the pointwise operators: alignment, devices, more than 2^31 elements."""

import pytest
import torch
from torch import Tensor

from fusedops.testing import TOLERANCES
from fusedops.testing.pointwise import POINTWISE, Pointwise

pytestmark = pytest.mark.cuda

operators = pytest.mark.parametrize("operator", POINTWISE.values(), ids=POINTWISE)


def tensors_of(operator: Pointwise, size: int, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    return [torch.randn(size, device="cuda").to(dtype) for _ in range(operator.tensors)]


def assert_reference(operator: Pointwise, result: Tensor, tensors: list[Tensor]) -> None:
    expected = operator.reference(*(t.double() for t in tensors), *operator.scalars)
    rtol, atol = TOLERANCES[result.dtype]
    torch.testing.assert_close(result.double(), expected, rtol=rtol, atol=atol)


@operators
@pytest.mark.parametrize("offset", [0, 1], ids=["aligned", "misaligned"])
def test_beyond_2_to_31_elements(operator: Pointwise, offset: int) -> None:
    size = 2**31 + 17
    needed = (operator.tensors + 1) * 2 * (size + offset) + 2**30
    torch.cuda.empty_cache()
    if torch.cuda.mem_get_info()[0] < needed:
        pytest.skip(f"needs {needed / 2**30:.0f} GiB of free GPU memory")
    whole = [torch.zeros(size + offset, dtype=torch.float16, device="cuda") for _ in range(operator.tensors)]
    tensors = [tensor[offset:] for tensor in whole]
    windows = [slice(0, 64), slice(2**31 - 64, size), slice(2**30, 2**30 + 64)]
    for tensor in tensors:
        for window in windows:
            tensor[window] = torch.randn_like(tensor[window])
    result = operator.op(*tensors, *operator.scalars)
    for window in windows:
        assert_reference(operator, result[window], [tensor[window] for tensor in tensors])


@operators
@pytest.mark.parametrize("dtype", [torch.float16, torch.float64], ids=str)
def test_empty_launches_nothing(operator: Pointwise, dtype: torch.dtype) -> None:
    result = operator.op(*tensors_of(operator, 0, dtype), *operator.scalars)
    torch.cuda.synchronize()
    assert result.shape == (0,)


@operators
@pytest.mark.parametrize("dtype", [torch.float16, torch.float64], ids=str)
def test_second_operand_elsewhere_in_a_vector(operator: Pointwise, dtype: torch.dtype) -> None:
    pool = tensors_of(operator, 1024, dtype)
    tensors = [tensor[k : 1000 + k] for k, tensor in enumerate(pool)]
    assert_reference(operator, operator.op(*tensors, *operator.scalars), tensors)


@pytest.mark.parametrize("operator", [POINTWISE["vector_add"], POINTWISE["clip_add_backward"]])
def test_two_devices_are_refused(operator: Pointwise) -> None:
    tensor = torch.ones(3, device="cuda")
    for pair in ((tensor, tensor.cpu()), (tensor.cpu(), tensor)):
        with pytest.raises(RuntimeError, match="must be on the device of x"):
            operator.op(*pair, *operator.scalars)


@operators
def test_same_values_on_both_devices(operator: Pointwise) -> None:
    tensors = tensors_of(operator, 10_001)
    on_cpu = operator.op(*(tensor.cpu() for tensor in tensors), *operator.scalars)
    on_gpu = operator.op(*tensors, *operator.scalars)
    torch.testing.assert_close(on_gpu.cpu(), on_cpu, rtol=1e-6, atol=1e-6)
