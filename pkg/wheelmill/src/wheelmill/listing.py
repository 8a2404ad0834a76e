"""What an index in a storage lists now, read from its own JSON. It is read from folders and servers, so not trusted."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from wheelmill import entries, pages, records
from wheelmill.errors import InputError
from wheelmill.records import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wheelmill.entries import Entry
    from wheelmill.storage import Storage

ROOT = "simple/index.json"
# There from the first write of an update to its last: what it names may be half done.
PENDING = "pending.json"
# Files that no page lists any more and since when; there only while there are some.
UNLISTED = "unlisted.json"
REMEDY = "write it anew with `wheelmill index DIST --out SITE --full`"
Value = TypeVar("Value")


class _Ours(BaseModel):
    format: int
    environments: tuple[records.Environment, ...]
    variants: bool


class _Versions(BaseModel):
    versions: tuple[str, ...]


class _Known(BaseModel):
    name: records.Project
    ours: _Versions = Field(alias="_wheelmill")


class _Root(BaseModel):
    projects: tuple[_Known, ...]
    ours: _Ours = Field(alias="_wheelmill")


class _Hashes(BaseModel):
    sha256: records.Sha256


class Attached(BaseModel):
    """A file of a project's page that is no wheel: variant metadata, which lies beside the page."""

    filename: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+!-]*-variants\.json$")]
    hashes: _Hashes
    size: Annotated[int, Field(ge=0)]

    def to_json(self) -> dict[str, Any]:
        """The file as PEP 691 writes it."""
        return {
            "filename": self.filename,
            "url": entries.quoted(self.filename),
            **self.model_dump(exclude={"filename"}),
        }


class Pending(BaseModel):
    version: int = 1
    files: tuple[records.File, ...]


class Unlisted(BaseModel):
    """When each file was first unlisted."""

    model_config = ConfigDict(frozen=True)

    version: int = 1
    files: dict[records.File, str] = {}


@dataclass(kw_only=True)
class Current:
    """The index as it is. With `whole` nothing of its pages is taken over: every one is written from the records.

    With `verify` each file's bytes are read too. `ours` tells whether this module wrote the index.
    """

    storage: Storage
    whole: bool
    ours: bool
    verify: bool = False
    variants: bool = False
    pending: frozenset[str] = frozenset()
    known: dict[str, tuple[str, ...]] = field(default_factory=dict)
    environments: frozenset[str] = frozenset()
    _pages: dict[str, bytes] = field(default_factory=dict)
    _projects: dict[str, dict[str, Entry]] = field(default_factory=dict)
    _attached: dict[str, list[Attached]] = field(default_factory=dict)

    def project(self, name: str) -> dict[str, Entry]:
        """The entries of a project by file."""
        if name not in self._projects:
            self._projects[name], self._attached[name] = _project(self.storage, name)
        return dict(self._projects[name])

    def attached(self, name: str) -> list[Attached]:
        """The files of a project's page that are no wheels."""
        self.project(name)
        return self._attached[name]

    def page(self, path: str, top: bytes) -> bytes:
        """A page of links as it is; one without links where it is not there, or is written anew."""
        if path not in self._pages:
            content = None if self.whole else self.storage.read(path)
            self._pages[path] = top + pages.FOOT if content is None else content
        return self._pages[path]

    def record(self, file: str) -> Record | None:
        """The record of a file; None where there is none that can be read."""
        content = self.storage.read(f"files/{file}{records.RECORD}")
        try:
            found = None if content is None else Record.model_validate_json(content)
        except ValueError:
            return None
        sound = found is not None and found.file == file and entries.is_of(file, found.project, found.release)
        return found if sound else None

    def derived(self, one: Entry) -> Entry:
        """An entry as what lies beside its file states it. Raises InputError where that is missing."""
        record = self.record(one.file)
        metadata = self.storage.read(f"files/{one.file}{entries.METADATA}")
        provenance = self.storage.read(f"files/{one.file}{entries.PROVENANCE}")
        if record is None or metadata is None:
            raise InputError(
                f"the index lists {one.file}, and its record or metadata beside it cannot be read, so that no page of "
                "it can be written",
                remedy=REMEDY,
            )
        return entries.entry(record, sha256(metadata), None if provenance is None else sha256(provenance))

    def holds(self, file: str, wanted: str) -> bool:
        """Whether the file is there with those bytes."""
        return self.storage.sha256(f"files/{file}") == wanted


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def read(storage: Storage, *, anew: bool) -> Current:
    """The index as it is. With `anew` nothing of it needs to be readable.

    Raises InputError for an index that cannot be read, or was written in another form.
    """
    pending = () if anew else _pending(storage)
    content = storage.read(ROOT)
    try:
        root = None if content is None else _Root.model_validate_json(content)
    except ValueError as error:
        if not anew:
            raise _unreadable(ROOT, error) from error
        root = None
    if root is not None and root.ours.format != pages.FORMAT:
        if not anew:
            raise InputError(
                f"the index was written in form {root.ours.format}, and this release writes form {pages.FORMAT}",
                remedy=REMEDY,
            )
        root = None
    return Current(
        storage=storage,
        whole=anew or root is None or pending is not None,
        ours=root is not None or storage.size(PENDING) is not None,
        variants=root is not None and root.ours.variants,
        pending=frozenset(pending or ()),
        known={one.name: one.ours.versions for one in root.projects} if root else {},
        environments=frozenset(root.ours.environments) if root else frozenset(),
    )


