"""A report of the gates for people: a coloured table, or Markdown for a job's summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelmill.cover_view import escaped
from wheelmill.gates import BAD, GATES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from wheelmill.gates import Report, Row

COLOURS = {"pass": "green", "fail": "red", "crash": "red", "hang": "red", "incomplete": "yellow", "not-run": "dim"}
ORDER = ("crash", "hang", "fail", "not-run", "pass")


def _columns(made: Report) -> list[tuple[str, str]]:
    """(gate, device) of each column that has rows."""
    return [
        (gate, device)
        for gate in GATES
        for device in ("cpu", "cuda")
        if any(row.gate == gate and row.device == device for row in made.rows)
    ]


def _cell(rows: Sequence[Row]) -> str:
    """The worst of an operator's rows; one that has no meaning there says nothing."""
    said = [row.result if row.result != "not-run" or row.missing else "n/a" for row in rows]
    return next((word for word in ORDER if word in said), "n/a" if said else "")


def cells(made: Report) -> tuple[list[str], list[list[str]]]:
    """(head, lines): an operator a line, a gate and device a column."""
    columns = _columns(made)
    lines = []
    for name in made.operators:
        rows = [row for row in made.rows if row.operator == name]
        found = [_cell([row for row in rows if (row.gate, row.device) == column]) for column in columns]
        if rows:
            lines.append([name, *found])
    return ["operator", *(f"{gate} {device}" for gate, device in columns)], lines


def table(made: Report) -> Table:
    from rich.table import Table
    from rich.text import Text

    head, lines = cells(made)
    out = Table(*head, box=None, pad_edge=False)
    for name, *words in lines:
        out.add_row(Text(name), *(Text(word, style=COLOURS.get(word, "dim")) for word in words))
    return out


def faults(made: Report) -> list[str]:
    """Each unit that did not pass, with its reason, and each finding that is an error."""
    rows = [f"{row.unit}: {row.result}: {row.reason}" for row in made.rows if row.result in BAD]
    return [*rows, *_findings(made, "error")]


def warnings(made: Report) -> list[str]:
    """Findings that fail nothing."""
    return _findings(made, "warning")


def _findings(made: Report, severity: str) -> list[str]:
    return [f"{one.rule}: {one.message}: {one.remedy}" for one in made.findings if one.severity == severity]


def left_out(made: Report) -> list[str]:
    """What was not run, each reason once with how often and where first."""
    seen: dict[str, list[str]] = {}
    for row in made.rows:
        if row.result == "not-run" and row.missing:
            seen.setdefault(f"{row.gate} on {row.device}: {row.reason}", []).append(row.unit)
        for part in row.left_out:
            seen.setdefault(f"{row.gate} on {row.device}: {part}", []).append(row.unit)
    return [f"{what} ({len(units)} units, first {units[0]})" for what, units in seen.items()]


def summary(made: Report) -> str:
    where = made.environment
    beside = f"torch {where['torch']}, Python {where['python']}, {where['card'] or 'no GPU'}, {where['executor']}"
    ran = {row.gate for row in made.rows if row.result != "not-run" or row.missing}
    gates = ", ".join(f"{gate} {verdict if gate in ran else 'n/a'}" for gate, verdict in made.gates.items())
    return f"{made.verdict}: {gates or 'nothing was run'} ({beside})"


def markdown(made: Report) -> str:
    head, lines = cells(made)
    text = [f"`{made.file}`, SHA-256 `{made.sha256[:16]}…`", "", escaped(summary(made)), ""]
    text += ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    text += ["| " + " | ".join(map(escaped, line)) + " |" for line in lines]
    for title, notes in (
        ("What failed", faults(made)),
        ("Warnings", warnings(made)),
        ("What was not run", left_out(made)),
    ):
        if notes:
            text += ["", f"{title}:", "", *(f"- {escaped(note)}" for note in notes)]
    return "\n".join(text) + "\n"
