"""An index of any kind: where a project's page is, and what it lists."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote, unquote, urljoin, urlsplit

from wheelmill import web, which_links
from wheelmill.errors import InputError, MissingError
from wheelmill.which_candidate import Link

if TYPE_CHECKING:
    from wheelmill.web import Web

ENVIRONMENT_PAGE = re.compile(r"/((?:cpu|cu\d+)-torch\d+\.\d+)\.html$")
# A page that was not named as one may be anything.
GUESSED = 8 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """Where wheels come from. `url` is what an installer is given, by `kind`; `site` the root of an index of ours."""

    kind: Literal["simple", "links", "folder"]
    url: str
    listing: which_links.Listing
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
    for base in (root,) if root.endswith("/simple/") else (root, urljoin(root, "simple/")):
        try:
            listing, _ = _project(urljoin(base, f"{project}/"), project, session)
        except web.AbsentError:
            continue
        except InputError as error:  # a page of something else, as a site's own 404 page is
            last = error
            continue
        if listing.links or listing.sdists:
            return Source(kind="simple", url=base, listing=listing, site=_site(listing))
    if root.endswith("/simple/"):
        # An index's root lists every project's name, which is long and holds no wheel.
        raise last or _nothing(where, project)
    try:
        return _pointed(where, project, session, limit=GUESSED)
    except web.AbsentError as error:
        raise _nothing(where, project) from error
    except InputError as error:
        raise last or error from error


def _nothing(where: str, project: str) -> InputError:
    return InputError(
        f"{web.shown(where)} lists no wheel of {project}",
        remedy="check the name, and give the index's root, a find-links page or a folder of wheels",
    )


def _pointed(where: str, project: str, session: Web, limit: int = web.PAGE) -> Source:
    """A page that is named itself: a find-links page, with the JSON beside it where the page is one of ours."""
    page = session.get(where, limit=limit, accept=which_links.LINKS_ACCEPT)
    listing = which_links.read(page, project)
    match = ENVIRONMENT_PAGE.search(urlsplit(page.url).path)
    beside = f"{match[1]}/{project}/index.json" if match else f"simple/{project}/index.json"
    if match or urlsplit(page.url).path.endswith("/all.html"):
        with contextlib.suppress(MissingError, InputError):
            told = which_links.read(session.get(urljoin(page.url, beside), limit=web.PAGE), project)
            named = {link.file for link in listing.links}
            listing = replace(listing, links=tuple(link for link in told.links if link.file in named) or listing.links)
    if not listing.links and not listing.sdists:
        raise _nothing(where, project)
    return Source(kind="links", url=where, listing=listing, site=_site(listing))


def _project(url: str, project: str, session: Web) -> tuple[which_links.Listing, str]:
    """(what a project's page lists, its address). A server of plain files gives the HTML: its JSON is asked for too."""
    try:
        page = session.get(url, limit=web.PAGE, accept=which_links.ACCEPT)
    except web.AbsentError:
        if urlsplit(url).scheme != "file":
            raise
        page = session.get(urljoin(url, "index.html"), limit=web.PAGE)
    listing = which_links.read(page, project)
    if page.kind != which_links.JSON and listing.links:
        with contextlib.suppress(MissingError, InputError):
            told = which_links.read(session.get(urljoin(page.url, "index.json"), limit=web.PAGE), project)
            listing = told if told.links else listing
    return listing, page.url


def _site(listing: which_links.Listing) -> str | None:
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
    skipped = [f"{one.name}: {why}" for one in files if (why := which_links.wrong(one.name, project))]
    links = [Link(file=one.name, url=one.as_uri()) for one in files if which_links.wrong(one.name, project) is None]
    if not links and not skipped:
        if (path / "index.html").is_file():  # the folder of a project's own page
            return _pointed((path / "index.html").as_uri(), project, session)
        raise _nothing(str(path), project)
    return Source(kind="folder", url=str(path), listing=which_links.Listing(links=tuple(links), skipped=tuple(skipped)))


def page_of(source: Source, name: str) -> str:
    """The address of a page of an index of ours."""
    return urljoin(source.site or source.url, quote(name))
