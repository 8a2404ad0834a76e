"""The few wheels that a pull request builds: the ends of the ranges, and one that the change touches. No I/O."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelmill.model import Plan
from wheelmill.names import cuda_key, version_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wheelmill.model import Step, Wheel

DOCKERFILE = re.compile(r"(?:^|/)Dockerfile\.(cu\d+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """The paths that a change touches, and a hexadecimal digest of what it does to them."""

    paths: tuple[str, ...]
    digest: str


def narrowed(plan: Plan, before: Plan | None, change: Change) -> Plan:
    """The part of the plan that a pull request builds: at most four wheels. `before` is the plan without the change."""
    kept = {step.wheel.id for step in _ends(plan.steps)}
    others = [step for step in plan.steps if step.wheel.id not in kept]
    touched = _touched(others, before, change)
    if touched:
        # Over many changes every one is chosen.
        kept.add(touched[int(change.digest, 16) % len(touched)].wheel.id)
    steps = tuple(step for step in plan.steps if step.wheel.id in kept)
    cells = {cell for step in steps for cell in step.wheel.cells}
    return Plan(
        cells=tuple(cell for cell in plan.cells if cell in cells),
        drops=(),
        wheels=tuple(step.wheel for step in steps),
        steps=steps,
    )


def _ends(steps: Sequence[Step]) -> Iterator[Step]:
    """The oldest CUDA with the oldest torch, the newest with the newest, and the newest cpu wheel."""
    cuda = [step for step in steps if step.wheel.cuda != "cpu"]
    cpu = [step for step in steps if step.wheel.cuda == "cpu"]
    if cuda:
        yield min(cuda, key=lambda step: _age(step.wheel, oldest=True))
        yield max(cuda, key=lambda step: _age(step.wheel, oldest=False))
    if cpu:
        yield max(cpu, key=lambda step: _age(step.wheel, oldest=False))


def _age(wheel: Wheel, *, oldest: bool) -> tuple[object, ...]:
    """By CUDA, by the oldest or newest torch and Python served; the Pythons with a GIL are the usual ones."""
    end = min if oldest else max
    torch = end(version_key(cell.torch) for cell in wheel.cells)
    usual = [cell.python for cell in wheel.cells if not cell.python.endswith("t")]
    python = end(map(version_key, usual or [cell.python for cell in wheel.cells]))
    return cuda_key(wheel.cuda), torch, bool(usual) != oldest, python


def _touched(steps: Sequence[Step], before: Plan | None, change: Change) -> Sequence[Step]:
    """Those of the steps that the change is about: planned otherwise, else of a CUDA whose image changed, else all."""
    old = {step.wheel.id: step for step in before.steps} if before else {}
    planned = [step for step in steps if old.get(step.wheel.id) != step]
    images = {match[1] for path in change.paths if (match := DOCKERFILE.search(path))}
    return planned or [step for step in steps if step.wheel.cuda in images] or steps
