"""The pages for people of an index: plain files made from records alone, the same bytes from the same records."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from wheelmill import facts, hardware, site_matrix, site_rows, site_view
from wheelmill.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jinja2 import Environment

    from wheelmill.records import Record

WEB = Path(__file__).parent / "assets"
ASSETS = ("site.css", "wheelmill.js", "collect.js", "choose.js", "command.js", "landing.js", "release.js", "wheel.js")
# Releases that the landing page links; the choice on it reaches the others.
LINKED = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class Brand:
    """What stands at the head of every page, and the address that it leads to besides, if any."""

    title: str = "Wheels"
    link: str | None = None

    def __post_init__(self) -> None:
        if self.link is not None and not re.fullmatch(r"https?://[^\s\"'<>]+", self.link):
            raise InputError(
                f"{self.link} cannot be the site's link: pages lead only to web addresses",
                remedy="write it as https://HOST/PATH",
            )


def pages(
    releases: Mapping[tuple[str, str], Sequence[Record]],
    known: Mapping[str, Sequence[str]],
    touched: frozenset[str],
    *,
    environments: Sequence[str] = (),
    brand: Brand | None = None,
) -> Iterator[tuple[str, bytes]]:
    """(path in the index, content) of each page for people that changes.

    `releases` holds all records of each touched release by project and public version, `known` every project's public
    versions, newest first, `touched` the names of wheels whose page is wanted. `environments` are those that have a
    find-links page. A page depends on its own wheel or release,
    the landing page on `known` and `environments`, and nothing on the order of records. What a page leads to comes
    before it, so that pages written in this order never lead to a missing one. Raises InputError for a name
    that cannot be a path of the index.
    """
    look = _Look(brand=brand or Brand(), table=_table())
    for name in ASSETS:
        yield f"assets/{name}", (WEB / name).read_bytes()
    yield "assets/cards.js", site_rows.script("facts", _facts(look.table))
    # One release is held at a time: an index may have more records than memory.
    for project, version in sorted(releases):
        stem = f"{_project(project)}-{_version(version)}"
        ordered = sorted(releases[project, version], key=lambda record: site_rows.natural(record.file))
        found = [site_rows.row(record, look.table.pythons) for record in ordered]
        for record in ordered:
            if record.file in touched:
                yield f"wheels/{_file(record.file)}.html", _wheel(record, look)
        yield f"data/{stem}.js", site_rows.script("release", {"project": project, "version": version, "wheels": found})
        yield f"releases/{stem}.html", _release(project, version, ordered, look)
    yield "data/site.js", site_rows.script("site", _site(known))
    yield "index.html", _landing(known, environments, look.brand)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Look:
    """What pages show besides records."""

    brand: Brand
    table: facts.Facts


def _release(project: str, version: str, records: Sequence[Record], look: _Look) -> bytes:
    return _render(
        "release.html",
        brand=look.brand,
        root="../",
        project=project,
        version=version,
        data=quote(f"{project}-{version}"),
        grid=site_matrix.grid(records, look.table.pythons),
        wheels=site_matrix.wheels(records),
    )


def _wheel(record: Record, look: _Look) -> bytes:
    keys = [one for one in record.vouched if one.startswith("SHA256:")]
    identities = [one for one in record.vouched if one not in keys]
    wheel = site_view.wheel(record)
    return _render("wheel.html", brand=look.brand, root="../", wheel=wheel, keys=keys, identities=identities)


def _landing(known: Mapping[str, Sequence[str]], environments: Sequence[str], brand: Brand) -> bytes:
    listed = sorted(environments, key=site_rows.environment_key, reverse=True)
    return _render(
        "index.html",
        brand=brand,
        root="",
        projects=[
            {
                "name": _project(project),
                "releases": [(one, quote(f"{project}-{_version(one)}")) for one in versions[:LINKED]],
                "more": max(0, len(versions) - LINKED),
            }
            for project, versions in sorted(known.items())
        ],
        environments=[(name, site_rows.environment_words(name)) for name in listed],
    )


def _site(known: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Projects, their versions, and of each the newest that is no pre-release."""
    return {
        "projects": [
            {
                "name": _project(project),
                "versions": [_version(one) for one in versions],
                "newest": next((one for one in versions if not Version(one).is_prerelease), next(iter(versions), None)),
            }
            for project, versions in sorted(known.items())
        ]
    }


def _facts(table: facts.Facts) -> dict[str, Any]:
    """What the choice must know of GPUs, drivers, and the Pythons of each torch."""
    known = hardware.table()
    gpus = [{"sm": card.sm, "name": card.name, "models": list(card.models)} for card in known.cards]
    ptx = {isa: branch for isa, cuda in known.isa.items() if (branch := hardware.branch_for(cuda)) is not None}
    drivers = {tag: int(row.driver) for tag, row in table.cuda.items() if row.driver}
    pythons = {minor: list(row.python) for minor, row in table.torch.items()}
    return {"gpus": gpus, "ptx": ptx, "tegra": sorted(known.tegra), "drivers": drivers, "pythons": pythons}


@cache
def _table() -> facts.Facts:
    return facts.load()


@cache
def _templates() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(WEB),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["path"] = quote
    return made


def _render(template: str, **values: object) -> bytes:
    return _templates().get_template(template).render(**values).encode()


def _project(name: str) -> str:
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) or canonicalize_name(name) != name:
        raise InputError(
            f"{name!r} is no normalised name of a project, so no page can be written under it",
            remedy="name it in lower case, words joined by single hyphens",
        )
    return name


def _version(version: str) -> str:
    try:
        sound = Version(version).local is None and re.fullmatch(r"[0-9A-Za-z.!_-]+", version) is not None
    except InvalidVersion:
        sound = False
    if not sound:
        raise InputError(
            f"{version!r} is no public version, so no page can be written under it",
            remedy="name releases without their local part: 1.0.0 for 1.0.0+cu130",
        )
    return version


def _file(name: str) -> str:
    if not re.fullmatch(r"[^./\\\x00-\x1f\x7f][^/\\\x00-\x1f\x7f]*\.whl", name):
        raise InputError(
            f"{name!r} cannot be the name of a wheel's page: it would leave its folder",
            remedy="remove that record from the index",
        )
    return name
