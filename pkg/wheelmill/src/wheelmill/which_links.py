"""Pages of an index as links: PEP 503 and find-links HTML, PEP 691 JSON. Both are a stranger's."""

from __future__ import annotations

import contextlib
import json
import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename
from pydantic import BaseModel, Field, ValidationError

from wheelmill import tags
from wheelmill.errors import InputError
from wheelmill.which_candidate import Link

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from wheelmill.web import Page

JSON, HTML = "application/vnd.pypi.simple.v1+json", "application/vnd.pypi.simple.v1+html"
ACCEPT = f"{JSON}, {HTML};q=0.2, text/html;q=0.1, */*;q=0.01"
LINKS_ACCEPT = f"text/html, {HTML};q=0.9, */*;q=0.01"
LINKS, NAME = 200_000, 400
HASH = re.compile(r"sha256=([0-9a-f]{64})$")
SCHEMES = frozenset({"http", "https"})
WHEEL = re.compile(r"[A-Za-z0-9._+!-]+\.whl")
MAJOR = re.compile(r"1(\.\d+)?$")


@dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """The wheels of one project that a page links to. `sdists` are its source archives, `skipped` what was left out."""

    links: tuple[Link, ...] = ()
    sdists: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()


class _Ours(BaseModel):
    record: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    environments: tuple[Annotated[str, Field(pattern=r"^(cpu|cu\d{2,4})-torch\d{1,3}\.\d{1,3}$")], ...] = ()


class _File(BaseModel):
    filename: Annotated[str, Field(max_length=NAME)]
    url: Annotated[str, Field(max_length=4000)]
    hashes: dict[str, str] = {}
    requires_python: str | None = Field(None, alias="requires-python", max_length=200)
    yanked: bool | str = False
    core_metadata: bool | dict[str, str] | None = Field(None, alias="core-metadata")
    dist_info_metadata: bool | dict[str, str] | None = Field(None, alias="dist-info-metadata")
    provenance: str | None = None
    ours: _Ours | None = Field(None, alias="_wheelmill")


def read(page: Page, project: str) -> Listing:
    """The project's wheels on a page. Raises InputError for a page that is neither HTML nor PEP 691's JSON."""
    if page.kind == JSON or (page.kind == "application/json" and page.body.lstrip()[:1] == b"{"):
        files: Iterable[_File | str] = _json(page)
    elif page.kind in {"", HTML, "text/html", "application/xhtml+xml"}:
        files = _html(page)
    else:
        raise InputError(f"{page.url} is {page.kind}, and no index page", remedy="name an index or a find-links page")
    return _listing(page.url, project, files)


def _json(page: Page) -> Iterator[_File | str]:
    try:
        told: Any = json.loads(page.body)
        files = told["files"]
        version = str(told.get("meta", {}).get("api-version", "1.0"))
        files = list(files[:LINKS])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"{page.url} cannot be read as an index's JSON: {error!r}", remedy="name a PEP 691 or PEP 503 index"
        ) from error
    _check(page, version)
    for one in files:
        try:
            yield _File.model_validate(one)
        except ValidationError as error:
            name = one.get("filename") if isinstance(one, dict) else one
            yield f"{str(name)[:NAME]}: {error.errors()[0]['msg']}"


def _check(page: Page, version: str) -> None:
    if not MAJOR.match(version):
        raise InputError(
            f"{page.url} is of version {version[:20]} of the index format, and 1 is understood",
            remedy="name another index",
        )


def _html(page: Page) -> Iterator[_File | str]:
    try:
        text = page.body.decode(page.charset or "utf-8", "replace")
    except LookupError:  # a charset that nobody knows
        text = page.body.decode("utf-8", "replace")
    base = ""
    for tag, attributes in tags.read(text):
        if tag == "meta" and attributes.get("name") == "pypi:repository-version":
            _check(page, attributes.get("content", ""))
        elif tag == "base" and not base:
            base = attributes.get("href", "")
        elif tag == "a" and "href" in attributes:
            with contextlib.suppress(ValueError):  # no address
                whole, fragment = urldefrag(urljoin(base, attributes["href"]))
                yield _anchor(whole, fragment, attributes)


def _anchor(url: str, fragment: str, attributes: dict[str, str]) -> _File:
    digest = HASH.search(fragment)
    core = attributes.get("data-core-metadata", attributes.get("data-dist-info-metadata"))
    metadata = HASH.match(core) if core else None
    yanked = attributes.get("data-yanked")
    return _File.model_validate(
        {
            "filename": posixpath.basename(unquote(urlsplit(url).path))[:NAME],
            "url": url,
            "hashes": {"sha256": digest[1]} if digest else {},
            "requires-python": attributes.get("data-requires-python") or None,
            "yanked": False if yanked is None else yanked or True,
            "core-metadata": {"sha256": metadata[1]} if metadata else core == "true",
            "provenance": attributes.get("data-provenance"),
        }
    )


def _listing(base: str, project: str, files: Iterable[_File | str]) -> Listing:
    links: dict[str, Link] = {}
    sdists, skipped = [], []
    for one in files:
        if isinstance(one, str):
            skipped.append(one)
            continue
        name = one.filename
        if name.endswith((".tar.gz", ".zip")):
            with contextlib.suppress(ValueError):
                if parse_sdist_filename(name)[0] == project:
                    sdists.append(name)
            continue
        if not name.endswith(".whl"):
            continue
        why = wrong(name, project)
        url = absolute(base, one.url)
        if why is None and url is None:
            why = "its link leads to no web address"
        if why is not None or url is None:
            if why:
                skipped.append(f"{name}: {why}")
            continue
        links.setdefault(name, _link(one, url, base))
    return Listing(links=tuple(links.values()), sdists=tuple(sdists), skipped=tuple(skipped))


def wrong(name: str, project: str) -> str | None:
    """Why a filename is no wheel of the project: empty for another project's, which a find-links page may hold."""
    if not WHEEL.fullmatch(name):
        return "its name has letters that no wheel's has"
    try:
        found = parse_wheel_filename(name)[0]
    except ValueError as error:
        return str(error)
    return None if canonicalize_name(found) == project else ""


def absolute(base: str, url: str) -> str | None:
    """The address a link leads to; None for one that a page of that place must not name."""
    try:
        whole = urldefrag(urljoin(base, url)).url
        parts = urlsplit(whole)
    except ValueError:
        return None
    local = urlsplit(base).scheme == "file"
    if parts.scheme in SCHEMES:
        return whole if parts.hostname else None
    return whole if local and parts.scheme == "file" and parts.netloc == "" else None


def _link(one: _File, url: str, base: str) -> Link:
    core = one.core_metadata if one.core_metadata is not None else one.dist_info_metadata
    digest = one.hashes.get("sha256")
    stated = core.get("sha256", "") if isinstance(core, dict) else "" if core else None
    return Link(
        file=one.filename,
        url=url,
        sha256=digest if digest and re.fullmatch(r"[0-9a-f]{64}", digest) else None,
        requires_python=one.requires_python,
        yanked=None if one.yanked is False else "" if one.yanked is True else str(one.yanked)[:300],
        metadata=stated,
        record=one.ours.record if one.ours else None,
        environments=one.ours.environments if one.ours else (),
        provenance=absolute(base, one.provenance) if one.provenance else None,
    )
