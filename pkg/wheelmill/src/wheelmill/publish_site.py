"""The index that is to be published, read from its folder and held against itself: what is damaged is not published."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from email.parser import BytesHeaderParser
from typing import TYPE_CHECKING
from zipfile import BadZipFile

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version
from pydantic import ValidationError

from wheelmill import entries, index, listing, records, signing
from wheelmill.errors import InputError
from wheelmill.publish_policy import Refusal
from wheelmill.records import Record
from wheelmill.storage import Folder
from wheelmill.store import file_sha256

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

AGAIN = "write it again with `wheelmill index DIST --out SITE --full`"


@dataclass(frozen=True, kw_only=True, slots=True)
class Local:
    """A wheel of the site and its record, which is of that size at least; `bytes_differ` tells of the rest."""

    record: Record
    wheel: Path

    @property
    def metadata(self) -> Path:
        return self.beside(entries.METADATA)

    def beside(self, suffix: str) -> Path:
        return self.wheel.with_name(self.wheel.name + suffix)


def read(site: Path) -> tuple[list[Local], list[Refusal]]:
    """(every sound wheel of the site, what is damaged). Raises InputError when the folder is no index at all."""
    files = site / "files"
    if not (site / "simple").is_dir() or not files.is_dir():
        raise InputError(f"{site} is no index: it has no simple/ and files/", remedy=AGAIN)
    names = {path.name for path in files.iterdir() if not path.name.startswith(".")}
    # What is listed no more stays for a grace period, and is not published.
    left = set(listing.unlisted(Folder(site), anew=False))
    names -= {name + suffix for name in left for suffix in entries.BESIDE}
    wheels = {name for name in names if name.endswith(".whl")}
    recorded = {name.removesuffix(records.RECORD) for name in names if name.endswith(records.RECORD)}
    found: list[Local] = []
    faults = [_damaged(name, "its record is here and the wheel is not") for name in sorted(recorded - wheels)]
    for name in sorted(wheels):
        try:
            found.append(_local(files / name))
        except ValueError as error:
            faults.append(_damaged(name, str(error)))
    return found, [*faults, *_pages(site, found, {fault.subject for fault in faults})]


def bytes_differ(one: Local) -> Refusal | None:
    """What the wheel's own bytes say against its record and its metadata; reads the whole file."""
    if (sha256 := file_sha256(one.wheel)) != one.record.sha256:
        return _damaged(one.wheel.name, f"its SHA-256 is {sha256}, and its record is of {one.record.sha256}")
    try:
        content = index.metadata(one.wheel)
    except (BadZipFile, OSError, ValueError, RuntimeError, zlib.error) as error:
        return _damaged(one.wheel.name, f"it cannot be read as a wheel: {error}")
    if content != one.metadata.read_bytes():
        return _damaged(one.wheel.name, "its .metadata is not the METADATA in it")
    stated = BytesHeaderParser().parsebytes(content)
    name, version = str(stated["Name"]), str(stated["Version"])
    if canonicalize_name(name) != one.record.project or not _same(version, one.record.release):
        return _damaged(
            one.wheel.name,
            f"its METADATA is of {name} {version}, and its record of {one.record.project} {one.record.release}",
        )
    return None


def _same(stated: str, release: str) -> bool:
    try:
        return Version(stated) == Version(release)
    except InvalidVersion:
        return False


def vouched(one: Local) -> signing.Verdict:
    """What the signature and the provenance beside a wheel say of the bytes that its record names."""
    return signing.verify_file(one.wheel, sha256=one.record.sha256)


def _local(wheel: Path) -> Local:
    """Raises ValueError with what is wrong."""
    try:
        content = wheel.with_name(wheel.name + records.RECORD).read_bytes()
        record = Record.model_validate_json(content)
        size = wheel.stat().st_size
    except FileNotFoundError as error:
        raise ValueError("it has no record, so nothing is known of it") from error
    except OSError as error:
        raise ValueError(f"it cannot be read: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        at = ".".join(map(str, first["loc"]))
        raise ValueError(f"its record cannot be read: {at + ': ' if at else ''}{first['msg']}") from error
    if record.file != wheel.name:
        raise ValueError(f"its record is of {record.file}")
    if record.size != size:
        raise ValueError(f"it has {size} bytes, and its record is of {record.size}")
    if not wheel.with_name(wheel.name + entries.METADATA).is_file():
        raise ValueError("its .metadata is not here")
    return Local(record=record, wheel=wheel)


def _pages(site: Path, found: Iterable[Local], told: Collection[str]) -> list[Refusal]:
    """What the JSON of the complete index lists otherwise than the records do, but for files that were `told` of."""
    by_project: dict[str, dict[str, str]] = {}
    for one in found:
        by_project.setdefault(one.record.project, {})[one.record.file] = one.record.sha256
    faults = []
    pages = {path.parent.name: path for path in sorted((site / "simple").glob("*/index.json"))}
    for project in sorted(by_project.keys() | pages.keys()):
        listed, has = _listed(pages.get(project)), by_project.get(project, {})
        if listed is None:
            faults.append(_damaged(f"simple/{project}/index.json", "it is not here, or it cannot be read"))
        elif names := sorted({name for name, _ in listed.items() ^ has.items()} - set(told)):
            faults.append(_damaged(f"simple/{project}/index.json", f"it and the records differ on {names[0]}"))
    return faults


def _listed(page: Path | None) -> dict[str, str] | None:
    if page is None:
        return None
    try:
        return {one["filename"]: one["hashes"]["sha256"] for one in json.loads(page.read_bytes())["files"]}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _damaged(subject: str, what: str) -> Refusal:
    return Refusal(
        subject=subject,
        rule="damaged",
        what=what,
        why="what the site says of this file is not true of it, or cannot be known",
        remedy=AGAIN,
    )
