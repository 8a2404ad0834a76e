"""The doctor's findings, and the table of checks that they are of."""

from __future__ import annotations

import string
import sys
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from wheelmill.facts import DATA
from wheelmill.findings import SEVERITIES, Severity, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """A row of tables/doctor.toml; its head says what each field is."""

    id: str
    area: str
    severity: Severity
    title: str
    so: str
    will: str
    mend: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What is so, what will happen, and the command, or the change, that mends it."""

    id: str
    area: str
    severity: Severity
    so: str
    will: str
    mend: str


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads((DATA / "doctor.toml").read_text(encoding="utf-8"))


@cache
def checks() -> Mapping[str, Check]:
    """Every check by its id, in the table's order."""
    return {name: Check(id=name, **row) for name, row in _table().items() if name != "installers"}


def installers() -> Mapping[str, Mapping[str, str]]:
    """The commands that install what a build needs of the system, by the name of the system's installer."""
    rows: Mapping[str, Mapping[str, str]] = _table()["installers"]
    return rows


def found(check: str, severity: Severity | None = None, /, **words: object) -> Finding:
    """A finding of that check. `severity` replaces the check's own where the case is milder, or worse."""
    row = checks()[check]
    so, will, mend = (printable(string.Formatter().vformat(text, (), words)) for text in (row.so, row.will, row.mend))
    return Finding(id=check, area=row.area, severity=severity or row.severity, so=so, will=will, mend=mend)


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Each finding once, the worst first, else in the table's order."""
    place = list(checks())
    return tuple(sorted(dict.fromkeys(findings), key=lambda one: (SEVERITIES.index(one.severity), place.index(one.id))))


def markdown() -> str:
    """The list of checks, a line each, as docs/doctor.md holds it."""
    rows = [f"| `{one.id}` | {one.area} | {one.severity} | {one.title} |" for one in checks().values()]
    return "\n".join(["| finding | of | severity | what is checked |", "|---|---|---|---|", *rows])
