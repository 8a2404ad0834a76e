"""SELECT: globs on ids, whole or up to a dash."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from wheelmill.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from wheelmill.model import Plan

LINES = 'torch: ">=2.8"\ncuda: [cpu, cu126, cu130]\npython: ">=3.11"\nabi: {torch: stable>=2.10, python: none}\n'


@pytest.mark.parametrize(
    ("patterns", "wheels"),
    [
        (["cpu"], ["cpu-torch2.8", "cpu-torch2.9", "cpu-stable2.10"]),
        (["cpu*"], ["cpu-torch2.8", "cpu-torch2.9", "cpu-stable2.10"]),
        (["cu130"], ["cu130-torch2.9", "cu130-stable2.10"]),
        (["cu130-torch2.9"], ["cu130-torch2.9"]),
        (["cu130-stable2.10"], ["cu130-stable2.10"]),
        (["cu130-torch2.1?"], ["cu130-stable2.10"]),  # cells that the stable wheel serves
        (["cu130-torch2.11-cp311"], ["cu130-stable2.10"]),
        (["*-torch2.9"], ["cpu-torch2.9", "cu126-torch2.9", "cu130-torch2.9"]),
        (["*-cp312"], ["cpu-torch2.8", "cpu-torch2.9", "cpu-stable2.10", "cu126-torch2.8", "cu126-torch2.9",
                       "cu126-stable2.10", "cu130-torch2.9", "cu130-stable2.10"]),
        (["cu130-torch2.9", "cpu-torch2.8"], ["cpu-torch2.8", "cu130-torch2.9"]),
        (["cu1[23]6-stable*"], ["cu126-stable2.10"]),
    ],
)  # fmt: skip
def test_a_pattern_selects_wheels(planned: Callable[..., Plan], patterns: list[str], wheels: list[str]) -> None:
    made = planned(LINES, *patterns)
    assert [wheel.id for wheel in made.wheels] == wheels
    assert [step.wheel.id for step in made.steps] == wheels
    assert list(made.cells) == [cell for wheel in made.wheels for cell in wheel.cells]


@pytest.mark.parametrize(
    ("pattern", "told", "remedy"),
    [
        ("cu13", "matches no wheel", 'Did you mean "cu130"?'),
        ("cu130-torch2.9-cp399", "matches no wheel", 'Did you mean "cu130-torch2.9-cp'),
        ("cu130-torch2.8", "torch 2.8 has no cu130 build", "--explain"),
        ("cu130-torch2.8-cp311", "torch 2.8 has no cu130 build", "--explain"),
        ("cpu-torch2.8-cp314", "torch 2.8 has no build for Python 3.14", "--explain"),
        ("CU130", "matches no wheel", 'Did you mean "cu130"?'),
        ("", "matches no wheel", "The wheels are cpu-torch2.8"),
    ],
)
def test_a_pattern_that_matches_nothing_is_refused(
    planned: Callable[..., Plan], pattern: str, told: str, remedy: str
) -> None:
    with pytest.raises(InputError) as caught:
        planned(LINES, "cpu", pattern)
    assert told in str(caught.value)
    assert remedy in caught.value.remedy


def test_drops_are_those_that_the_pattern_names(planned: Callable[..., Plan]) -> None:
    made = planned(LINES, "cu126-torch2.9")
    assert [drop.id for drop in made.drops] == ["cu126-torch2.9-cp315"]
