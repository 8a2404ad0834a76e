"""Whole plans, as `plan --json` prints them, against tests/golden/plans."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from wheelmill.cli_plan import plan

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests/golden/plans"
MATRICES = {file.stem: file for file in sorted(FOLDER.glob("*.yaml"))} | {"fusedops": ROOT / "matrix.yaml"}


@pytest.mark.parametrize("name", MATRICES)
def test_plan_is_the_golden_one(name: str, golden: Callable[[Path, str], None]) -> None:
    result = CliRunner().invoke(plan, ["--json", "--matrix", str(MATRICES[name])], catch_exceptions=False)
    assert result.exit_code == 0
    golden(FOLDER / f"{name}.json", result.stdout)
