"""Events of a run, and the one place that shows them: a live table, plain lines, or a CI system's groups."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from rich.table import Table
    from typing_extensions import Self

Status = Literal["built", "unchanged", "failed", "unproven"]
SHOWN = {"built": "green", "unchanged": "green", "failed": "red", "unproven": "yellow"}


class Reporter(Protocol):
    """What the engine tells of its progress. `row` is a wheel's id."""

    def step(self, row: str, what: str) -> None: ...
    def done(self, row: str, status: Status, detail: str) -> None: ...
    def note(self, text: str) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


@dataclass(slots=True)
class _Row:
    step: str = "waiting"
    started: float = 0.0
    ended: float = 0.0
    status: Status | None = None


def _seconds(row: _Row) -> str:
    if not row.started:
        return ""
    return f"{(row.ended or time.monotonic()) - row.started:.0f} s"


class Plain:
    """One line an event, for pipes and log files."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def step(self, row: str, what: str) -> None:
        print(f"{time.strftime('%H:%M:%S')} {row}: {what}", file=sys.stderr, flush=True)

    def done(self, row: str, status: Status, detail: str) -> None:
        print(f"{time.strftime('%H:%M:%S')} {row}: {status}: {detail}", file=sys.stderr, flush=True)

    def note(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


class Groups(Plain):
    """Plain lines folded into a group a wheel, in GitHub Actions' workflow commands."""

    def __init__(self) -> None:
        self._open = ""

    def step(self, row: str, what: str) -> None:
        if self._open != row:
            self._close()
            print(f"::group::{row}", file=sys.stderr)
            self._open = row
        super().step(row, what)

    def done(self, row: str, status: Status, detail: str) -> None:
        self._close()
        super().done(row, status, detail)

    def _close(self) -> None:
        if self._open:
            print("::endgroup::", file=sys.stderr, flush=True)
            self._open = ""


@dataclass(slots=True)
class Live:
    """A table of wheels with the step in hand and the time it has taken, redrawn in place."""

    rows: dict[str, _Row] = field(default_factory=dict)
    _live: object = None

    def __rich__(self) -> Table:
        from rich.table import Table
        from rich.text import Text

        table = Table("wheel", "step", "time", box=None, pad_edge=False)
        for name, row in self.rows.items():
            colour = SHOWN[row.status] if row.status else "cyan" if row.started else "dim"
            table.add_row(name, Text(row.step, style=colour), _seconds(row))
        return table

    def __enter__(self) -> Self:
        from rich.console import Console
        from rich.live import Live as RichLive

        live = RichLive(self, console=Console(stderr=True), refresh_per_second=4, get_renderable=self.__rich__)
        live.start()
        self._live = live
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()  # type: ignore[attr-defined]

    def step(self, row: str, what: str) -> None:
        entry = self.rows.setdefault(row, _Row())
        entry.started = entry.started or time.monotonic()
        entry.step = what

    def done(self, row: str, status: Status, detail: str) -> None:
        entry = self.rows.setdefault(row, _Row())
        entry.step, entry.status, entry.ended = f"{status}: {detail}", status, time.monotonic()

    def note(self, text: str) -> None:
        self._live.console.print(text, highlight=False, markup=False)  # type: ignore[attr-defined]


def choose(rows: Sequence[str]) -> Reporter:
    """The reporter that fits where standard error goes."""
    if os.environ.get("GITHUB_ACTIONS") == "true":
        return Groups()
    if sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        return Live(rows={row: _Row() for row in rows})
    return Plain()
