"""Cells, drops and refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from wheelmill.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from wheelmill.model import Plan

BAD = [
    # lines under `version: 1`, line, key, what is told, what the remedy says
    ('torch: ["2.6"]\ncuda: [cu121]\n', 3, "cuda[0]",
     "torch 2.6 has no cu121 build (it has cu118, cu124, cu126).", "torch 2.1, 2.2, 2.3, 2.4, 2.5"),
    ('torch: ["2.11"]\ncuda: [cu130]\npython: ["3.8"]\n', 4, "python[0]",
     "torch 2.11 has no build for Python 3.8 (it has 3.10,", "torch 2.0, 2.1, 2.2, 2.3, 2.4"),
    ('torch: ["2.6", "2.11"]\ncuda: [cu130]\n', 2, "torch[0]",
     "it has cpu, cu118, cu124, cu126", "Add one of these"),
    ('torch: ["2.4", "2.15"]\ncuda: [cu121, cu132]\npython: ">=3.13"\n', 2, "torch[0]",
     'no Python in ">=3.13" has a build of torch 2.4', "widen `python`"),
    ('torch: ">=2.4"\ncuda: [cu121, cu132]\npython: ">=3.14"\n', 3, "cuda[0]",
     "cu121 exists for torch 2.4, 2.5 alone", "remove cu121"),
    ('torch: ">=2.4,<2.16"\ncuda: [cu130]\npython: ["3.11", "3.15"]\n', 4, "python[1]", "has Python 3.15", "2.15"),
    ('torch: ">=3"\ncuda: [cpu]\n', 2, "torch", 'no torch release lies in ">=3"', "2.15"),
    ('torch: ">=2.4"\ncuda: [cpu]\npython: ">=4"\n', 4, "python", 'lies in ">=4"', "3.14"),
    ('torch: ["2.99"]\ncuda: [cpu]\n', 2, "torch[0]", 'no torch release "2.99"', 'Did you mean "2.9"?'),
    ('torch: ">=2.4"\ncuda: [cu131]\n', 3, "cuda[0]", 'no CUDA variant "cu131"', "cu130"),
    ('torch: ">=2.4"\ncuda: ["13.0"]\n', 3, "cuda[0]", 'no CUDA variant "13.0"', 'Did you mean "cu130"?'),
    ('torch: ["2.0"]\ncuda: [cu117]\n', 3, "cuda[0]", 'no CUDA variant "cu117"', "cu118"),
    ('torch: ">=2.4"\ncuda: [cpu]\npython: ["3.99"]\n', 4, "python[0]", 'no Python "3.99"', "3.9"),
    ('torch: ">=2.4"\ncuda: [cpu]\nabi: {torch: stable>=2.77}\n', 4, "abi.torch", '"2.77"', "headers"),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "line", "key", "told", "remedy"), BAD)
def test_what_cannot_be_meant_is_refused(
    planned: Callable[..., Plan], lines: str, line: int, key: str, told: str, remedy: str
) -> None:
    with pytest.raises(InputError) as caught:
        planned(lines)
    assert f"matrix.yaml:{line}: {key}: " in str(caught.value)
    assert told in str(caught.value)
    assert remedy in caught.value.remedy
    assert "\n" not in str(caught.value)


def test_independent_problems_are_told_together(planned: Callable[..., Plan]) -> None:
    with pytest.raises(InputError) as caught:
        planned('torch: ["2.4", "2.5"]\ncuda: [cu121, cu130]\nsm: {cu121: ["10.0"]}\npython: ["3.11", "3.15"]\n')
    text = str(caught.value)
    assert "has 3 problems" in text
    for key in ("cuda[1]", "sm.cu121[0]", "python[1]"):
        assert f": {key}: " in text


def test_cells_come_in_canonical_order(planned: Callable[..., Plan]) -> None:
    made = planned('torch: ["2.10", "2.9"]\ncuda: [cu130, cu126, cpu]\npython: ["3.14t", "3.14", "3.10"]\n')
    ids = [cell.id for cell in made.cells]
    assert ids[:4] == [
        "cpu-torch2.9-cp310",
        "cpu-torch2.9-cp314",
        "cpu-torch2.9-cp314t",
        "cpu-torch2.10-cp310",
    ]
    assert [cell.cuda for cell in made.cells] == ["cpu"] * 6 + ["cu126"] * 6 + ["cu130"] * 6


def test_what_a_range_spans_and_does_not_exist_is_dropped_with_its_reason(
    planned: Callable[..., Plan],
) -> None:
    made = planned('torch: ">=2.4"\ncuda: [cu121]\npython: ">=3.12"\n')
    assert {cell.id for cell in made.cells} == {
        "cu121-torch2.4-cp312",
        "cu121-torch2.5-cp312",
        "cu121-torch2.5-cp313",
    }
    reasons = {drop.id: drop.reason for drop in made.drops}
    assert reasons["cu121-torch2.6"] == "torch 2.6 has no cu121 build (it has cu118, cu124, cu126)"
    assert reasons["cu121-torch2.4-cp313"].startswith("torch 2.4 has no build for Python 3.13 (it has 3.8, ")


def test_free_threaded_pythons_only_where_listed(planned: Callable[..., Plan]) -> None:
    assert not any(cell.python.endswith("t") for cell in planned('torch: ["2.11"]\ncuda: [cpu]\n').cells)
    made = planned('torch: ["2.11"]\ncuda: [cpu]\npython: ["3.13t"]\n')
    assert [cell.id for cell in made.cells] == ["cpu-torch2.11-cp313t"]
