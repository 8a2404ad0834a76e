"""The doctor's trials on a machine with a GPU: how they are judged, and that what was tried is as it must be."""

from __future__ import annotations

import copy
import importlib
import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TOLD = {
    "findings": [],
    "environment": {"gpus": [{"name": "H200", "capability": "9.0"}], "driver": {"version": "580.1", "fails": None}},
    "torch": {"sass": ["80", "90"], "ptx": []},
}
SO = {"said": None, "gpus": [["H200", "9.0"]], "targets": ["sm_90"]}


@pytest.fixture(scope="module")
def trials() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        return importlib.import_module("gpu_doctor")


def finding(check: str, area: str = "driver") -> dict[str, str]:
    return {"id": check, "area": area, "severity": "error"}


def test_an_answer_that_is_the_truth(trials: Any) -> None:
    assert trials.compare(trials.Tried(), TOLD, SO) == []
    # What is of another part of the machine is no business of a trial.
    told = TOLD | {"findings": [finding("ninja-absent", "tools")]}
    assert trials.compare(trials.Tried(), told, SO) == []
    told = TOLD | {"findings": [finding("driver-uvm")], "environment": {**TOLD["environment"], "gpus": None}}
    so = SO | {"said": "CUDA unknown error", "gpus": []}
    assert trials.compare(trials.Tried(findings=("driver-uvm",), said="unknown"), told, so) == []


@pytest.mark.parametrize(
    ("case", "told", "so", "words"),
    [
        ({}, {"findings": [finding("gpu-none")]}, {}, "found ['gpu-none'], not []"),
        ({"findings": ("gpu-none",)}, {}, {"said": "No CUDA GPUs"}, "found [], not ['gpu-none']"),
        ({}, {}, {"said": "no kernel image"}, "in truth: no kernel image"),
        ({"findings": ("gpu-none",)}, {"findings": [finding("gpu-none")]}, {}, "in truth: it works"),
        (
            {"findings": ("gpu-none",), "said": "No CUDA"},
            {"findings": [finding("gpu-none")]},
            {"said": "something else"},
            "in truth: something else",
        ),
        ({}, {}, {"gpus": [["H200", "9.0"]] * 2}, "GPUs [['H200', '9.0']], not"),
        ({}, {"environment": {"gpus": TOLD["environment"]["gpus"], "driver": {"version": None}}}, {}, "version is not"),
        ({}, {}, {"targets": ["sm_90", "sm_120"]}, "torch's code for ['sm_120']"),
    ],
)
def test_what_is_not_as_it_must_be(
    trials: Any, case: dict[str, Any], told: dict[str, Any], so: dict[str, Any], words: str
) -> None:
    (wrong,) = trials.compare(trials.Tried(**case), copy.deepcopy(TOLD) | told, SO | so)
    assert words in wrong


def test_what_was_tried_is_as_it_must_be_and_what_the_documentation_shows(trials: Any) -> None:
    rows = json.loads((ROOT / "evidence" / "h200-doctor.json").read_text())["cases"]
    assert {name: sorted(row["findings"]) for name, row in rows.items()} == {
        name: sorted(case.findings) for name, case in trials.CASES.items()
    }
    assert [row["wrong"] for row in rows.values() if row["wrong"]] == []
    assert [name for name, row in rows.items() if trials.CASES[name].said not in (row["said"] or "")] == []
    assert trials.shown(rows) in (ROOT / "docs" / "doctor.md").read_text()
