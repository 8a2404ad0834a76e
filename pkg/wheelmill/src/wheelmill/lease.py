"""A lock that is an object in a bucket: held by whoever wrote it, as long as it is written again and again.

A holder that goes silent for `seconds`, by the server's own clock, is taken over; one that cannot renew its lease stops
writing well before that. Two takers cannot both win, since each step names the state that it replaces.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from wheelmill.errors import MissingError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Parts of a lease: it is renewed after one, and not relied upon after the other, so that a write that is under way
# when a holder is cut off ends before another one begins.
RENEW, RELY = 0.25, 0.6
POLL = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Holder:
    """Who holds a lock. `state` names what is there now; `silent` is how long it was not renewed, in seconds."""

    state: str
    owner: str
    since: str
    seconds: float
    silent: float


class Slot(Protocol):
    """Where the lock lies. Each change is made whole, and only if the state is still the one that is named."""

    def look(self) -> Holder | None:
        """Who holds it, None where nobody does."""
        ...

    def write(self, state: str | None, owner: str, since: str, seconds: float) -> str | None:
        """Take it or renew it, where its state is still that (None: it is free); the new state, or None if not."""
        ...

    def free(self, state: str) -> None:
        """Let go of it, where its state is still that."""
        ...


class Lease:
    """One run's hold on a lock. `seconds` is how long others wait for a sign of life, `wait` how long this run does."""

    def __init__(self, slot: Slot, owner: str, *, seconds: float, wait: float, tell: Callable[[str], None]) -> None:
        self._slot, self._owner, self._seconds, self._wait, self._tell = slot, owner, seconds, wait, tell
        self._state: str | None = None
        self._renewed = 0.0
        self._since = ""
        self._done = threading.Event()
        self._guard = threading.Lock()

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Raises MissingError when another run holds it for longer than this one waits."""
        self._take()
        self._done.clear()
        beat = threading.Thread(target=self._beat, name="wheelmill-lease", daemon=True)
        beat.start()
        try:
            yield
        finally:
            self._done.set()
            beat.join()
            with self._guard:
                # What cannot be freed now is free when the lease is over.
                with contextlib.suppress(OSError, MissingError):
                    if self._state is not None:
                        self._slot.free(self._state)
                self._state = None

    def check(self) -> None:
        """Raises MissingError when this run can no longer be sure that it is the only one to write."""
        with self._guard:
            held = self._state is not None and time.monotonic() - self._renewed < self._seconds * RELY
        if not held:
            raise MissingError(
                "this run lost its lock on the index, because it could not renew it in time or another run took it "
                "over, so it stopped before it wrote anything more",
                remedy="run the same command again: what was sent is kept, and pages are sound as they are",
            )

    def _take(self) -> None:
        self._since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        until = time.monotonic() + self._wait
        told: str | None = None
        while True:
            holder = self._slot.look()
            late = time.monotonic() > until
            stale = holder is not None and holder.silent > holder.seconds
            if holder is None or stale:
                begun = time.monotonic()
                taken = self._slot.write(holder.state if holder else None, self._owner, self._since, self._seconds)
                if taken is not None:
                    self._state, self._renewed = taken, begun
                    if holder is not None:
                        self._tell(f"took over the lock of {holder.owner}, silent for {holder.silent:.0f} s")
                    return
                if late:
                    raise MissingError(
                        f"the lock of this index looked free for {self._wait:.0f} s and could not be taken",
                        remedy="see whether others publish there all the time, and run the same command again",
                    )
            elif late:
                raise MissingError(
                    f"{holder.owner} has been writing this index since {holder.since}, and two at once would spoil it",
                    remedy=f"run again when that run is done; if it is dead, its lock is free {holder.seconds:.0f} s "
                    "after its last sign of life",
                )
            elif told != holder.owner:
                told = holder.owner
                self._tell(f"waiting for {holder.owner}, who writes this index since {holder.since}")
            # Runs that wait together do not ask together.
            time.sleep(POLL * random.uniform(0.05, 1))  # noqa: S311, it hides nothing

    def _beat(self) -> None:
        while not self._done.wait(self._seconds * RENEW):
            with self._guard:
                if self._state is None:
                    return
                begun = time.monotonic()
                # A server that does not answer now may do so at the next beat; `check` counts the time.
                with contextlib.suppress(OSError, MissingError):
                    self._state = self._slot.write(self._state, self._owner, self._since, self._seconds)
                    self._renewed = begun
