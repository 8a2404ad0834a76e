"""Writes an index: files first, what lies beside them next, pages last, each whole or not at all.

Only what changes is written. What an update is about to do stands in the index while it is done, so that after a kill
the next update, whatever it is for, writes every page anew from the records.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelmill import change as changes
from wheelmill import entries, listing, pages, records, rendering
from wheelmill.listing import PENDING, UNLISTED, Pending, Unlisted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from wheelmill.change import Amend, Change, Source
    from wheelmill.listing import Current
    from wheelmill.records import Record
    from wheelmill.storage import Storage

GRACE = dt.timedelta(days=7)
# What was seen of the folder of wheels when it was last indexed; any other update makes it worthless.
SEEN = ".seen.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """The find-links page of each environment, and the files whose entry changed or that no page lists any more.

    `dropped` are of the latter those whose bytes are not what their record says.
    """

    pages: dict[str, str]
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    expired: tuple[str, ...] = ()


def update(
    storage: Storage,
    given: Iterable[Record],
    sources: Mapping[str, Source],
    *,
    keep: Collection[str] | None = None,
    amend: Mapping[str, Amend] | None = None,
    full: bool = False,
    variants: bool | None = None,
    grace: dt.timedelta = GRACE,
    now: dt.datetime | None = None,
    check: Callable[[Current], None] = lambda _: None,
    done: Callable[[Written], None] = lambda _: None,
) -> Written:
    """List the `given` records, whose bytes `sources` has by file name, and of the rest what `keep` names.

    Without `keep` the rest stays. A record without a source is a new record of bytes that the index has; `amend` makes
    one of the record that the index has. `check` sees the index before anything is written and raises what forbids the
    update, `done` is told after it; both while no other writer can write. With `full` every file is read and every page
    written. `variants` turns variant metadata on or off, None leaves it as the index has it. A file that is listed no
    more goes when `grace` is over.

    Raises InputError for a record that contradicts its file's name and an index that cannot be read.
    """
    anew = full and keep is not None and not keep
    time = now or dt.datetime.now(dt.timezone.utc)
    with storage.lock():
        current = listing.read(storage, anew=anew)
        current.verify = full
        check(current)
        with_variants = current.variants if variants is None else variants
        current.whole = current.whole or full or with_variants != current.variants
        change = changes.work_out(current, given, sources, keep, amend or {}, anew=anew)
        before = listing.unlisted(storage, anew=anew)
        left = _left(change, before, time)
        expired = sorted(file for file, since in left.items() if time - since >= grace)
        if change.files or current.whole:
            _write(change, sources, left, with_variants=with_variants)
        _expire(storage, left, expired)
        storage.remove(PENDING)
        written = _written(change, sorted(left.keys() - before.keys()), expired)
        done(written)
    return written


def _written(change: Change, removed: Iterable[str], expired: Iterable[str]) -> Written:
    found = change.files
    root = listing.read(change.current.storage, anew=False)
    return Written(
        pages={name: f"{name}.html" for name in sorted(root.environments, key=pages.environment_key)},
        changed=tuple(file for file, one in found.items() if one is not None),
        removed=tuple(removed),
        dropped=tuple(change.dropped),
        expired=tuple(expired),
    )


def _write(
    change: Change, sources: Mapping[str, Source], left: Mapping[str, dt.datetime], *, with_variants: bool
) -> None:
    """Everything but the removal of files."""
    storage, found = change.current.storage, change.files
    made: Iterable[rendering.Page] = rendering.render(change, with_variants=with_variants)
    if not change.current.whole:
        # A page that cannot be read is found out before anything is written. A whole write reads none, and is large.
        made = list(made)
    storage.write(PENDING, _dumped(Pending(files=tuple(found))))
    storage.remove(SEEN)
    for file in found:
        if file in change.records:
            _files(change, file, sources.get(file))
    gone, kept = [], []
    for path, content in made:
        if content is None:
            gone.append(path)
            continue
        kept.append(path)
        _fresh(storage, path, content)
    gone += rendering.stale(change, kept) if change.current.whole else []
    for path in sorted(set(gone) - set(kept), key=_leads):
        storage.remove(path)
    _keep_time(storage, left)


def _leads(path: str) -> tuple[int, bool, bool, str]:
    """Sort key of pages that go: a list before what it leads to, which lies deeper or is no page."""
    return path.count("/"), not path.endswith(".html"), path.endswith("-variants.json"), path


def _fresh(storage: Storage, path: str, content: bytes) -> None:
    """Write what is not there already, so that copies elsewhere of what did not change stay good."""
    if storage.size(path) != len(content) or storage.read(path) != content:
        storage.write(path, content)


def _files(change: Change, file: str, source: Source | None) -> None:
    """A wheel and what lies beside it; its record last, for it says that the rest is there."""
    storage, record = change.current.storage, change.records[file]
    if source is not None:
        if not _trusted(change, record):
            if file in change.fresh:
                # What vouched for other bytes of that name must never pass for a proof of these.
                for suffix in (entries.SIGNATURE, entries.PROVENANCE):
                    storage.remove(f"files/{file}{suffix}")
            storage.put(f"files/{file}", source.wheel, record.sha256)
        _fresh(storage, f"files/{file}{entries.METADATA}", source.metadata)
        if source.signature is not None:
            _fresh(storage, f"files/{file}{entries.SIGNATURE}", source.signature)
    if file in change.provenance:
        _fresh(storage, f"files/{file}{entries.PROVENANCE}", change.provenance[file])
    _fresh(storage, f"files/{file}{records.RECORD}", entries.encoded(record))


def _trusted(change: Change, record: Record) -> bool:
    """Whether the index has those bytes: as it lists them, or where every page is written anew, as they are read."""
    path = f"files/{record.file}"
    if change.current.whole:
        return change.current.storage.size(path) == record.size and change.current.holds(record.file, record.sha256)
    listed = change.before.get(record.project, {}).get(record.file)
    return listed is not None and listed.sha256 == record.sha256


def _left(change: Change, before: Mapping[str, dt.datetime], now: dt.datetime) -> dict[str, dt.datetime]:
    """When each file that is there and not listed after the update was first unlisted."""
    leaving = {file for file, one in change.files.items() if one is None}
    if change.current.whole:
        names = (path.removeprefix("files/") for path in change.current.storage.list("files/"))
        leaving |= {name for name in names if name.endswith(".whl")}
    after = {file for entries_ in change.after.values() for file in entries_}
    return {file: before.get(file, now) for file in sorted((before.keys() | leaving) - after)}


def _expire(storage: Storage, left: Mapping[str, dt.datetime], expired: Collection[str]) -> None:
    for file in expired:
        for suffix in entries.BESIDE:
            storage.remove(f"files/{file}{suffix}")
    if expired:
        _keep_time(storage, {file: since for file, since in left.items() if file not in expired})


def _keep_time(storage: Storage, left: Mapping[str, dt.datetime]) -> None:
    if left:
        _fresh(
            storage, UNLISTED, _dumped(Unlisted(files={file: entries.stated(since) for file, since in left.items()}))
        )
    else:
        storage.remove(UNLISTED)


def _dumped(value: Pending | Unlisted) -> bytes:
    return (value.model_dump_json(indent=1) + "\n").encode()
