"""SELECT: globs on the ids of wheels and cells."""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING

from wheelmill.errors import InputError
from wheelmill.model import Plan
from wheelmill.names import listing, nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wheelmill.model import Drop


def apply(plan: Plan, patterns: Sequence[str]) -> Plan:
    """The part of the plan that is selected: each wheel of which a pattern matches the id, or a cell's id.

    A pattern matches an id whole, or up to a `-` of it: `cu130` selects all that begins with `cu130-`.
    A wheel keeps all its cells. Raises InputError for a pattern that matches nothing.
    """
    wanted: set[str] = set()
    for pattern in patterns:
        matcher = _matcher(pattern)
        found = {
            wheel.id
            for wheel in plan.wheels
            if matcher.match(wheel.id) or any(matcher.match(cell.id) for cell in wheel.cells)
        }
        if not found:
            raise _nothing(plan, pattern, matcher)
        wanted |= found
    wheels = tuple(wheel for wheel in plan.wheels if wheel.id in wanted)
    kept = {cell for wheel in wheels for cell in wheel.cells}
    matchers = [_matcher(pattern) for pattern in patterns]
    return Plan(
        cells=tuple(cell for cell in plan.cells if cell in kept),
        drops=tuple(drop for drop in plan.drops if any(matcher.match(drop.id) for matcher in matchers)),
        wheels=wheels,
        steps=tuple(step for step in plan.steps if step.wheel.id in wanted),
    )


def _matcher(pattern: str) -> re.Pattern[str]:
    return re.compile(f"{fnmatch.translate(pattern)}|{fnmatch.translate(pattern + '-*')}")


def _nothing(plan: Plan, pattern: str, matcher: re.Pattern[str]) -> InputError:
    for drop in plan.drops:
        if _names(pattern, matcher, drop):
            return InputError(
                f'"{pattern}" names a cell that does not exist: {drop.reason}.',
                remedy="`wheelmill plan --explain` lists every cell that was dropped, and why.",
            )
    wheels = [wheel.id for wheel in plan.wheels]
    parts = pattern.count("-") + 1
    ids = (*wheels, *(cell.id for cell in plan.cells))
    near = nearest(pattern, dict.fromkeys("-".join(one.split("-")[:parts]) for one in ids))
    hint = f'Did you mean "{near}"? ' if near else ""
    return InputError(
        f'"{pattern}" matches no wheel and no cell of this matrix.',
        remedy=f"{hint}The wheels are {listing(wheels)}.",
    )


def _names(pattern: str, matcher: re.Pattern[str], drop: Drop) -> bool:
    """Whether the pattern selects the dropped id, or names a cell of a dropped environment."""
    return matcher.match(drop.id) is not None or fnmatch.fnmatchcase(pattern, drop.id + "-*")
