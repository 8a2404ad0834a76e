"""What a pull request builds: few wheels, always the ends, and one that the change is about."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import TYPE_CHECKING

from wheelmill import ci_change
from wheelmill.ci_change import Change

if TYPE_CHECKING:
    from collections.abc import Callable

    from wheelmill.model import Plan

MATRIX = """torch: ">=2.8"
cuda: [cpu, cu126, cu128, cu130]
abi: {torch: stable>=2.10, python: none}
"""
ENDS = {"cpu-stable2.10", "cu126-torch2.8", "cu130-stable2.10"}


def change(text: str = "", *paths: str) -> Change:
    return Change(paths=paths, digest=hashlib.sha256(text.encode()).hexdigest())


def ids(made: Plan) -> set[str]:
    assert {step.wheel.id for step in made.steps} == {wheel.id for wheel in made.wheels}
    assert set(made.cells) == {cell for wheel in made.wheels for cell in wheel.cells}
    return {wheel.id for wheel in made.wheels}


def test_the_ends_and_one_more(planned: Callable[..., Plan]) -> None:
    made = planned(MATRIX)
    found = ids(ci_change.narrowed(made, made, change()))
    assert found > ENDS
    assert len(found) == 4


def test_wheels_a_python_take_the_oldest_and_the_newest_with_a_gil(planned: Callable[..., Plan]) -> None:
    made = planned('torch: ["2.10", "2.11"]\ncuda: [cu128]\npython: ["3.11", "3.13t", "3.14", "3.14t"]\n')
    found = ids(ci_change.narrowed(made, made, change()))
    assert {"cu128-torch2.10-cp311", "cu128-torch2.11-cp314"} < found
    assert len(found) == 3


def test_the_one_more_is_one_that_the_change_plans_otherwise(planned: Callable[..., Plan]) -> None:
    before, after = planned(MATRIX), planned(MATRIX + 'sm: {cu128: ["9.0"]}\n')
    touched = {one.id for one in after.wheels if one.cuda == "cu128"}
    for text in "abcdefgh":
        (more,) = ids(ci_change.narrowed(after, before, change(text, "docker/Dockerfile.cu126"))) - ENDS
        assert more in touched


def test_else_one_of_the_cuda_whose_image_changed(planned: Callable[..., Plan]) -> None:
    made = planned(MATRIX)
    for text in "abcdefgh":
        (more,) = ids(ci_change.narrowed(made, made, change(text, "README.md", "docker/Dockerfile.cu128"))) - ENDS
        assert more.startswith("cu128-")


def test_else_changes_visit_them_all(planned: Callable[..., Plan]) -> None:
    made = planned(MATRIX)
    found = [ids(ci_change.narrowed(made, made, change(str(number), "csrc/a.cu"))) - ENDS for number in range(200)]
    assert {len(one) for one in found} == {1}
    assert set().union(*found) == {wheel.id for wheel in made.wheels} - ENDS
    assert found[7] == ids(ci_change.narrowed(made, made, change("7", "csrc/a.cu"))) - ENDS


def test_a_matrix_that_was_not_there_before(planned: Callable[..., Plan]) -> None:
    assert len(ids(ci_change.narrowed(planned(MATRIX), None, change()))) == 4


def test_a_small_plan_is_built_whole(planned: Callable[..., Plan]) -> None:
    made = planned('torch: ["2.14"]\ncuda: [cpu]\nabi: {python: none}\n')
    assert ci_change.narrowed(made, made, change()) == dataclasses.replace(made, drops=())
