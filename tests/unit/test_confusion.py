"""The table of which gate caught which planted fault, made of rows as `wheelmill test` reports them."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from .test_gates import row

ROOT = Path(__file__).parents[2]
FAULTS = {"leak": ["sanitize", "memcheck"], "wrong": ["ops", "values"]}
GATES = ("ops/{}/cpu", "ops/{}/cuda", "gradcheck/{}/cpu", "gradcheck/{}/cuda", "robust/{}/cpu", "robust/{}/cuda")
TOOLS = tuple(f"sanitize/{{}}/cuda/{tool}" for tool in ("memcheck", "racecheck", "initcheck", "synccheck"))


@pytest.fixture(scope="module")
def confusion() -> Any:
    path = ROOT / "benchmarks" / "confusion.py"
    spec = importlib.util.spec_from_file_location("confusion", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows(**changes: dict[str, Any]) -> list[dict[str, Any]]:
    """Every unit passes but for the faults' own on the GPU, and `changes`, with `_` for `/`, to others."""
    every = {
        unit: row(unit)
        for fault in FAULTS
        for name in (fault, f"{fault}_clean")
        for unit in (one.format(name) for one in (*GATES, *TOOLS, "bench/{}/cuda"))
    }
    for unit in ("sanitize/leak/cuda/memcheck", "ops/wrong/cuda"):
        every[unit] = row(unit, "fail")
    for key, change in changes.items():
        unit = next(unit for unit in every if unit.replace("/", "_") == key)
        every[unit] = row(unit, **change)
    return list(every.values())


def wrong(confusion: Any, **changes: dict[str, Any]) -> list[str]:
    return confusion.judged(confusion.table({"rows": rows(**changes)}, FAULTS))


def test_every_fault_caught_and_every_twin_passed(confusion: Any) -> None:
    assert wrong(confusion) == []
    assert "| leak | pass | pass | pass | FAIL | pass | pass | pass | pass | pass |" in confusion.shown(
        confusion.table({"rows": rows()}, FAULTS)
    )


@pytest.mark.parametrize(
    ("unit", "change", "said"),
    [
        ("ops_wrong_cuda", {"result": "pass"}, "wrong: ops did not catch it: pass"),
        ("ops_wrong_cuda", {"result": "not-run", "missing": True}, "wrong: ops did not catch it: not-run why"),
        ("sanitize_leak_cuda_memcheck", {"result": "not-run", "missing": True}, "leak: memcheck did not catch it"),
        ("ops_leak_clean_cpu", {"result": "hang"}, "leak_clean: ops: hang on cpu"),
        ("bench_leak_clean_cuda", {"result": "not-run", "missing": True}, "leak_clean: bench: not-run on cuda"),
        ("ops_wrong_clean_cpu", {"result": "not-run", "missing": True}, "wrong_clean: ops: not-run on cpu"),
    ],
)
def test_what_is_not_as_it_must_be(confusion: Any, unit: str, change: dict[str, Any], said: str) -> None:
    (found,) = wrong(confusion, **{unit: change})
    assert found.startswith(said)


def test_a_fault_that_is_caught_on_the_cpu_alone_is_not_caught(confusion: Any) -> None:
    found = wrong(confusion, ops_wrong_cpu={"result": "fail"}, ops_wrong_cuda={"result": "pass"})
    assert found == ["wrong: ops did not catch it: pass"]


def test_a_gate_without_meaning_is_no_fault_and_one_without_rows_is(confusion: Any) -> None:
    assert wrong(confusion, gradcheck_leak_clean_cpu={"result": "not-run"}) == []
    every = [one for one in rows() if one["unit"] != "bench/leak_clean/cuda"]
    assert confusion.judged(confusion.table({"rows": every}, FAULTS)) == ["leak_clean: bench: never run"]


def test_what_was_measured_caught_every_fault_and_is_what_the_documentation_shows(confusion: Any) -> None:
    faults = json.loads((ROOT / "evidence" / "h200-gates-faultops.json").read_text())["faults"]
    assert confusion.judged(faults) == []
    assert confusion.shown(faults) in (ROOT / "docs" / "gates.md").read_text()
