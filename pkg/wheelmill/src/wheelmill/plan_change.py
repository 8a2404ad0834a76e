"""The difference of two plans, from the JSON of one to the other's: wheels and cells that come, go and change."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from wheelmill import plan as planning
from wheelmill.errors import InputError
from wheelmill.markdown import capped, code
from wheelmill.names import cuda_key, version_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sized

    from wheelmill.model import Plan

# In the order in which a change of one is told. A wheel's cells are told apart, as those that it gains and loses.
WHEEL = ("torch", "torch_abi", "python", "python_abi", "sm", "local", "requires")
STEP = ("torch_release", "toolkit", "python")
BUILT = {"torch_release": "torch that builds", "toolkit": "toolkit that builds", "python": "Python that builds"}
SAID = {"torch_abi": "torch ABI", "python_abi": "Python ABI", "sm": "GPU targets", "local": "local version"}
Word = Annotated[str, Field(max_length=200)]
CELL = re.compile(
    r"(?P<cuda>cpu|cu[0-9]{2,6})-torch(?P<torch>[0-9]{1,4}\.[0-9]{1,4})-cp(?P<major>[0-9])(?P<minor>[0-9]{1,4}t?)"
)
CellId = Annotated[str, Field(pattern=f"^{CELL.pattern}$")]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Cell(_Model):
    id: CellId


class _Wheel(_Model):
    id: Word
    torch: Word
    torch_abi: Word
    python: Word | None
    python_abi: Word
    sm: tuple[Word, ...]
    local: Word
    requires: Word
    cells: tuple[CellId, ...]


class _Step(_Model):
    wheel: Word
    torch_release: Word
    toolkit: Word | None
    python: Word


class Stated(_Model):
    """A plan's JSON, as far as two of them are compared."""

    version: Literal[1]
    cells: tuple[_Cell, ...]
    wheels: tuple[_Wheel, ...]
    steps: tuple[_Step, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Changed:
    """A wheel of both plans: each field that differs with its two values, and the cells that it gains and loses."""

    id: str
    fields: Mapping[str, tuple[object, object]]
    gains: tuple[str, ...]
    loses: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """From one plan to another, by ids; everything in canonical order, whatever the order of the plans' JSON."""

    wheels_new: tuple[str, ...]
    wheels_gone: tuple[str, ...]
    wheels_changed: tuple[Changed, ...]
    cells_new: tuple[str, ...]
    cells_gone: tuple[str, ...]

    def __bool__(self) -> bool:
        return any((self.wheels_new, self.wheels_gone, self.wheels_changed, self.cells_new, self.cells_gone))


def parse(text: str | bytes, where: str) -> Stated:
    """A plan as `plan --json` prints it. Raises InputError for anything else."""
    try:
        return Stated.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        at = ".".join(map(str, first["loc"]))
        raise InputError(
            f"{where} is no plan: {f'{at}: ' if at else ''}{first['msg']}",
            remedy="make it with `wheelmill plan --json`",
        ) from error


def of(plan: Plan) -> Stated:
    """A plan as its own JSON states it, so that both sides are read alike."""
    return parse(json.dumps(planning.to_json(plan)), "this plan")


def compare(old: Stated, new: Stated) -> Difference:
    """What `new` has that `old` has not, the other way round, and what both have differently."""
    wheels = [{wheel.id: wheel for wheel in plan.wheels} for plan in (old, new)]
    steps = [{step.wheel: step for step in plan.steps} for plan in (old, new)]
    cells = [{cell.id for cell in plan.cells} for plan in (old, new)]
    changed = []
    for name in sorted(wheels[0].keys() & wheels[1].keys(), key=_natural):
        before, after = wheels[0][name], wheels[1][name]
        fields = {**_fields(WHEEL, before, after), **_fields(STEP, steps[0].get(name), steps[1].get(name), "step.")}
        gains, loses = set(after.cells) - set(before.cells), set(before.cells) - set(after.cells)
        if fields or gains or loses:
            changed.append(Changed(id=name, fields=fields, gains=_sorted(gains, _cell), loses=_sorted(loses, _cell)))
    return Difference(
        wheels_new=_sorted(wheels[1].keys() - wheels[0].keys(), _natural),
        wheels_gone=_sorted(wheels[0].keys() - wheels[1].keys(), _natural),
        wheels_changed=tuple(changed),
        cells_new=_sorted(cells[1] - cells[0], _cell),
        cells_gone=_sorted(cells[0] - cells[1], _cell),
    )


def _sorted(ids: Iterable[str], key: Callable[[str], Any]) -> tuple[str, ...]:
    return tuple(sorted(ids, key=key))


def _fields(names: tuple[str, ...], old: Any, new: Any, prefix: str = "") -> dict[str, tuple[object, object]]:
    pairs = {prefix + name: (getattr(old, name, None), getattr(new, name, None)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Runs of digits by number, `cpu` before any CUDA."""
    parts = re.findall(r"\d+|\D+", name)
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts)


def _parts(cell: str) -> tuple[str, str, str]:
    """(CUDA, torch, Python) of a cell's id."""
    match = CELL.fullmatch(cell)
    assert match is not None  # noqa: S101 - parse has let no other id in
    return match["cuda"], match["torch"], f"{match['major']}.{match['minor']}"


def _cell(cell: str) -> tuple[int, tuple[int, ...], bool, tuple[int, ...]]:
    cuda, torch, python = _parts(cell)
    return cuda_key(cuda), version_key(torch), python.endswith("t"), version_key(python)


def grouped(cells: Iterable[str]) -> list[tuple[str, str, tuple[str, ...]]]:
    """(CUDA, torch minors, Pythons): cells of one CUDA, the torch minors with the same Pythons together."""
    pythons: dict[tuple[str, str], list[str]] = defaultdict(list)
    for cell in sorted(cells, key=_cell):
        cuda, torch, python = _parts(cell)
        pythons[cuda, torch].append(python)
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for (cuda, torch), offered in pythons.items():
        groups[cuda, tuple(offered)].append(torch)
    return [(cuda, ", ".join(torches), offered) for (cuda, offered), torches in groups.items()]


def to_json(difference: Difference) -> dict[str, object]:
    """`"version": 1`; `changed` says whether there is any difference."""
    return {
        "version": 1,
        "changed": bool(difference),
        "wheels": {
            "new": list(difference.wheels_new),
            "gone": list(difference.wheels_gone),
            "changed": [
                {
                    "id": one.id,
                    "fields": {name: {"from": old, "to": new} for name, (old, new) in one.fields.items()},
                    "cells": {"new": list(one.gains), "gone": list(one.loses)},
                }
                for one in difference.wheels_changed
            ],
        },
        "cells": {"new": list(difference.cells_new), "gone": list(difference.cells_gone)},
    }


def markdown(difference: Difference, new: Stated) -> str:
    """The difference as a pull request tells it."""
    return capped(_markdown(difference, new))


def _markdown(difference: Difference, new: Stated) -> Iterator[str]:
    yield "## The plan"
    yield ""
    if not difference:
        yield f"No wheel and no cell changed: {_many(new.wheels, 'wheel')} for {_many(new.cells, 'cell')}."
        return
    yield f"{_many(new.wheels, 'wheel')} for {_many(new.cells, 'cell')} now."
    served = {wheel.id: wheel.cells for wheel in new.wheels}
    if difference.wheels_new:
        yield from ("", f"### {_many(difference.wheels_new, 'new wheel')}", "")
        yield from (f"- {code(name)}, for {_many(served[name], 'cell')}" for name in difference.wheels_new)
    if difference.wheels_gone:
        yield from ("", f"### {_many(difference.wheels_gone, 'wheel')} gone", "")
        yield from (f"- {code(name)}" for name in difference.wheels_gone)
    if difference.wheels_changed:
        yield from ("", f"### {_many(difference.wheels_changed, 'wheel')} changed", "")
        yield from (f"- {code(one.id)}: {_what(one)}" for one in difference.wheels_changed)
    news, gone = _many(difference.cells_new, "new cell"), f"{_many(difference.cells_gone, 'cell')} gone"
    for cells, title in ((difference.cells_new, news), (difference.cells_gone, gone)):
        if cells:
            yield from ("", f"### {title}", "", "| CUDA | torch | Python |", "|---|---|---|")
            yield from (f"| {cuda} | {torch} | {', '.join(offered)} |" for cuda, torch, offered in grouped(cells))


def _many(things: Sized, name: str) -> str:
    return f"{len(things)} {name}{'' if len(things) == 1 else 's'}"


def _what(one: Changed) -> str:
    words = [f"{_said(name)} {_value(old)} → {_value(new)}" for name, (old, new) in one.fields.items()]
    words += [f"serves {_many(one.gains, 'cell')} more"] if one.gains else []
    words += [f"serves {_many(one.loses, 'cell')} no more"] if one.loses else []
    return "; ".join(words)


def _said(name: str) -> str:
    return BUILT[name.removeprefix("step.")] if name.startswith("step.") else SAID.get(name, name)


def _value(value: object) -> str:
    return code(" ".join(value) if isinstance(value, tuple) else "" if value is None else str(value))
