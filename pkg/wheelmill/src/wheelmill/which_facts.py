"""The candidates of an index with what can be read of each: record, manifest, METADATA, libraries."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from email.parser import BytesParser
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version
from pydantic import ValidationError

from wheelmill import claims, index, which_deep
from wheelmill.errors import InputError, MissingError
from wheelmill.records import RECORD, Record
from wheelmill.store import file_sha256
from wheelmill.which_candidate import Candidate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wheelmill.web import Web
    from wheelmill.which_candidate import Link

METADATA, RECORD_SIZE = 2 << 20, 16 << 20
DIRECTORY_READ = 40 << 20
# Of so many wheels, the newest first, more than the index's page is read.
LOOKED = 200
WORKERS = 8


def named(link: Link) -> Candidate:
    """A candidate by its name and what its index says of it."""
    return Candidate(
        link=link,
        claim=claims.parse(link.file, b""),
        measured=link.environments or None,
        unread={"its METADATA": ""},
    )


def read(
    candidates: Sequence[Candidate], session: Web, *, wanted: Callable[[Candidate], bool], deep: int
) -> tuple[Candidate, ...]:
    """The candidates with what can be read of those that are `wanted`; `deep` bytes may be read of their libraries.

    The newest come first, and what is over the bounds says that it was not read.
    """
    newest = sorted((one for one in candidates if wanted(one)), key=lambda one: one.version, reverse=True)[:LOOKED]
    with ThreadPoolExecutor(max_workers=WORKERS) as pool:
        done = dict(zip((one.file for one in newest), pool.map(lambda one: _facts(one, session), newest), strict=True))
    left = deep
    for one in newest:
        known = done[one.file]
        if deep and known.libraries is None and not known.pure and known.broken is None and wanted(known):
            known, used = which_deep.read(known, session, left)
            done[one.file], left = known, left - used
    return tuple(done.get(one.file, one) for one in candidates)


def _facts(candidate: Candidate, session: Web) -> Candidate:
    """With its record, its manifest's environments, and its METADATA."""
    found = _recorded(candidate, session) if candidate.link.record is not None else candidate
    if urlsplit(candidate.link.url).scheme == "file":
        found = _beside(found)
    try:
        return _described(found, session)
    except InputError as error:
        return replace(found, broken=f"{error}")
    except MissingError as error:
        return _by_record(replace(found, unread={**found.unread, "its METADATA": str(error)}))


def _by_record(candidate: Candidate) -> Candidate:
    """With the requirements that its record repeats, where its METADATA cannot be had."""
    if candidate.record is None:
        return candidate
    lines = [f"Requires-Dist: {one}" for one in candidate.record.requires]
    try:
        claim = claims.parse(candidate.file, "\n".join(lines).encode(errors="replace"))
    except InputError:
        return candidate
    return replace(candidate, claim=claim)


def _recorded(candidate: Candidate, session: Web) -> Candidate:
    link = candidate.link
    try:
        body = session.get(f"{link.url}{RECORD}", limit=RECORD_SIZE).body
        record = Record.model_validate_json(body)
    except (MissingError, ValidationError) as error:
        return _unrecorded(candidate, str(error).splitlines()[0])
    if hashlib.sha256(body).hexdigest() != link.record:
        return _unrecorded(candidate, "it is not the one that the index states")
    if record.file != link.file or (link.sha256 or record.sha256) != record.sha256:
        return _unrecorded(candidate, "it is of another file")
    return with_record(candidate, record)


def _unrecorded(candidate: Candidate, why: str) -> Candidate:
    return replace(candidate, unread={**candidate.unread, "its record": why})


def with_record(candidate: Candidate, record: Record) -> Candidate:
    """The candidate with what its record says."""
    return replace(
        candidate,
        record=record,
        libraries=record.audit.libraries if record.audit else candidate.libraries,
        measured=record.environments,
        cover=record.cover or (),
    )


def _beside(candidate: Candidate) -> Candidate:
    """With the record, or the manifest and the cover report, that lie beside a wheel in a folder of ours."""
    path = Path(unquote(urlsplit(candidate.link.url).path))
    beside = {suffix for suffix in (RECORD, index.MANIFEST) if path.with_name(path.name + suffix).is_file()}
    if candidate.record is not None or not beside:
        return candidate
    try:
        sha256 = file_sha256(path)
        if RECORD in beside:
            record = Record.model_validate_json(path.with_name(path.name + RECORD).read_bytes())
            told = record.sha256 == sha256
            return with_record(candidate, record) if told else _unrecorded(candidate, "it is of other bytes")
        manifest, cover = index.manifest_of(path), index.cover_of(path, sha256)
    except (InputError, OSError, ValidationError) as error:
        return replace(candidate, unread={**candidate.unread, "what lies beside it": str(error).splitlines()[0]})
    if manifest.sha256 != sha256:
        return replace(candidate, unread={**candidate.unread, "its manifest": "it is of other bytes"})
    worked = [name for name in manifest.environments if cover is not None and cover.works(name)]
    return replace(candidate, measured=tuple(worked))


def _described(candidate: Candidate, session: Web) -> Candidate:
    link = candidate.link
    if link.metadata is not None:
        text = session.get(f"{link.url}.metadata", limit=METADATA).body
        if link.metadata and hashlib.sha256(text).hexdigest() != link.metadata:
            return replace(candidate, broken="its METADATA is not the one that the index states: pip refuses it")
    else:
        text = which_deep.metadata(link.url, session, METADATA, DIRECTORY_READ)
    claim = claims.parse(link.file, text)
    other = _other(candidate, text)
    if other is not None:
        return replace(candidate, broken=f"its METADATA is of {other}, which is not what its name says: pip refuses it")
    unread = {what: why for what, why in candidate.unread.items() if what != "its METADATA"}
    return replace(candidate, claim=claim, metadata=True, unread=unread)


def _other(candidate: Candidate, text: bytes) -> str | None:
    """The name and version that a METADATA states, where they are not its file's."""
    headers = BytesParser().parsebytes(text, headersonly=True)
    name, version = str(headers.get("Name", "")), str(headers.get("Version", ""))
    try:
        same = canonicalize_name(name) == candidate.claim.project and Version(version) == candidate.version
    except InvalidVersion:
        same = False
    return None if same else f"{name or 'no project'} {version or 'of no version'}"


def hashed(candidates: Sequence[Candidate], choice: Candidate) -> tuple[Candidate, ...]:
    """The candidates with the hash of the choice, where it lies in a folder and nobody stated one."""
    link = choice.link
    if link.sha256 is not None or urlsplit(link.url).scheme != "file":
        return tuple(candidates)
    path = Path(unquote(urlsplit(link.url).path))
    known = replace(choice, link=replace(link, sha256=file_sha256(path)))
    return tuple(known if one is choice else one for one in candidates)
