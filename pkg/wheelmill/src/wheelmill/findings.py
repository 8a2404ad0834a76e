"""Findings, and the table of rules that they are of: pure facts → findings, the verdict is the worst."""

from __future__ import annotations

import string
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
LENGTH = 2000
TABLE = Path(__file__).parent / "tables" / "rules.toml"


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """A row of tables/rules.toml; its head says what each field is."""

    id: str
    severity: Severity
    title: str
    message: str
    remedy: str
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One observation. `message` says what will happen to whom, `remedy` what to do. `waived` is a waiver's reason."""

    rule: str
    severity: Severity
    library: str | None
    message: str
    remedy: str
    waived: str | None = None


@cache
def rules() -> Mapping[str, Rule]:
    """Every rule by its id, in the table's order."""
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return {name: Rule(id=name, **row) for name, row in table.items()}


def found(rule: str, library: str | None = None, /, *, severity: Severity | None = None, **words: object) -> Finding:
    """A finding of that rule. `severity` replaces the rule's own where the case is milder than the rule."""
    row = rules()[rule]
    return Finding(
        rule=rule,
        severity=severity or row.severity,
        library=library,
        message=printable(string.Formatter().vformat(row.message, (), words)),
        remedy=printable(string.Formatter().vformat(row.remedy, (), words)),
    )


def printable(text: str) -> str:
    """The text without what would move a terminal's cursor, and of a length that can be read."""
    if len(text) <= LENGTH and text.isprintable():
        return text
    plain = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text[:LENGTH])
    return plain if len(text) <= LENGTH else plain + "…"


def worst(findings: Iterable[Finding]) -> Severity | None:
    """The severity of the worst finding, None without one."""
    present = {finding.severity for finding in findings}
    return next((severity for severity in SEVERITIES if severity in present), None)
