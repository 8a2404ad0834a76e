"""Progress of a publication by bytes: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from rich.progress import Progress, TaskID
    from typing_extensions import Self

    from wheelmill.publish import Outcome

EVERY = 5.0


class Sending:
    """Says on standard error how much of the new wheels is sent. Bytes come from the threads that send them."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._total = self._done = 0
        self._said = time.monotonic()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def begin(self, outcome: Outcome) -> None:
        self._total = outcome.size
        if self._quiet or not outcome.size or not sys.stderr.isatty():
            return
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

        columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("sending", total=outcome.size)
        self._bar.start()

    def sent(self, size: int) -> None:
        self._done += size
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._done)
        elif not self._quiet and time.monotonic() - self._said > EVERY:
            self._said = time.monotonic()
            self.note(f"sent {self._done / 1e6:.0f} of {self._total / 1e6:.0f} MB")

    def note(self, text: str) -> None:
        if self._bar is not None:
            self._bar.console.print(text, highlight=False, markup=False)
        else:
            print(text, file=sys.stderr, flush=True)
