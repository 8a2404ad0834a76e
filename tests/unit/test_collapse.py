"""The fewest wheels: each cell is served by exactly one, and nothing collapses that must not."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wheelmill import facts, plan
from wheelmill.choice import Choice
from wheelmill.matrix import Matrix, Policy, Project

if TYPE_CHECKING:
    from collections.abc import Callable

    from wheelmill.model import Plan

KNOWN = facts.load()


def test_nothing_collapses_by_default(planned: Callable[..., Plan]) -> None:
    made = planned('torch: ["2.10", "2.11"]\ncuda: [cu130]\npython: ["3.11", "3.13t"]\n')
    assert [wheel.id for wheel in made.wheels] == [
        "cu130-torch2.10-cp311",
        "cu130-torch2.10-cp313t",
        "cu130-torch2.11-cp311",
        "cu130-torch2.11-cp313t",
    ]
    assert {wheel.python_abi for wheel in made.wheels} == {"version"}
    assert [wheel.python for wheel in made.wheels[:2]] == ["3.11", "3.13t"]


def test_python_collapses_where_none_of_it_is_used(planned: Callable[..., Plan]) -> None:
    made = planned('torch: ["2.11"]\ncuda: [cpu]\npython: ["3.11", "3.13t"]\nabi: {python: none}\n')
    [wheel] = made.wheels
    assert (wheel.id, wheel.python, wheel.python_abi, len(wheel.cells)) == ("cpu-torch2.11", None, "none", 2)


def test_the_limited_api_leaves_out_free_threaded_pythons(planned: Callable[..., Plan]) -> None:
    made = planned('torch: ["2.11"]\ncuda: [cpu]\npython: ["3.12", "3.13", "3.13t"]\nabi: {python: abi3}\n')
    assert [(wheel.id, wheel.python, wheel.python_abi) for wheel in made.wheels] == [
        ("cpu-torch2.11", "3.12", "abi3"),
        ("cpu-torch2.11-cp313t", "3.13t", "version"),
    ]


def test_torch_collapses_from_the_floor_on(planned: Callable[..., Plan]) -> None:
    made = planned(
        'torch: ">=2.9"\ncuda: [cpu, cu130, cu132]\nabi: {torch: stable>=2.10, python: none}\n'
    )  # fmt: skip
    told = {wheel.id: (wheel.torch, wheel.local, wheel.requires, wheel.torch_abi) for wheel in made.wheels}
    assert told == {
        "cpu-torch2.9": ("2.9", "cpu.torch2.9", "torch==2.9.*", "release"),
        "cpu-stable2.10": ("2.10", "cpu", "torch>=2.10", "stable"),
        "cu130-torch2.9": ("2.9", "cu130.torch2.9", "torch==2.9.*", "release"),
        "cu130-stable2.10": ("2.10", "cu130", "torch>=2.10", "stable"),
        # torch has cu132 builds from 2.12 on; the wheel is built with 2.10's headers all the same.
        "cu132-stable2.10": ("2.10", "cu132", "torch>=2.10", "stable"),
    }


def test_the_floor_is_built_with_even_where_the_matrix_begins_later(planned: Callable[..., Plan]) -> None:
    made = planned('torch: ">=2.12"\ncuda: [cu130]\nabi: {torch: stable>=2.10, python: none}\n')
    assert [step.wheel.id for step in made.steps] == ["cu130-stable2.10"]
    assert made.steps[0].torch_release == "2.10.0"


MATRICES = st.builds(
    Matrix,
    path=st.just(Path("matrix.yaml")),
    root=st.just(Path()),
    project=st.just(Project(path=Path(), sources=(), name=None, build_torch="auto")),
    torch=st.sampled_from([">=2.4", "<2.10", ">=2.9", "!=2.10"]).map(lambda text: Choice(key="torch", range=text)),
    cuda=st.permutations(["cpu", "cu126", "cu130"]).map(tuple),
    python=st.permutations(["3.10", "3.12", "3.13", "3.13t"]).map(
        lambda some: Choice(key="python", listed=tuple(some))
    ),
    sm=st.sampled_from([{"default": ("all-major",)}, {"default": ("all",)}, {"default": ("9.0+PTX", "8.0")}]),
    stable_from=st.sampled_from([None, "2.10", "2.12"]),
    python_abi=st.sampled_from(["none", "abi3", "version"]),
    operators=st.none(),
    policy=st.just(Policy(glibc="2.28", size=None)),
    gates=st.just({}),
    toolkit_minor=st.just("exact"),
    toolkit_dropped=st.just(value=False),
    facts=st.none(),
    lines=st.just({}),
)


@settings(deadline=None)  # machines that run tests are shared
@given(matrix=MATRICES)
def test_every_cell_is_served_by_exactly_one_wheel_that_fits_it(matrix: Matrix) -> None:
    made = plan.make(matrix, KNOWN)
    served = [cell for wheel in made.wheels for cell in wheel.cells]
    assert len(served) == len(set(served))
    assert set(served) == set(made.cells)
    assert len({wheel.id for wheel in made.wheels}) == len(made.wheels)
    for wheel in made.wheels:
        for cell in wheel.cells:
            assert cell.cuda == wheel.cuda
            assert wheel.torch_abi == "stable" or cell.torch == wheel.torch
            assert wheel.python_abi != "version" or cell.python == wheel.python
            assert wheel.python_abi != "abi3" or not cell.python.endswith("t")
            assert cell.python in KNOWN.torch[cell.torch].python


@settings(deadline=None)  # machines that run tests are shared
@given(matrix=MATRICES)
def test_the_order_in_which_things_are_listed_does_not_matter(matrix: Matrix) -> None:
    turned = dataclasses.replace(
        matrix,
        cuda=tuple(sorted(matrix.cuda)),
        python=Choice(key="python", listed=tuple(sorted(matrix.python.listed))),
    )
    assert plan.make(matrix, KNOWN) == plan.make(turned, KNOWN)


@pytest.mark.parametrize("abi", ["none", "abi3", "per-version"])
def test_ids_sort_by_number(planned: Callable[..., Plan], abi: str) -> None:
    made = planned(f'torch: ">=2.8"\ncuda: [cu130, cu126]\npython: ">=3.9"\nabi: {{python: {abi}}}\n')
    torches = [wheel.torch for wheel in made.wheels if wheel.cuda == "cu126"]
    assert torches == sorted(torches, key=lambda minor: tuple(map(int, minor.split("."))))
    assert [wheel.cuda for wheel in made.wheels] == sorted(wheel.cuda for wheel in made.wheels)
