"""The pages that a change writes or removes, in the order in which they are written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from wheelmill import listing, pages, site, variants
from wheelmill.errors import InputError
from wheelmill.listing import Attached

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from wheelmill.change import Change
    from wheelmill.entries import Entry
    from wheelmill.records import Record

Page = tuple[str, bytes | None]
Release = tuple[str, str]
OURS = re.compile(r"(cpu|cu\d+)-torch\d+\.\d+(\.html|/.*)")
SIMPLE = re.compile(r"simple/[^/]+/(index\.html|index\.json|[^/]+-variants\.json)")
PEOPLE = re.compile(r"(wheels/[^/]+\.whl\.html|releases/[^/]+\.html|data/[^/]+\.js)")


class Releases(Mapping[Release, "Sequence[Record]"]):
    """Every record of each touched release, read when it is asked for."""

    def __init__(self, change: Change) -> None:
        self._change = change
        self._files: dict[Release, list[str]] = {}
        touched = {(project, one.public) for project, one in _differing(change)}
        for project in change.projects:
            for file, one in sorted(change.after.get(project, {}).items()):
                if (project, one.public) in touched:
                    self._files.setdefault((project, one.public), []).append(file)
        self.gone = touched - set(self._files)

    def __getitem__(self, release: Release) -> Sequence[Record]:
        return [self._record(file) for file in self._files[release]]

    def __iter__(self) -> Iterator[Release]:
        return iter(sorted(self._files))

    def __len__(self) -> int:
        return len(self._files)

    def _record(self, file: str) -> Record:
        found = self._change.records.get(file) or self._change.current.record(file)
        if found is None:
            raise InputError(f"the record of {file} in the index cannot be read", remedy=listing.REMEDY)
        return found


def _differing(change: Change) -> Iterator[tuple[str, Entry]]:
    """(project, entry) of each file that changes, as it was and as it is."""
    for project in change.projects:
        old, new = change.before.get(project, {}), change.after.get(project, {})
        for file in old.keys() | new.keys():
            if change.current.whole or old.get(file) != new.get(file):
                yield from ((project, side[file]) for side in (old, new) if file in side)


def _by_environment(change: Change) -> dict[str, dict[str, Entry | None]]:
    """By environment, the new entry of each file that its pages list or did, None where they list it no more."""
    found: dict[str, dict[str, Entry | None]] = {}
    for _, one in _differing(change):
        after = change.files[one.file]
        for name in one.environments:
            found.setdefault(name, {})[one.file] = after if after and name in after.environments else None
    return found


def render(change: Change, *, with_variants: bool) -> Iterator[Page]:
    """(path, content) of each page of the change, None where it goes."""
    releases = Releases(change)
    yield from _complete(change, releases, with_variants=with_variants)
    environments = set(change.current.environments) if not change.current.whole else set()
    for name, files in sorted(_by_environment(change).items()):
        still = yield from _environment(change, name, files)
        (environments.add if still else environments.discard)(name)
    yield "all.html", _spliced(change, "all.html", pages.all_top(), change.files)
    yield "simple/index.html", pages.projects("Simple index", change.known)
    yield listing.ROOT, pages.root_json(change.known, environments, variants=with_variants)
    ordered = sorted(environments, key=pages.environment_key)
    yield from site.pages(releases, change.known, frozenset(change.files), environments=ordered)
    for project, version in releases.gone:
        yield f"releases/{project}-{version}.html", None
        yield f"data/{project}-{version}.js", None
    for file, one in change.files.items():
        if one is None:
            yield f"wheels/{file}.html", None


def _complete(change: Change, releases: Releases, *, with_variants: bool) -> Iterator[Page]:
    """Each touched project's pages in the complete index."""
    for project in change.projects:
        folder, found = f"simple/{project}", change.after.get(project, {}).values()
        touched = {variants.file(project, version) for name, version in (*releases, *releases.gone) if name == project}
        made = _variants(project, releases) if with_variants else {}
        yield from ((f"{folder}/{name}", content) for name, content in made.items())
        old = change.current.attached(project) if with_variants and not change.current.whole else []
        extra = [one for one in old if one.filename not in touched]
        extra += [_attached(name, content) for name, content in made.items()]
        rows = [one.to_json() for one in sorted(extra, key=lambda one: one.filename)]
        anchors = "".join(
            f'<a href="{row["url"]}#sha256={row["hashes"]["sha256"]}">{row["filename"]}</a><br>\n' for row in rows
        )
        yield f"{folder}/index.json", pages.project_json(project, found, rows) if found else None
        page = pages.links(pages.project_top(project), found, "../../", anchors) if found else None
        yield f"{folder}/index.html", page
        for name in sorted(touched - made.keys()):
            yield f"{folder}/{name}", None


def _variants(project: str, releases: Releases) -> dict[str, bytes]:
    """The variant metadata of a project's touched releases, by file name."""
    found = {
        variants.file(name, version): variants.content(releases[name, version])
        for name, version in releases
        if name == project
    }
    return {name: content for name, content in found.items() if content is not None}


def _attached(name: str, content: bytes) -> Attached:
    return Attached.model_validate(
        {"filename": name, "hashes": {"sha256": listing.sha256(content)}, "size": len(content)}
    )


def _spliced(change: Change, path: str, top: bytes, files: Mapping[str, Entry | None]) -> bytes:
    """A page of links at the top of the index. Raises InputError where it is not as it was written."""
    found = pages.spliced(change.current.page(path, top), top, files, "")
    if found is None:
        raise listing.foreign(path)
    return found


def _environment(change: Change, name: str, files: Mapping[str, Entry | None]) -> Generator[Page, None, bool]:
    """The pages of an environment, and whether it still has any wheel."""
    top = pages.environment_top(name)
    page = _spliced(change, f"{name}.html", top, files)
    before = set() if change.current.whole else _projects(change, name)
    after = set(before)
    for project in change.projects:
        here = [one for one in change.after.get(project, {}).values() if name in one.environments]
        folder = f"{name}/{project}"
        (after.add if here else after.discard)(project)
        yield f"{folder}/index.json", pages.project_json(project, here) if here else None
        yield f"{folder}/index.html", pages.links(pages.project_top(project), here, "../../") if here else None
    yield f"{name}/index.json", pages.projects_json(after) if after else None
    yield f"{name}/index.html", pages.projects(name, after) if after else None
    yield f"{name}.html", page if after else None
    return bool(after)


def _projects(change: Change, environment: str) -> set[str]:
    return set(listing.projects(change.current.storage, f"{environment}/index.json"))


def stale(change: Change, written: Iterable[str]) -> Iterator[str]:
    """Pages of ours that a whole write did not write."""
    kept = set(written)
    storage = change.current.storage
    prefixes = ["c", "simple/", *(["wheels/", "releases/", "data/"] if change.current.ours else [])]
    for prefix in prefixes:
        for path in storage.list(prefix):
            if path not in kept and any(form.fullmatch(path) for form in (OURS, SIMPLE, PEOPLE)):
                yield path
