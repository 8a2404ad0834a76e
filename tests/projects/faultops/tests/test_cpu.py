"""On a CPU, beside the installed wheel: twins are clean, values are right, and each fault that a CPU can have is there."""

import multiprocessing
import signal

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.autograd.gradcheck import GradcheckError

from faultops.testing import DTYPES, OPERATORS, TOLERANCES, samples

CLEAN = [name for name, operator in OPERATORS.items() if operator.fault is None]
ENDS = {("crash", "no_chunk"), ("hang", "no_chunk")}


def first(name):
    return next(samples(OPERATORS[name], "cpu", torch.float64))


def test_each_registered_operator_has_an_entry():
    names = {
        name.split("::")[1].split(".")[0] for name in torch._C._dispatch_get_all_op_names() if "faultops::" in name
    }
    assert names == set(OPERATORS)
    assert names == {f"{name}{twin}" for name in names if not name.endswith("_clean") for twin in ("", "_clean")}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
def test_values_are_right(operator, dtype):
    rtol, atol = TOLERANCES[dtype]
    for sample in samples(operator, "cpu", dtype):
        if (operator.name, sample.name) not in ENDS:
            value = operator.op(*sample.args)
            assert value.dtype == dtype
            torch.testing.assert_close(value.double(), sample.reference(), rtol=rtol, atol=atol)


@pytest.mark.parametrize("name", CLEAN)
def test_opcheck_passes_a_twin(name):
    assert set(torch.library.opcheck(OPERATORS[name].op, first(name).args).values()) == {"SUCCESS"}


@pytest.mark.parametrize("name", [name for name in CLEAN if name != "nondeterministic_gradient_clean"])
@pytest.mark.parametrize("layout", ["transposed", "strided", "misaligned", "empty"])
def test_a_twin_takes_any_layout(name, layout):
    operator, args = OPERATORS[name], first(name).args
    change = {
        "transposed": lambda x: x.t(),
        "strided": lambda x: x[:, ::2],
        "misaligned": lambda x: x.flatten()[1:],
        "empty": lambda x: x[:0],
    }[layout]
    args = [change(arg) if isinstance(arg, torch.Tensor) else arg for arg in args]
    torch.testing.assert_close(operator.op(*args), operator.reference(*args), rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("name", [name for name in CLEAN if OPERATORS[name].differentiable])
def test_gradients_of_a_twin(name):
    for sample in samples(OPERATORS[name], "cpu", torch.float64):
        if sample.gradcheck:
            args = sample.require_grad().args
            assert gradcheck(OPERATORS[name].op, args)
            assert gradgradcheck(OPERATORS[name].op, args)


@pytest.mark.parametrize("name", ["wrong_gradient", "gradient_missing"])
def test_gradients_at_fault(name):
    with pytest.raises(GradcheckError):
        gradcheck(OPERATORS[name].op, first(name).require_grad().args)


@pytest.mark.parametrize(
    ("name", "test"),
    [
        ("fake_missing", "test_faketensor"),
        ("fake_wrong_shape", "test_faketensor"),
        ("undeclared_mutation", "test_schema"),
        ("aliasing_output", "test_schema"),
    ],
)
def test_contracts_at_fault(name, test):
    results = torch.library.opcheck(OPERATORS[name].op, first(name).args, raise_exception=False)
    assert results[test] != "SUCCESS"
    assert {results[other] for other in ("test_schema", "test_autograd_registration") if other != test} == {"SUCCESS"}


def test_strides_at_fault():
    x = torch.randn(5, 7).t()
    assert not torch.equal(torch.ops.faultops.strides_ignored(x), 2 * x)


def child(name):
    """A process in which an operator is called with the sample that ends it; forked, to spare another import."""
    *_, sample = samples(OPERATORS[name], "cpu", torch.float64)
    assert (name, sample.name) in ENDS
    process = multiprocessing.get_context("fork").Process(target=sample.operator.op, args=sample.args)
    process.start()
    return process


def test_crash():
    process = child("crash")
    process.join(60)
    assert process.exitcode == -signal.SIGABRT


def test_hang_can_be_killed():
    process = child("hang")
    try:
        process.join(1)
        assert process.is_alive()
        process.terminate()
        process.join(5)
        assert process.exitcode == -signal.SIGTERM
    finally:
        process.kill()
