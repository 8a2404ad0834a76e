"""Which GPU targets a wheel gets, and which words are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from wheelmill.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from wheelmill.model import Plan


def sm_of(made: Plan, wheel: str) -> tuple[str, ...]:
    return next(one.sm for one in made.wheels if one.id == wheel)


@pytest.mark.parametrize(
    ("torch", "cuda", "words", "expected"),
    [
        ("2.11", "cu130", "all-major", ("7.5", "8.0", "9.0", "10.0", "12.0+PTX")),
        ("2.11", "cu130", "all", ("7.5", "8.0", "8.6", "9.0", "10.0", "12.0+PTX")),
        ("2.8", "cu128", "all-major", ("7.0", "8.0", "9.0", "10.0", "12.0+PTX")),
        ("2.11", "cu128", "all-major", ("7.5", "8.0", "9.0", "10.0", "12.0+PTX")),
        ("2.4", "cu121", "all-major", ("5.0", "6.0", "7.0", "8.0", "9.0+PTX")),
        # torch 2.5's own targets for cu118 are in no table: the toolkit's list alone counts.
        ("2.5", "cu118", "all-major", ("3.5", "5.0", "6.0", "7.0", "8.0", "9.0+PTX")),
        ("2.11", "cu130", "[Hopper, Ampere]", ("8.0", "8.6+PTX", "9.0+PTX")),
        ("2.11", "cu130", '"12.0a;9.0a;8.9+PTX"', ("8.9+PTX", "9.0a", "12.0a")),
        ("2.11", "cu130", "Ampere+Tegra", ("8.7",)),
        ("2.11", "cu130", '[all-major, "9.0a"]', ("7.5", "8.0", "9.0", "9.0a", "10.0", "12.0+PTX")),
        ("2.4", "cu121", '["9.0a", all-major]', ("5.0", "6.0", "7.0", "8.0", "9.0+PTX", "9.0a")),
    ],
)
def test_targets(planned: Callable[..., Plan], torch: str, cuda: str, words: str, expected: tuple[str, ...]) -> None:
    made = planned(f'torch: ["{torch}"]\ncuda: [{cuda}]\npython: ["3.12"]\nsm: {{default: {words}}}\n')
    assert made.wheels[0].sm == expected


def test_cpu_has_none(planned: Callable[..., Plan]) -> None:
    assert planned('torch: ["2.11"]\ncuda: [cpu]\n').wheels[0].sm == ()


def test_a_wheel_of_several_torches_has_what_any_of_them_knows(planned: Callable[..., Plan], tmp_path: Path) -> None:
    (tmp_path / "extra.toml").write_text(
        '[torch."2.10"]\nsm.cu130 = ["7.5", "8.0"]\n[torch."2.11"]\nsm.cu130 = ["9.0", "12.0"]\n'
    )
    made = planned(
        'torch: ["2.10", "2.11"]\ncuda: [cu130]\nabi: {torch: stable>=2.10, python: none}\nfacts: extra.toml\n'
    )
    assert sm_of(made, "cu130-stable2.10") == ("7.5", "8.0", "9.0", "12.0+PTX")


def test_each_cuda_may_have_its_own(planned: Callable[..., Plan]) -> None:
    made = planned(
        'torch: ["2.9"]\ncuda: [cu126, cu130]\nsm: {cu126: ["7.0"]}\nabi: {python: none}\n'
        'python: ["3.11"]\n'
    )  # fmt: skip
    assert sm_of(made, "cu126-torch2.9") == ("7.0",)
    assert sm_of(made, "cu130-torch2.9")[0] == "7.5"


BAD = [
    ("cu121", 'cu121: ["8.0", "10.0"]', "sm.cu121[1]", 'for "10.0": it knows 5.0 to 9.0', "cu128"),
    ("cu130", 'default: ["7.0"]', "sm.default[0]", 'for "7.0": it knows 7.5 to 12.1', "cu126"),
    ("cu130", "default: Volta", "sm.default", '"Volta" (7.0+PTX)', "give cu130 its own list"),
    ("cu130", 'default: ["7.7"]', "sm.default[0]", '"7.7"', "The nearest here is 7.5."),
    ("cu130", "default: [Hoper]", "sm.default[0]", '"Hoper" is no GPU target', 'Did you mean "Hopper"?'),
    ("cu130", "default: sm_90", "sm.default", '"sm_90" is no GPU target', '"8.0"'),
    ("cu130", "default: native", "sm.default", "machine that builds", "all-major"),
    ("cu130", 'default: [all, "9.0"]', "sm.default[0]", "all stands for a whole list", "alone"),
    ("cu118", 'default: [all-major, "9.0a"]', "sm.default[1]", '"9.0a"', "give cu118 its own list"),
    ("cu126", 'default: ["10.0f"]', "sm.default[0]", '"10.0f"', "cu130"),
]  # fmt: skip


@pytest.mark.parametrize(("cuda", "entry", "key", "told", "remedy"), BAD)
def test_what_a_toolkit_does_not_compile_is_refused(
    planned: Callable[..., Plan], cuda: str, entry: str, key: str, told: str, remedy: str
) -> None:
    with pytest.raises(InputError) as caught:
        planned(f'torch: ">=2.4"\ncuda: [{cuda}]\nsm:\n  {entry}\n')
    assert f"matrix.yaml:5: {key}: " in str(caught.value)
    assert told in str(caught.value)
    assert remedy in caught.value.remedy