def every_project(storage: Storage) -> Iterator[str]:
    """The projects that have a page, whether or not the list of them was written."""
    for path in storage.list("simple/"):
        if found := re.fullmatch(r"simple/([^/]+)/index\.json", path):
            yield found[1]


def refuse_foreign(current: Current) -> None:
    """Raises InputError for an index that another tool wrote, whose pages this one would replace or remove."""
    page = None if current.ours else next(iter(current.storage.list("simple/")), None)
    if page is not None:
        raise InputError(
            f"an index lies there that wheelmill did not write, or whose list is gone: {page} and its other pages "
            "would be replaced",
            remedy="name an empty place; or write over it with `wheelmill index DIST --out SITE --full`",
        )


def foreign(path: str) -> InputError:
    """What is raised for a page of links of another form."""
    return InputError(f"{path} of the index is not as it was written", remedy=REMEDY)


def _unreadable(path: str, error: Exception) -> InputError:
    return InputError(f"{path} of the index cannot be read, so nothing can be added to it: {error}", remedy=REMEDY)


def _project(storage: Storage, name: str) -> tuple[dict[str, Entry], list[Attached]]:
    path = f"simple/{name}/index.json"

    def parse(content: bytes) -> tuple[dict[str, Entry], list[Attached]]:
        rows = json.loads(content)["files"]
        found = [entries.from_json(row) for row in rows if "_wheelmill" in row]
        if wrong := next((one.file for one in found if not entries.is_of(one.file, name)), None):
            raise ValueError(f"{wrong} is no wheel of {name}")
        return {one.file: one for one in found}, [
            Attached.model_validate(row) for row in rows if "_wheelmill" not in row
        ]

    content = storage.read(path)
    return ({}, []) if content is None else _parsed(path, content, parse)


def _parsed(path: str, content: bytes, parse: Callable[[bytes], Value]) -> Value:
    try:
        return parse(content)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _unreadable(path, error) from error


def _pending(storage: Storage) -> tuple[str, ...] | None:
    content = storage.read(PENDING)
    return None if content is None else _parsed(PENDING, content, Pending.model_validate_json).files


def unlisted(storage: Storage, *, anew: bool) -> dict[str, dt.datetime]:
    """When each file that no page lists was first unlisted. With `anew` it need not be readable."""
    content = storage.read(UNLISTED)
    if content is None:
        return {}

    def parse(content: bytes) -> dict[str, dt.datetime]:
        rows = Unlisted.model_validate_json(content).files
        return {file: dt.datetime.strptime(since, "%Y-%m-%dT%H:%M:%S%z") for file, since in rows.items()}

    try:
        return _parsed(UNLISTED, content, parse)
    except InputError:
        if anew:
            return {}
        raise


class _Named(BaseModel):
    name: records.Project


class _Projects(BaseModel):
    projects: tuple[_Named, ...]


def projects(storage: Storage, path: str) -> tuple[str, ...]:
    """The projects that a list of projects has, none where there is no such list."""
    content = storage.read(path)
    if content is None:
        return ()
    return tuple(one.name for one in _parsed(path, content, _Projects.model_validate_json).projects)
