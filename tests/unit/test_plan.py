"""Steps, and the plan as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from wheelmill import plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from wheelmill.model import Plan


def test_a_step_names_exact_inputs(planned: Callable[..., Plan]) -> None:
    made = planned('torch: ["2.9"]\ncuda: [cpu, cu130]\npython: ["3.11"]\n')
    assert [(step.wheel.id, step.torch_release, step.toolkit, step.python) for step in made.steps] == [
        ("cpu-torch2.9-cp311", "2.9.1", None, "3.11"),
        ("cu130-torch2.9-cp311", "2.9.1", "13.0", "3.11"),
    ]


def test_a_wheel_for_every_python_is_built_with_the_newest_that_its_torch_has(
    planned: Callable[..., Plan],
) -> None:
    made = planned('torch: ">=2.10"\ncuda: [cpu]\nabi: {torch: stable>=2.10, python: none}\n')
    assert [step.python for step in made.steps] == ["3.14"]  # 3.15 is served too, and torch 2.10 lacks it


def test_a_wheel_for_every_python_is_built_with_one_that_it_serves(planned: Callable[..., Plan]) -> None:
    made = planned('torch: ["2.11"]\ncuda: [cpu]\npython: "<3.13"\nabi: {python: none}\n')
    assert [step.python for step in made.steps] == ["3.12"]


def test_a_wheel_for_free_threaded_pythons_alone_is_still_built_with_a_gil(
    planned: Callable[..., Plan],
) -> None:
    made = planned('torch: ["2.11"]\ncuda: [cpu]\npython: ["3.13t"]\nabi: {python: none}\n')
    assert [step.python for step in made.steps] == ["3.14"]


def test_the_limited_api_is_built_with_the_lowest_python(planned: Callable[..., Plan]) -> None:
    made = planned('torch: ["2.11"]\ncuda: [cpu]\npython: ">=3.11"\nabi: {python: abi3}\n')
    assert [step.python for step in made.steps] == ["3.11"]


def test_json_is_versioned_and_names_wheels_by_id(planned: Callable[..., Plan]) -> None:
    made = planned('torch: ["2.11"]\ncuda: [cu130]\npython: ["3.11"]\n')
    assert json.loads(json.dumps(plan.to_json(made))) == {
        "version": 1,
        "cells": [{"id": "cu130-torch2.11-cp311", "cuda": "cu130", "torch": "2.11", "python": "3.11"}],
        "drops": [],
        "wheels": [
            {
                "id": "cu130-torch2.11-cp311",
                "cuda": "cu130",
                "torch": "2.11",
                "torch_abi": "release",
                "python": "3.11",
                "python_abi": "version",
                "sm": ["7.5", "8.0", "9.0", "10.0", "12.0+PTX"],
                "local": "cu130.torch2.11",
                "requires": "torch==2.11.*",
                "cells": ["cu130-torch2.11-cp311"],
            }
        ],
        "steps": [
            {
                "wheel": "cu130-torch2.11-cp311",
                "torch_release": "2.11.0",
                "toolkit": "13.0",
                "python": "3.11",
            }
        ],
    }
