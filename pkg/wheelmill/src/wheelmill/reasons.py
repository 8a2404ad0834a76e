"""Reasons for and against a wheel, by the table tables/reasons.toml, whose head says what each field is."""

from __future__ import annotations

import string
import sys
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

from wheelmill.facts import DATA
from wheelmill.findings import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Kind = Literal["no", "unknown", "note"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    kind: Kind
    message: str
    weight: int = 0
    group: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reason:
    """One reason about one wheel. `weight` is that of its row."""

    rule: str
    kind: Kind
    message: str
    weight: int


@cache
def rows() -> Mapping[str, Row]:
    table = tomllib.loads((DATA / "reasons.toml").read_text(encoding="utf-8"))
    return {name: Row(**row) for name, row in table.items()}


def reason(rule: str, /, **words: object) -> Reason:
    """A reason of that rule; what a stranger wrote in `words` cannot move a terminal's cursor."""
    row = rows()[rule]
    text = string.Formatter().vformat(row.message, (), words)
    return Reason(rule=rule, kind=row.kind, message=printable(text), weight=row.weight)
