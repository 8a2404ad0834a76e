"""A cover report for people: a coloured table, or Markdown for a README."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelmill.names import version_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.table import Table

    from wheelmill.cover import Report
    from wheelmill.trial import Result

COLOURS = {"pass": "green", "fail": "red", "not-available": "dim"}
WORDS = {"pass": "pass", "fail": "fail", "not-available": "n/a"}


def _rows(made: Report) -> dict[str, dict[str, Result]]:
    """Results by `torch 2.11 + cu130` and Python, in canonical order."""
    rows: dict[str, dict[str, Result]] = {}
    for one in made.results:
        rows.setdefault(f"{one.torch} + {one.cuda}", {})[one.python] = one
    return rows


def _pythons(made: Report) -> list[str]:
    return sorted({one.python for one in made.results}, key=version_key)


def _reasons(made: Report) -> dict[str, int]:
    """Each different error or reason, with the number of its note."""
    reasons: dict[str, int] = {}
    for one in made.results:
        if one.error is not None:
            reasons.setdefault(_reason(one), len(reasons) + 1)
    return reasons


def _reason(one: Result) -> str:
    return " ".join((one.error or "").split())


def _word(one: Result | None, reasons: dict[str, int], note: Callable[[int], str]) -> str:
    if one is None:
        return ""
    word = WORDS[one.result] if one.unclaimed is None else f"({WORDS[one.result]})"
    return f"{word}{note(reasons[_reason(one)])}" if one.error is not None else word


def table(made: Report) -> Table:
    """Cells in brackets are outside the wheel's claim."""
    from rich.table import Table
    from rich.text import Text

    pythons, reasons = _pythons(made), _reasons(made)
    out = Table("torch", *pythons, box=None, pad_edge=False)
    for name, row in _rows(made).items():
        cells = []
        for python in pythons:
            one = row.get(python)
            cells.append(Text(_word(one, reasons, lambda n: f" {n}"), style=COLOURS[one.result] if one else ""))
        out.add_row(name, *cells)
    return out


def notes(made: Report) -> list[str]:
    return [f"{number}: {reason}" for reason, number in _reasons(made).items()]


def markdown(made: Report) -> str:
    """The same as a Markdown table with its notes below."""
    pythons, reasons = _pythons(made), _reasons(made)
    lines = [
        f"`{made.subject.file.path.name}`, SHA-256 `{made.subject.file.sha256[:16]}…`",
        "",
        "| torch | " + " | ".join(f"Python {python}" for python in pythons) + " |",
        "|---" * (len(pythons) + 1) + "|",
    ]
    for name, row in _rows(made).items():
        words = (_word(row.get(python), reasons, lambda n: f"<sup>{n}</sup>") for python in pythons)
        lines.append(f"| {name} | " + " | ".join(words) + " |")
    lines += ["", "In brackets: outside what the wheel promises. n/a: not available where this was measured.", ""]
    lines += [f"{number}. {escaped(reason)}" for reason, number in reasons.items()]
    return "\n".join(lines) + "\n"


# References in place of backslashes: one that stands before a mark in the text would undo its escape.
MARKUP = str.maketrans(
    {mark: f"&#{ord(mark)};" for mark in "\\[]"} | {"&": "&amp;", "<": "&lt;", "|": r"\|", "*": r"\*"}
)


def escaped(text: str) -> str:
    """Markup of a stranger's error stays text."""
    return text.replace("`", "'").translate(MARKUP)
