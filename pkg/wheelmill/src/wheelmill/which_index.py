"""An index of any kind as candidates: where a project's page is, what it lists, and what each wheel's facts are."""

from __future__ import annotations

import contextlib
import hashlib
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from email.parser import BytesParser
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote, unquote, urljoin, urlsplit

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version
from pydantic import ValidationError

from wheelmill import claims, index, pages, web, which_deep
from wheelmill.errors import InputError, MissingError
from wheelmill.records import RECORD, Record
from wheelmill.store import file_sha256
from wheelmill.which_candidate import Candidate, Link

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wheelmill.web import Web

ENVIRONMENT_PAGE = re.compile(r"/((?:cpu|cu\d+)-torch\d+\.\d+)\.html$")
METADATA, RECORD_SIZE = 2 << 20, 16 << 20
DIRECTORY_READ = 40 << 20
# Of so many wheels, the newest first, more than the index's page is read.
LOOKED = 200
WORKERS = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """Where wheels come from. `url` is what an installer is given, by `kind`; `site` the root of an index of ours."""

    kind: Literal["simple", "links", "folder"]
    url: str
    listing: pages.Listing
    site: str | None = None


def find(where: str, project: str, session: Web) -> Source:
    """The project's page at an address or in a folder.

    Raises InputError where there is none of that project, MissingError where the address cannot be reached.
    """
    try:
        scheme = urlsplit(where).scheme.lower()
    except ValueError as error:
        raise InputError(f"--index {where[:200]} is no address: {error}", remedy="write https://HOST/PATH") from error
    if scheme in ("http", "https"):
        return _remote(where, project, session)
    if scheme == "file":
        return _local(Path(unquote(urlsplit(where).path)), project, session)
    if scheme and len(scheme) > 1:
        raise InputError(
            f"--index {web.shown(where)}: {scheme} is no way to read an index",
            remedy="give https, http, file or a folder",
        )
    return _local(Path(where).absolute(), project, session)


def _remote(where: str, project: str, session: Web) -> Source:
    if not urlsplit(where).hostname:
        raise InputError(f"--index {web.shown(where)} is no address", remedy="write https://HOST/PATH")
    if urlsplit(where).path.endswith((".html", ".htm")):
        return _pointed(where, project, session)
    root = where if where.endswith("/") else where + "/"
    last: Exception | None = None
    for base in (root, urljoin(root, "simple/")):
        try:
            listing, _ = _project(urljoin(base, f"{project}/"), project, session)
        except web.AbsentError:
            continue
        except InputError as error:  # a page of something else, as a site's own 404 page is
            last = error
            continue
        if listing.links or listing.sdists:
            return Source(kind="simple", url=base, listing=listing, site=_site(listing))
    try:
        return _pointed(where, project, session)
    except web.AbsentError as error:
        raise _nothing(where, project) from error
    except InputError as error:
        raise last or error from error


def _nothing(where: str, project: str) -> InputError:
    return InputError(
        f"{web.shown(where)} lists no wheel of {project}",
        remedy="check the name, and give the index's root, a find-links page or a folder of wheels",
    )


def _pointed(where: str, project: str, session: Web) -> Source:
    """A page that is named itself: a find-links page, with the JSON beside it where the page is one of ours."""
    page = session.get(where, limit=web.PAGE, accept=pages.ACCEPT)
    listing = pages.read(page, project)
    match = ENVIRONMENT_PAGE.search(urlsplit(page.url).path)
    beside = f"{match[1]}/{project}/index.json" if match else f"simple/{project}/index.json"
    if match or urlsplit(page.url).path.endswith("/all.html"):
        with contextlib.suppress(MissingError, InputError):
            told = pages.read(session.get(urljoin(page.url, beside), limit=web.PAGE), project)
            named = {link.file for link in listing.links}
            listing = replace(listing, links=tuple(link for link in told.links if link.file in named) or listing.links)
    if not listing.links and not listing.sdists:
        raise _nothing(where, project)
    return Source(kind="links", url=where, listing=listing, site=_site(listing))


def _project(url: str, project: str, session: Web) -> tuple[pages.Listing, str]:
    """(what a project's page lists, its address). A server of plain files gives the HTML: its JSON is asked for too."""
    try:
        page = session.get(url, limit=web.PAGE, accept=pages.ACCEPT)
    except web.AbsentError:
        if urlsplit(url).scheme != "file":
            raise
        page = session.get(urljoin(url, "index.html"), limit=web.PAGE)
    listing = pages.read(page, project)
    if page.kind != pages.JSON and listing.links:
        with contextlib.suppress(MissingError, InputError):
            told = pages.read(session.get(urljoin(page.url, "index.json"), limit=web.PAGE), project)
            listing = told if told.links else listing
    return listing, page.url


def _site(listing: pages.Listing) -> str | None:
    """The root of an index of ours, told by the environments that it names: the folder above `files/`."""
    for link in listing.links:
        folder = urljoin(link.url, ".")
        if (link.environments or link.record) and folder.endswith("/files/"):
            return urljoin(folder, "../")
    return None


def _local(path: Path, project: str, session: Web) -> Source:
    if path.suffix in {".html", ".htm"} and path.is_file():
        return _pointed(path.as_uri(), project, session)
    if not path.is_dir():
        raise InputError(f"--index {path}: there is no such folder or page", remedy="name a folder of wheels or a site")
    for base in (path, path / "simple"):
        if (base / project / "index.json").is_file() or (base / project / "index.html").is_file():
            listing, _ = _project(base.as_uri() + f"/{project}/", project, session)
            return Source(kind="simple", url=base.as_uri() + "/", listing=listing, site=_site(listing))
    files = sorted(one for one in path.iterdir() if one.name.endswith(".whl"))
    skipped = [f"{one.name}: {why}" for one in files if (why := pages.wrong(one.name, project))]
    links = [Link(file=one.name, url=one.as_uri()) for one in files if pages.wrong(one.name, project) is None]
    if not links and not skipped:
        raise _nothing(str(path), project)
    return Source(kind="folder", url=str(path), listing=pages.Listing(links=tuple(links), skipped=tuple(skipped)))


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


def page_of(source: Source, name: str) -> str:
    """The address of a page of an index of ours."""
    return urljoin(source.site or source.url, quote(name))
