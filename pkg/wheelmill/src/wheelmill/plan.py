"""Matrix and facts → plan, and the plan as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelmill import collapse, resolve, selection
from wheelmill.model import Plan, Step
from wheelmill.names import version_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wheelmill.facts import Facts
    from wheelmill.matrix import Matrix
    from wheelmill.model import Wheel

VERSION = 1


def make(matrix: Matrix, facts: Facts, select: Sequence[str] = ()) -> Plan:
    """The cells that exist, the fewest wheels that serve them, and the step that builds each wheel.

    The same input gives the same plan: CUDA ascending with cpu first, then torch, then Python, by number.
    `select` holds globs on ids of wheels and cells; none selects everything.
    Raises InputError where a name in the matrix means nothing, or a pattern matches nothing.
    """
    resolved = resolve.resolve(matrix, facts)
    wheels = collapse.collapse(matrix, facts, resolved)
    whole = Plan(
        cells=resolved.cells,
        drops=resolved.drops,
        wheels=wheels,
        steps=tuple(_step(wheel, facts) for wheel in wheels),
    )
    return selection.apply(whole, select) if select else whole


def to_json(plan: Plan) -> dict[str, object]:
    """The plan as JSON values, `"version": 1`. Wheels name their cells by id, and steps their wheel."""
    return {
        "version": VERSION,
        "cells": [
            {"id": cell.id, "cuda": cell.cuda, "torch": cell.torch, "python": cell.python} for cell in plan.cells
        ],
        "drops": [{"id": drop.id, "reason": drop.reason} for drop in plan.drops],
        "wheels": [_wheel_json(wheel) for wheel in plan.wheels],
        "steps": [
            {
                "wheel": step.wheel.id,
                "torch_release": step.torch_release,
                "toolkit": step.toolkit,
                "python": step.python,
            }
            for step in plan.steps
        ],
    }


def _wheel_json(wheel: Wheel) -> dict[str, object]:
    return {
        "id": wheel.id,
        "cuda": wheel.cuda,
        "torch": wheel.torch,
        "torch_abi": wheel.torch_abi,
        "python": wheel.python,
        "python_abi": wheel.python_abi,
        "sm": list(wheel.sm),
        "local": wheel.local,
        "requires": wheel.requires,
        "cells": [cell.id for cell in wheel.cells],
    }


def _step(wheel: Wheel, facts: Facts) -> Step:
    torch = facts.torch[wheel.torch]
    return Step(
        wheel=wheel,
        torch_release=torch.release,
        toolkit=None if wheel.cuda == "cpu" else facts.cuda[wheel.cuda].minor,
        python=wheel.python or _build_python(wheel, torch.python),
    )


def _build_python(wheel: Wheel, offered: Sequence[str]) -> str:
    """The newest Python with a GIL that the build's torch has; one that the wheel serves, if it can be."""
    plain = [python for python in offered if not python.endswith("t")] or list(offered)
    served = {cell.python for cell in wheel.cells}
    return max([python for python in plain if python in served] or plain, key=version_key)
