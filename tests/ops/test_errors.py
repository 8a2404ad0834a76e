"""What is refused, and in which words."""

import pytest
import torch

from fusedops._load import _explain
from fusedops.testing import OPERATORS, Operator, error_samples
from fusedops.testing.pointwise import POINTWISE, Pointwise

operators = pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)


@operators
def test_refused_calls(operator: Operator, device: str) -> None:
    for sample in error_samples(operator, device):
        with pytest.raises(RuntimeError, match=sample.match):
            operator.op(*sample.args)


@pytest.mark.parametrize(
    "operator",
    # What writes to an argument refuses gradients before anything else.
    [operator for operator in OPERATORS.values() if not operator.op._schema.is_mutable],
    ids=lambda operator: operator.name,
)
def test_refused_calls_that_need_gradients(operator: Operator, device: str) -> None:
    for sample in error_samples(operator, device):
        args = tuple(
            arg.clone().requires_grad_() if isinstance(arg, torch.Tensor) and arg.is_floating_point() else arg
            for arg in sample.args
        )
        with pytest.raises(RuntimeError, match=sample.match):
            operator.op(*args)


@pytest.mark.parametrize("operator", POINTWISE.values(), ids=POINTWISE)
def test_scalars_must_be_numbers(operator: Pointwise, device: str) -> None:
    tensors = [torch.ones(2, device=device)] * operator.tensors
    with pytest.raises((TypeError, RuntimeError)):
        operator.op(*tensors, *("one" for _ in operator.scalars), "too many")


@pytest.mark.parametrize(
    ("loader_says", "we_say"),
    [
        ("libcudart.so.12: cannot open shared object file", "another CUDA major version"),
        ("libtorch_cuda.so: cannot open shared object file", "was built without CUDA"),
        ("undefined symbol: torch_call_dispatcher", "built for another torch release"),
        ("version `GLIBC_2.38' not found", "a newer Linux"),
        ("file too short", "could not be loaded"),
    ],
)
def test_load_errors_say_what_to_do(loader_says: str, we_say: str) -> None:
    message = _explain(loader_says)
    assert we_say in message
    assert loader_says in message
    assert torch.__version__ in message or "Linux" in message
    assert "Install" in message
