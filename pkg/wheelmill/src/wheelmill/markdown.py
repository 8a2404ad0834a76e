"""Text in GitHub's Markdown, as lines within what a pull request takes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# GitHub refuses a pull request's text of more than 65,536 characters ("body is too long"), and a refresh and the plan's
# difference go into one.
LIMIT = 30_000
# What has a meaning in GitHub's Markdown. A backslash does not stop a mention of a person or a number: words that
# may hold one are written as code.
SPECIAL = re.compile(r"([\\`*_\[\]<>#|~&$])")


def _line(text: str) -> str:
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def escaped(text: str) -> str:
    """Any text as one line of Markdown that reads as it is."""
    return SPECIAL.sub(r"\\\1", _line(text))


def code(text: str) -> str:
    """Any text as Markdown's code."""
    line = _line(text)
    ticks = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{pad}{line}{pad}{ticks}" if line else "nothing"


def capped(lines: Iterable[str], limit: int = LIMIT) -> str:
    """The lines, whole, to that many characters; the rest is counted."""
    every = list(lines)
    size = 0
    taken: list[str] = []
    for line in every:
        size += len(line) + 1
        if size > limit:
            taken.append(f"\n… and {len(every) - len(taken)} more lines, which `--json` has.")
            break
        taken.append(line)
    return "\n".join(taken) + "\n"
