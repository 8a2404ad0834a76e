"""What the servers can say of torch and CUDA, as values; and a page of an index as its releases. No I/O."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.utils import parse_wheel_filename

from wheelmill.names import version_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from packaging.version import Version

    from wheelmill.facts import Facts
    from wheelmill.which_candidate import Link
    from wheelmill.which_links import Listing

ARCH = "_x86_64"
CPYTHON = re.compile(r"cp3\d{1,4}")
# A release of a minor, as the tables name minors; an epoch or a bare `3` is none.
OF_MINOR = re.compile(r"\d{1,9}\.\d{1,9}(?![\d!]).*")


@dataclass(frozen=True, kw_only=True, slots=True)
class Release:
    """A release in an index, by its wheels for Linux x86_64 that are not yanked; `link` is one of them."""

    release: str
    pythons: tuple[str, ...]
    platforms: tuple[str, ...]
    link: Link


@dataclass(frozen=True, kw_only=True, slots=True)
class Artifact:
    """What torch's wheel itself states; None where its bytes do not say."""

    cuda: str | None
    cxx: int | None = None
    cxx11_abi: bool | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Compiler:
    """A toolkit's compiler on PyPI: its release, the targets and the newest GCC that it takes, empty or None unread."""

    nvcc: str
    sm: tuple[str, ...]
    gcc: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Unreached:
    """A source that gave no answer, or none that can be understood."""

    source: str
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Answers:
    """Everything that the servers said. What is None, or lacks a key, was not learned.

    `torch` is PyPI's newest release a minor, `variants` what torch's own index has a CUDA tag, by release; `wheels`
    are by torch release. `toolkits` is PyPI's newest cuda-toolkit a minor, `complete` whether that release holds a
    compiler, `compilers` those of CUDAs without a row; `runtimes` the newest release a package and minor.
    """

    torch: Mapping[str, Release] | None
    variants: Mapping[str, Mapping[str, Release]] | None
    wheels: Mapping[str, Artifact]
    toolkits: Mapping[str, Release] | None
    complete: Mapping[str, bool]
    compilers: Mapping[str, Compiler]
    runtimes: Mapping[str, Mapping[str, str]]
    unreached: tuple[Unreached, ...]


def minor_of(release: str) -> str:
    return ".".join(release.split(".")[:2])


def _python(interpreter: str, abi: str) -> str | None:
    """`cp313`, `cp313t` → `3.13t`; None for what is no wheel of one CPython."""
    if not CPYTHON.fullmatch(interpreter) or abi not in (interpreter, f"{interpreter}t"):
        return None
    return f"3.{interpreter[3:]}{'t' if abi.endswith('t') else ''}"


def releases(listing: Listing) -> dict[Version, Release]:
    """The final releases `X.Y…` of a page, ascending, each with its wheels for Linux x86_64 that are not yanked."""
    pythons: dict[Version, set[str]] = {}
    platforms: dict[Version, set[str]] = {}
    links: dict[Version, Link] = {}
    for link in listing.links:
        _, version, _, tags = parse_wheel_filename(link.file)
        here = {one for one in tags if one.platform == "any" or ("linux" in one.platform and ARCH in one.platform)}
        final = OF_MINOR.fullmatch(str(version)) and not version.is_prerelease and not version.is_devrelease
        if link.yanked is not None or not final or not here:
            continue
        found = {_python(one.interpreter, one.abi) for one in here}
        pythons.setdefault(version, set()).update(one for one in found if one is not None)
        platforms.setdefault(version, set()).update(one.platform.removesuffix(ARCH) for one in here)
        links[version] = min(links.get(version, link), link, key=lambda one: one.file)
    return {
        version: Release(
            release=str(version),
            pythons=tuple(sorted(pythons[version], key=_python_key)),
            platforms=tuple(sorted(platforms[version])),
            link=links[version],
        )
        for version in sorted(links)
    }


def _python_key(python: str) -> tuple[bool, tuple[int, ...]]:
    """The tables' order: free-threaded builds after all others."""
    return python.endswith("t"), version_key(python)


def ordered(pythons: Iterable[str]) -> list[str]:
    return sorted(pythons, key=_python_key)


def newer(known: Facts, minors: Iterable[str]) -> list[str]:
    """CUDA minors above every row of their major, or of all where it has none; ascending.

    A minor between two rows was left out by whoever wrote them.
    """
    rows = [version_key(row.minor) for row in known.cuda.values()]

    def is_new(minor: tuple[int, ...]) -> bool:
        return minor > max([row for row in rows if row[0] == minor[0]] or rows, default=())

    return sorted((minor for minor in minors if is_new(version_key(minor))), key=version_key)
