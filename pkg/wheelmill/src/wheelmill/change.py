"""What an update changes in an index: worked out before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from wheelmill import entries, listing, pages
from wheelmill.errors import InputError
from wheelmill.listing import sha256

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

    from wheelmill.entries import Entry
    from wheelmill.listing import Current
    from wheelmill.records import Record


Amend = Callable[["Record"], "Record"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """Where the bytes of a record lie, and what comes with them."""

    wheel: Path
    metadata: bytes
    provenance: bytes | None = None
    signature: bytes | None = None


@dataclass(kw_only=True)
class Change:
    """Entries before and after by project and file, and what differs. `records` are those to write.

    `dropped` are listed files whose bytes an interrupted update left as something else, `fresh` those whose bytes the
    index has not recorded.
    """

    current: Current
    before: dict[str, dict[str, Entry]] = field(default_factory=dict)
    after: dict[str, dict[str, Entry]] = field(default_factory=dict)
    records: dict[str, Record] = field(default_factory=dict)
    provenance: dict[str, bytes] = field(default_factory=dict)
    dropped: list[str] = field(default_factory=list)
    fresh: set[str] = field(default_factory=set)

    @cached_property
    def files(self) -> dict[str, Entry | None]:
        """The new entry of each file that changes, None where it is not listed any more."""
        found: dict[str, Entry | None] = {}
        for project in self.projects:
            old, new = self.before.get(project, {}), self.after.get(project, {})
            for file in sorted(old.keys() | new.keys()):
                if self.current.whole or old.get(file) != new.get(file):
                    found[file] = new.get(file)
        return found

    @cached_property
    def projects(self) -> list[str]:
        return sorted(self.before.keys() | self.after.keys())

    @cached_property
    def known(self) -> dict[str, list[str]]:
        """Every project's public versions after the update, newest first."""
        kept = {} if self.current.whole else {name: list(found) for name, found in self.current.known.items()}
        for project in self.projects:
            kept.pop(project, None)
            if self.after.get(project):
                kept[project] = pages.newest_first(self.after[project].values())
        return kept


def project_of(file: str) -> str:
    """The project that a wheel's name gives."""
    return canonicalize_name(file.partition("-")[0])


def checked(record: Record) -> Record:
    """The record, whose name, project and version agree. Raises InputError where they do not."""
    try:
        name, version, _, _ = parse_wheel_filename(record.file)
        stated = Version(record.release)
    except (InvalidWheelFilename, ValueError) as error:
        raise InputError(
            f"{record.file} is no name of a wheel, so that no installer finds it: {error}",
            remedy="name it as the wheel specification says: PROJECT-VERSION-PYTHON-ABI-PLATFORM.whl",
        ) from error
    if name != record.project or version != stated:
        raise InputError(
            f"{record.file}: its record is of {record.project} {record.release}, which is not what its name says",
            remedy="build the wheel and its record again",
        )
    return record


def work_out(
    current: Current,
    given: Iterable[Record],
    sources: Mapping[str, Source],
    keep: Collection[str] | None,
    amend: Mapping[str, Amend],
    *,
    anew: bool,
) -> Change:
    """The change that lists `given`, and of the rest what `keep` names; with None all of it. Then it amends records.

    Raises InputError where what is to be kept cannot be read, or what is to be amended is not listed.
    """
    change = Change(current=current)
    new = {one.file: checked(one) for one in given}
    if not anew:
        _take_over(change, {*new, *amend}, keep)
    for file in [*new, *(amend.keys() - new.keys())]:
        old, record = current.record(file), new.get(file)
        same = old if old is not None and (record is None or old.sha256 == record.sha256) else None
        if record is None and (old is None or file not in change.after.get(project_of(file), {})):
            raise InputError(f"the index lists no {file}", remedy="name a file as the index's pages write it")
        if same is None:
            change.fresh.add(file)
        record = record or old
        assert record is not None  # noqa: S101  there is one or the other
        if same is not None and not record.yanks:
            # A yank is kept in the index alone; the wheel's folder does not know of it.
            record = record.model_copy(update={"yanked": same.yanked, "yanks": same.yanks})
        if same is not None and not record.vouched:
            # So is a signature that was published with it.
            record = record.model_copy(update={"vouched": same.vouched})
        record = amend[file](record) if file in amend else record
        change.records[file] = record
        entry = _entry(change, record, sources.get(file), kept=same is not None)
        change.after.setdefault(record.project, {})[file] = entry
    return change


def _take_over(change: Change, touched: Collection[str], keep: Collection[str] | None) -> None:
    """Fill in the entries of every project that the change touches, and of them what stays."""
    current = change.current
    if current.whole:
        projects = {*listing.every_project(current.storage), *current.known}
    else:
        projects = {project_of(file) for file in (*touched, *_leaving(current, touched, keep))}
    for project in projects:
        change.before[project] = current.project(project)
        stays = {}
        for file, one in change.before[project].items():
            if keep is None or file in keep:
                stays[file] = current.derived(one) if current.whole else one
                if (current.verify or file in current.pending) and not current.holds(file, stays[file].sha256):
                    change.dropped.append(file)
                    del stays[file]
        change.after[project] = stays
    if current.whole and keep is not None:
        _refuse_missing(set(keep) - {file for found in change.before.values() for file in found})


def _leaving(current: Current, touched: Collection[str], keep: Collection[str] | None) -> set[str]:
    """Files that are listed and are to be listed no more."""
    if keep is None:
        return set()
    found = pages.lines(current.page("all.html", pages.all_top()), pages.all_top())
    if found is None:
        raise listing.foreign("all.html")
    listed = set(pages.files(found))
    _refuse_missing(set(keep) - listed)
    return listed - set(keep) - set(touched)


def _refuse_missing(missing: set[str]) -> None:
    if missing:
        raise InputError(
            f"the index does not list {min(missing)}, which was to stay as it is ({len(missing)} such files)",
            remedy=listing.REMEDY,
        )


def _entry(change: Change, record: Record, source: Source | None, *, kept: bool) -> Entry:
    """The entry of a record; without a source, or its provenance, that of the same bytes in the index stays."""
    storage = change.current.storage
    metadata = source.metadata if source else storage.read(f"files/{record.file}{entries.METADATA}")
    if metadata is None or (source is None and not kept):
        raise InputError(
            f"{record.file} is not in the index, so its record alone changes nothing",
            remedy="name a file that the index lists, or add the wheel",
        )
    provenance = source.provenance if source else None
    if provenance is None and kept:
        provenance = storage.read(f"files/{record.file}{entries.PROVENANCE}")
    if provenance is not None:
        change.provenance[record.file] = provenance
    return entries.entry(record, sha256(metadata), None if provenance is None else sha256(provenance))
