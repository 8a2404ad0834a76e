"""A wheel as the pages of an index list it, and as the index's own JSON states it (PEP 691, 700, 714, 740)."""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any

from packaging.utils import canonicalize_name
from packaging.version import Version
from pydantic import BaseModel, ConfigDict, Field

from wheelmill import records

if TYPE_CHECKING:
    from wheelmill.records import Record

METADATA, PROVENANCE, SIGNATURE = ".metadata", ".provenance", ".sig"
# A file and what lies beside it.
BESIDE = ("", METADATA, PROVENANCE, SIGNATURE, records.RECORD)
TIME = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$"


class Entry(BaseModel):
    """What a listing says of a wheel. `metadata`, `record` and `provenance` are the SHA-256 of what lies beside it."""

    model_config = ConfigDict(frozen=True)

    file: records.File
    sha256: records.Sha256
    size: Annotated[int, Field(ge=0)]
    metadata: records.Sha256
    record: records.Sha256
    provenance: records.Sha256 | None = None
    requires_python: str | None = None
    uploaded: Annotated[str, Field(pattern=TIME)] | None = None
    yanked: str | None = None
    environments: tuple[records.Environment, ...] = ()
    toolkit: records.Minor | None = None

    @property
    def release(self) -> str:
        """The whole version, as the file's name gives it."""
        return release(self.file)

    @property
    def public(self) -> str:
        return public(self.release)


def release(file: str) -> str:
    """The version in a wheel's name; the name has been held against the specification before."""
    return _normal(file.split("-", 2)[1])


def is_of(file: str, project: str, version: str | None = None) -> bool:
    """Whether a file's name is one of that project, and of that release where it is given."""
    try:
        stated = release(file)
        same = version is None or stated == _normal(version)
    except (ValueError, IndexError):
        return False
    return same and canonicalize_name(file.partition("-")[0]) == project


@lru_cache(maxsize=1 << 16)
def _normal(version: str) -> str:
    return str(Version(version))


def public(version: str) -> str:
    """The version without its local part."""
    return version.partition("+")[0]


def moment(stated: str) -> str | None:
    """A time with its zone in the form of PEP 700; None where it is none."""
    try:
        time = dt.datetime.fromisoformat(re.sub(r"Z$", "+00:00", stated))
        if time.tzinfo is None:
            return None
        return time.astimezone(dt.timezone.utc).replace(tzinfo=None).isoformat() + "Z"
    except (ValueError, OverflowError):
        return None


def stated(time: dt.datetime) -> str:
    """A time in UTC, to the second."""
    return time.astimezone(dt.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def encoded(record: Record) -> bytes:
    """A record as the index keeps it."""
    return (record.model_dump_json(indent=1, exclude_none=True) + "\n").encode()


def entry(record: Record, metadata: str, provenance: str | None) -> Entry:
    """The entry of a record; `metadata` and `provenance` are SHA-256."""
    build = record.build
    return Entry(
        file=record.file,
        sha256=record.sha256,
        size=record.size,
        metadata=metadata,
        record=hashlib.sha256(encoded(record)).hexdigest(),
        provenance=provenance,
        requires_python=record.requires_python,
        uploaded=moment(build.built) if build else None,
        yanked=record.yanked,
        environments=record.environments,
        toolkit=build.toolkit if build else None,
    )


def quoted(file: str) -> str:
    """A file's name in a URL: of what the name of a wheel may hold, servers and clients disagree on these two alone."""
    return file.replace("+", "%2B").replace("!", "%21")


def to_json(one: Entry) -> dict[str, Any]:
    """The entry as PEP 691 writes a file. Every page with JSON lies two folders deep."""
    url = f"../../files/{quoted(one.file)}"
    ours: dict[str, Any] = {"record": one.record, "environments": list(one.environments)}
    value: dict[str, Any] = {
        "filename": one.file,
        "url": url,
        "hashes": {"sha256": one.sha256},
        "size": one.size,
        "core-metadata": {"sha256": one.metadata},
        "yanked": False if one.yanked is None else one.yanked,
    }
    if one.requires_python:
        value["requires-python"] = one.requires_python
    if one.uploaded:
        value["upload-time"] = one.uploaded
    if one.provenance:
        value["provenance"] = f"{url}{PROVENANCE}"
        ours["provenance"] = one.provenance
    if one.toolkit:
        ours["toolkit"] = one.toolkit
    return {**value, "_wheelmill": ours}


def from_json(value: dict[str, Any]) -> Entry:
    """An entry as `to_json` wrote it. Raises ValueError, KeyError, TypeError or AttributeError for what it did not."""
    ours = value["_wheelmill"]
    return Entry(
        file=value["filename"],
        sha256=value["hashes"]["sha256"],
        size=value["size"],
        metadata=value["core-metadata"]["sha256"],
        record=ours["record"],
        provenance=ours.get("provenance"),
        requires_python=value.get("requires-python"),
        uploaded=value.get("upload-time"),
        yanked=value["yanked"] if isinstance(value["yanked"], str) else None,
        environments=ours["environments"],
        toolkit=ours.get("toolkit"),
    )
