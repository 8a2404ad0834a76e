"""Operators that are not pointwise, tests/projects/shapes: gates and smoke call take them, and see their faults.

They run in a clean environment of the newest torch, or beside the interpreter that WHEELMILL_TEST_PYTHON names.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from tests.gate_wheels import python_alone

from .conftest import ROOT, STORE, command

if TYPE_CHECKING:
    from pathlib import Path

OPERATORS = ("product", "keep", "order", "halved", "store", "laid")
# Each fault with the gate that tells of it, and words of the reason.
FAULTS = {
    "product_wrong": ("robust", "non-contiguous inputs: torch.float32, wide: "),
    "keep_wrong": ("ops", "torch.float32, far: "),
    "order_wrong": ("ops", "torch.float32, rows: "),
    "halved_wrong": ("ops", "torch.bfloat16, typical: "),
    "store_wrong": ("ops", "torch.float32, typical: "),
    "laid_wrong": ("robust", "non-contiguous inputs: torch.float32, turned: "),
}


def run(path: Path, *more: str | Path) -> tuple[int, Any]:
    beside = os.environ.get("WHEELMILL_TEST_PYTHON")
    where = ["--python", beside] if beside else []
    args = command("test", path, "--namespace", "shapes", "--samples", "shapes.testing", *where, "--store", STORE)
    asked = ["--device", "cpu", "--json", "--fresh", *more]
    done = subprocess.run([*args, *asked], cwd=path.parent, text=True, capture_output=True, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, Any]]:
    path = python_alone(tmp_path_factory.mktemp("shapes"), "shapes")
    run(path, "--gates", "ops,gradcheck", "--jobs", "2")
    chosen = [word for name in (*OPERATORS, "product_wrong", "laid_wrong") for word in ("--operator", name)]
    _, report = run(path, "--gates", "robust", "--jobs", "2", *chosen)
    return {(row["gate"], row["operator"]): row for row in report["rows"] if row["device"] == "cpu"}


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_of_any_shape_passes_every_gate(rows: dict[tuple[str, str], dict[str, Any]], name: str) -> None:
    for gate in ("ops", "robust"):
        assert rows[gate, name]["result"] == "pass", rows[gate, name]["reason"]
    differentiable = name in ("product", "order")
    row = rows["gradcheck", name]
    assert (row["result"], row["missing"]) == (("pass" if differentiable else "not-run"), False), row["reason"]


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_it_is_seen(rows: dict[tuple[str, str], dict[str, Any]], name: str) -> None:
    gate, words = FAULTS[name]
    assert rows[gate, name]["result"] == "fail"
    assert words in rows[gate, name]["reason"]


def test_dtypes_are_the_operators_own(rows: dict[tuple[str, str], dict[str, Any]]) -> None:
    assert set(rows["ops", "halved"]["found"]["samples"]) == {"torch.bfloat16", "torch.float16"}
    assert set(rows["ops", "keep"]["found"]["samples"]) == {"torch.float32", "torch.float64"}


def test_what_it_refuses_is_told_once(rows: dict[tuple[str, str], dict[str, Any]]) -> None:
    left = rows["robust", "product"]["left_out"]
    assert [one for one in left if one.startswith("empty inputs")] == [
        'empty inputs: refused with "shapes: b must have a\'s columns"'
    ]


# Runs beside the installed wheel, where there is torch: what the smoke call computes, and what of `robust` needs a GPU.
BESIDE = """
import importlib.util
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import shapes.testing as samples

SCRIPTS = Path({scripts!r})


def load(name):
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{{name}}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def computed(name):
    described = SimpleNamespace(**{{**vars(samples), "OPERATORS": {{name: samples.OPERATORS[name]}}}})
    return load("smoke").compute(torch, described)[name]


@pytest.mark.parametrize("name", {right})
def test_the_smoke_call_computes(name):
    assert computed(name) > 0


@pytest.mark.parametrize("name", {wrong})
def test_the_smoke_call_sees(name):
    with pytest.raises(AssertionError, match=f"{{name}}, torch"):
        computed(name)


@pytest.mark.parametrize("name", {sized})
def test_what_cannot_be_enlarged_is_left_out(name, monkeypatch):
    runner = load("gates_runner")
    monkeypatch.setattr(torch.cuda, "synchronize", lambda *_: None)
    unit = runner.Unit(
        job={{}}, gate="robust", name=name, device="cpu", tool="", torch=torch, samples=samples, at=lambda _: None
    )
    size = runner.sibling("gates_robust_size")
    assert list(size._sizes(unit)) == []
    size.out_of_memory(unit)
    by_size = ["more than 2^31 elements", "out of memory"]
    assert unit.left_out == [f"{{one}}: it is not known to be pointwise" for one in by_size]
    if name == "keep":
        runner.sibling("gates_robust_cuda").graph(unit)
        unit.operator.capturable = True
        runner.sibling("gates_robust_cuda").graph(unit)
        assert unit.left_out[2:] == [
            "a CUDA graph: it is stated that none can hold it",
            "a CUDA graph: the size of its result is of data's making",
        ]
"""


def test_the_smoke_call_and_what_needs_a_gpu(tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    tests.mkdir()
    sized = [name for name in OPERATORS if name not in ("halved", "laid")]  # which are pointwise, of one dimension
    wrong = [name for name in FAULTS if FAULTS[name][0] == "ops"]  # the others need another layout
    scripts = ROOT / "pkg" / "wheelmill" / "src" / "wheelmill"
    (tests / "test_beside.py").write_text(
        BESIDE.format(scripts=str(scripts), right=list(OPERATORS), wrong=wrong, sized=sized)
    )
    code, report = run(python_alone(tmp_path, "shapes"), "--gates", "pytest", "--tests", tests)
    (row,) = report["rows"]
    assert (code, row["result"]) == (0, "pass"), row["reason"]
    assert row["found"]["passed"] == len(OPERATORS) + len(wrong) + len(sized)
