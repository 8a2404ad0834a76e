"""What the documentation shows of a measurement is what was measured."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_table_of_faults_is_the_measured_one_and_every_fault_is_caught() -> None:
    spec = importlib.util.spec_from_file_location("confusion", ROOT / "benchmarks" / "confusion.py")
    assert spec is not None
    assert spec.loader is not None
    confusion = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(confusion)
    faults = json.loads((ROOT / "evidence" / "h200-gates-faultops.json").read_text())["faults"]
    assert confusion.judged(faults) == []
    assert confusion.shown(faults) in (ROOT / "docs" / "gates.md").read_text()
