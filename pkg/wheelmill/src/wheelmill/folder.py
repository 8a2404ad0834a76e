"""Indexes a folder of wheels: reads what changed in it since it was indexed last, and makes the index list it.

What was seen is told by the size and the time of change of each wheel and of what lies beside it. A full write does not
trust them: it reads every file.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel

from wheelmill import __version__, entries, index, listing, recording, writer
from wheelmill.errors import GateError, InputError, MissingError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from wheelmill.listing import Current
    from wheelmill.recording import Wheel
    from wheelmill.storage import Storage
    from wheelmill.writer import Written

BESIDE = frozenset(
    ("", index.MANIFEST, index.COVER, recording.AUDIT, recording.GATES, entries.PROVENANCE, entries.SIGNATURE)
)
TRIES = 5


class _Seen(BaseModel):
    """By wheel, the stamp of it and of what lies beside it, and whether it was proven."""

    engine: str
    wheels: dict[str, tuple[str, bool]]


class _MovedError(Exception):
    """Another update came between; what was read before it does not hold."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scan:
    """A folder's wheels: those read now, those that are as they were, those that cannot be read, and every stamp."""

    wheels: tuple[Wheel, ...]
    same: frozenset[str]
    same_unproven: frozenset[str]
    faults: tuple[InputError, ...]
    stamps: Mapping[str, str]

    @property
    def proven(self) -> list[str]:
        """The files that an index lists."""
        return sorted({*self.same, *(one.record.file for one in self.wheels if one.proven)})

    @property
    def unproven(self) -> list[str]:
        return sorted({*self.same_unproven, *(one.record.file for one in self.wheels if not one.proven)})

    def seen(self) -> bytes:
        proven = dict.fromkeys(self.unproven, False) | dict.fromkeys(self.proven, True)
        rows = {file: (self.stamps[file], proven[file]) for file in sorted(proven)}
        return _seen(rows)


def stamps(dist: Path) -> dict[str, str]:
    """Size and time of change of each wheel and of what lies beside it."""
    found: dict[str, list[str]] = {}
    with os.scandir(dist) as rows:
        for one in rows:
            name, mark, suffix = one.name.partition(".whl")
            if mark and suffix in BESIDE:
                # A link that leads nowhere is a wheel that cannot be read, and is told of when it is.
                stat = one.stat(follow_symlinks=not one.is_symlink() or Path(one.path).exists())
                found.setdefault(name + mark, []).append(f"{suffix}:{stat.st_size}:{stat.st_mtime_ns}")
    # What lies beside no wheel is nothing of an index.
    return {name: " ".join(sorted(row)) for name, row in sorted(found.items()) if any(one[0] == ":" for one in row)}


def scan(dist: Path, seen: bytes | None = None) -> Scan:
    """Read the wheels of a folder, but for those whose stamp is the one that was `seen`.

    Raises InputError when it holds no wheel at all.
    """
    now, known = stamps(dist), _known(seen)
    if not now:
        raise InputError(f"{dist} holds no wheel", remedy="run `wheelmill build` first, or name the folder it wrote")
    same = {file for file, stamp in now.items() if file in known and known[file][0] == stamp}
    wheels, faults = [], []
    for file in sorted(now.keys() - same):
        try:
            wheels.append(recording.read(dist / file))
        except InputError as error:
            faults.append(error)
    return Scan(
        wheels=tuple(wheels),
        same=frozenset(file for file in same if known[file][1]),
        same_unproven=frozenset(file for file in same if not known[file][1]),
        faults=tuple(faults),
        stamps=now,
    )


def keep_seen(storage: Storage, seen: bytes | None, written: Written) -> None:
    """After an update that was not of the folder: what was `seen` of it before holds for the files it left alone."""
    touched = {*written.changed, *written.removed}
    rows = {file: row for file, row in _known(seen).items() if file not in touched}
    if rows and touched:
        storage.write(writer.SEEN, _seen(rows))


def _seen(rows: Mapping[str, tuple[str, bool]]) -> bytes:
    return json.dumps({"engine": __version__, "wheels": rows}, separators=(",", ":")).encode()


def _known(seen: bytes | None) -> dict[str, tuple[str, bool]]:
    try:
        found = None if seen is None else _Seen.model_validate_json(seen)
    except ValueError:
        return {}
    return found.wheels if found is not None and found.engine == __version__ else {}


def first_fault(found: Scan) -> None:
    """Raises InputError for the first wheel that cannot be read."""
    if found.faults:
        raise found.faults[0]


def write(
    dist: Path,
    storage: Storage,
    *,
    add: bool = False,
    full: bool = False,
    gate: Callable[[Scan], None] = first_fault,
    **options: Any,
) -> tuple[Scan, Written]:
    """Make the index list exactly the proven wheels of a folder, or with `add` these beside what it lists.

    `gate` raises what forbids that; `options` are those of `writer.update`. Raises GateError where none was proven.
    """
    for _ in range(TRIES):
        try:
            return _once(dist, storage, add=add, full=full, gate=gate, **options)
        except _MovedError:
            continue
    raise MissingError(
        f"other updates of the index came between {TRIES} times", remedy="run the same command when they are done"
    )


def _once(
    dist: Path, storage: Storage, *, add: bool, full: bool, gate: Callable[[Scan], None], **options: Any
) -> tuple[Scan, Written]:
    before = storage.read(writer.SEEN)
    found = scan(dist, None if add or full else before)
    gate(found)
    if not found.proven:
        raise GateError(
            f"no wheel of {dist} was proven to load, so there is nothing to index",
            remedy="run `wheelmill build` where the torch of its cells can be had",
        )

    def check(current: Current) -> None:
        nonlocal before
        if not full:
            listing.refuse_foreign(current)
        now = storage.read(writer.SEEN)
        if not add and now != before:
            raise _MovedError
        before = now

    def done(written: Written) -> None:
        if add:
            keep_seen(storage, before, written)
        elif written.changed or written.removed or found.seen() != before:
            storage.write(writer.SEEN, found.seen())

    proven = [one for one in found.wheels if one.proven]
    written = writer.update(
        storage,
        [one.record for one in proven],
        {one.record.file: one.source for one in proven},
        keep=None if add else found.same,
        full=full or not (add or found.same),
        check=check,
        done=done,
        **options,
    )
    return found, written
