"""The verb: what it prints, and what it does not import."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from wheelmill.__main__ import main
from wheelmill.cli_plan import plan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TEXT = 'version: 1\ntorch: ">=2.9"\ncuda: [cpu, cu130]\nabi: {torch: stable>=2.10, python: none}\n'


def run(file: Path, *arguments: str) -> str:
    result = CliRunner().invoke(plan, [*arguments, "--matrix", str(file)], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_json_has_an_entry_a_line_and_is_the_same_twice(write: Callable[[str], Path]) -> None:
    file = write(TEXT)
    text = run(file, "--json")
    assert text == run(file, "--json")
    made = json.loads(text)
    entries = sum(len(made[key]) for key in ("cells", "drops", "wheels", "steps"))
    assert len(text.splitlines()) == entries + 2 * 4 + 3


def test_json_with_explain_tells_what_was_not_known(write: Callable[[str], Path]) -> None:
    notes = json.loads(run(write(TEXT), "--json", "--explain"))["notes"]
    assert any(note.startswith("cu130-torch2.9: the GPU targets of torch 2.9") for note in notes)


def test_json_of_an_empty_list_is_json(write: Callable[[str], Path]) -> None:
    made = json.loads(run(write('version: 1\ntorch: ["2.11"]\ncuda: [cpu]\npython: ["3.11"]\n'), "--json"))
    assert made["drops"] == []


def test_text_names_wheels_and_counts(write: Callable[[str], Path]) -> None:
    text = run(write(TEXT))
    assert "cu130-stable2.10" in text
    assert "2.10-2.14" in text
    assert "4 wheels serve" in text


def test_explain_lists_drops_with_reasons(write: Callable[[str], Path]) -> None:
    text = run(write(TEXT), "cu130", "--explain")
    assert "torch 2.15 has no cu130 build (it has cu132)" in text
    assert "the toolkit's list alone counts" in text


def test_a_long_plan_is_one_line_a_wheel(write: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wheelmill.cli_plan.TABLE_ROWS", 1)
    assert run(write(TEXT)).splitlines()[0].startswith("cpu-torch2.9  2.9.1  -  3.14  -  2.9")


def test_json_imports_nothing_slow(write: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    slow = ("rich", "difflib")
    for name in [name for name in sys.modules if name.split(".")[0] in slow]:
        monkeypatch.delitem(sys.modules, name)
    run(write(TEXT), "--json")
    assert not [name for name in sys.modules if name.split(".")[0] in slow]


@pytest.mark.parametrize("text", ["version: 2\n", "", 'version: 1\ntorch: ["2.6"]\ncuda: [cu121]\n'])
def test_bad_input_exits_with_2_and_a_remedy(
    write: Callable[[str], Path], capsys: pytest.CaptureFixture[str], text: str
) -> None:
    assert main(["plan", "--json", "--matrix", str(write(text))]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "matrix.yaml:1" in printed.err or "matrix.yaml:3" in printed.err
    assert "what to do" in printed.err
