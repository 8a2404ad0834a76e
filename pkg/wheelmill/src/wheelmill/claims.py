"""What a wheel claims: the torch, Pythons and CUDA that its name and METADATA promise, as places to try."""

from __future__ import annotations

import re
import zipfile
import zlib
from dataclasses import dataclass
from email.parser import BytesParser
from typing import TYPE_CHECKING

from packaging import tags
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from wheelmill.errors import InputError
from wheelmill.model import Cell, python_tag
from wheelmill.names import version_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from wheelmill.facts import Facts, Torch

CUDA = re.compile(r"(?:^|[^a-z])(cpu|cu\d{2,3})(?!\d)|pt\d+(cpu|cu\d{2,3})(?!\d)")
MINOR = re.compile(r"torch(\d+\.\d+)|pt(\d)\.?(\d+)")
MAJORS = ("cu11", "cu12", "cu13")
NOT_MODULES = (".dist-info", ".data", ".libs")


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """What a wheel promises. `torch` is None where it requires none; `cuda` is None where its name says nothing.

    `minor` is the torch minor that the local version names, None without one. `others` are its requirements
    beside torch, as written.
    """

    project: str
    version: str
    torch: SpecifierSet | None
    minor: str | None
    python: SpecifierSet
    cuda: str | None
    tags: frozenset[tags.Tag]
    others: tuple[str, ...]
    modules: tuple[str, ...]

    @property
    def foreign(self) -> str | None:
        """Why this machine can run none of it, if so."""
        platforms = sorted({tag.platform for tag in self.tags})
        if set(platforms) & {"any", *tags.platform_tags()}:
            return None
        return f"the wheel is for {', '.join(platforms)}, which this machine is not"

    def fits(self, python: str) -> bool:
        """Whether a tag admits that minor, such as `3.11` or `3.13t`, whatever the platform."""
        abi = python_tag(python)
        version = tuple(map(int, python.removesuffix("t").split(".")))
        known = [
            *tags.cpython_tags(version, abis=[abi], platforms=["any"]),
            *tags.compatible_tags(version, interpreter=abi.removesuffix("t"), platforms=["any"]),
        ]
        pairs = {(tag.interpreter, tag.abi) for tag in known}
        return any((tag.interpreter, tag.abi) in pairs for tag in self.tags)

    def takes_python(self, python: str) -> bool:
        """Whether tags and Requires-Python admit that minor."""
        # A bound on a patch release admits some of the minor's.
        patches = (f"{python.removesuffix('t')}.{patch}" for patch in (0, 99))
        return self.fits(python) and any(map(self.python.contains, patches))

    def takes_torch(self, row: Torch) -> str | None:
        """The release of that minor that the wheel claims: the newest, or the one that it pins; else None."""
        if self.minor not in (None, row.minor):
            return None
        if self.torch is None or self.torch.contains(row.release, prereleases=True):
            return row.release
        pins = [one.version for one in self.torch if one.operator in ("==", "===")]
        return next((pin.split("+")[0] for pin in pins if pin.startswith(f"{row.minor}.") and "*" not in pin), None)

    def variant(self, row: Torch) -> str | None:
        """The variant of that torch that the wheel claims to serve; None where there is none of its CUDA."""
        if self.cuda is None:
            return row.pypi or "cpu"
        if self.cuda in row.cuda:
            return self.cuda
        # `cu12` names a major, and serves whatever variant of it the index gives.
        same = [tag for tag in row.cuda if self.cuda in MAJORS and tag.startswith(self.cuda)]
        return row.pypi if row.pypi in same else same[-1] if same else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A cell to try a wheel in. `sources` are the torch indexes to ask in turn, None being the default one.

    `unclaimed` says why the wheel does not claim it, None where it does; `absent` why it cannot exist.
    """

    cell: Cell
    release: str
    sources: tuple[str | None, ...]
    unclaimed: str | None
    absent: str | None = None


def read(path: Path) -> Claim:
    """A wheel's claim. Raises InputError when the file is no wheel, or its METADATA cannot be understood."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            (info,) = [n for n in names if n.count("/") == 1 and n.endswith(".dist-info/METADATA")]
            metadata = archive.read(info)
    except (
        *(OSError, ValueError, zipfile.BadZipFile, zlib.error),
        *(RuntimeError, NotImplementedError, KeyError),
    ) as error:
        raise _unreadable(path.name, error) from error
    return parse(path.name, metadata, names)


def _unreadable(file: str, error: Exception) -> InputError:
    return InputError(f"{file} cannot be read as a wheel: {error}", remedy="name a sound .whl file")


def parse(file: str, text: bytes, names: Sequence[str] = ()) -> Claim:
    """The claim of a wheel of that filename, that METADATA (empty: unread) and those members.

    Raises InputError when one of the two cannot be understood.
    """
    try:
        name, version, _, wheel_tags = parse_wheel_filename(file)
        metadata = BytesParser().parsebytes(text, headersonly=True)
        requires = [Requirement(str(text)) for text in metadata.get_all("Requires-Dist", [])]
        python = SpecifierSet(str(metadata.get("Requires-Python", "")))
    except (InvalidWheelFilename, InvalidRequirement, InvalidSpecifier, ValueError) as error:
        raise _unreadable(file, error) from error
    torch = [one for one in requires if canonicalize_name(one.name) == "torch" and _always(one)]
    local = version.local or ""
    minor, cuda = MINOR.search(local), CUDA.search(local)
    return Claim(
        project=canonicalize_name(name),
        version=str(version),
        torch=SpecifierSet(",".join(str(one.specifier) for one in torch if one.specifier)) if torch else None,
        minor=(minor[1] or f"{minor[2]}.{minor[3]}") if minor else None,
        python=python,
        cuda=(cuda[1] or cuda[2]) if cuda else None,
        tags=frozenset(wheel_tags),
        others=tuple(str(one) for one in requires if canonicalize_name(one.name) != "torch" and _always(one)),
        modules=_modules(names),
    )


def _always(requirement: Requirement) -> bool:
    """Whether a requirement is more than an extra's."""
    return requirement.marker is None or "extra" not in str(requirement.marker)


def _modules(names: Sequence[str]) -> tuple[str, ...]:
    """The importable top-level names of a wheel."""
    tops = (name.split("/")[0] for name in names if name.endswith((".py", ".so")))
    found = {top.split(".")[0] for top in tops if not top.endswith(NOT_MODULES)}
    return tuple(sorted(name for name in found if name.isidentifier()))


def places(
    claim: Claim, facts: Facts, torches: Sequence[str] = (), pythons: Sequence[str] = (), *, own: str
) -> tuple[Place, ...]:
    """Where to try a wheel: the asked torches and Pythons; without any, what it claims and its nearest neighbours.

    `own` is the Python to prefer where one will do. Raises InputError for a wheel that claims nothing known.
    """
    claimed = [minor for minor, row in facts.torch.items() if claim.takes_torch(row) and claim.variant(row)]
    takes = [p for p in facts.pythons if claim.takes_python(p) and not p.endswith("t")]
    if claim.torch is None and claim.minor is None:
        claimed = claimed[-1:]  # it promises nothing of torch; the newest shows whether it loads at all
    if not (torches or claimed) or not (pythons or takes):
        raise InputError(
            f"{claim.project} {claim.version} claims no torch and Python that the tables know",
            remedy="name some with --torch and --python, or add rows to the matrix's table of facts",
        )
    if torches or pythons:
        asked = [(torch, p) for torch in torches or claimed for p in pythons or takes]
        cells = [(torch, p) for torch, p in asked if pythons or p in facts.torch[torch].python]
        return _unique(place for torch, p in cells for place in _at(claim, facts, torch, p))
    inside = [(torch, p) for torch in claimed for p in takes if p in facts.torch[torch].python]
    return _unique(
        place
        for torch, p in (*inside, *_neighbours(facts, claimed, takes, own))
        for place in _at(claim, facts, torch, p)
        if place.unclaimed is None or (torch, p) not in inside or p == _one(facts, torch, takes, own)
    )


def served(cells: Iterable[Cell], facts: Facts) -> tuple[Place, ...]:
    """The cells that a plan says a wheel serves, as places. Free-threaded Pythons are left to who asks for them."""
    rows = ((cell, facts.torch[cell.torch]) for cell in cells if not cell.python.endswith("t"))
    return tuple(
        Place(cell=cell, release=row.release, sources=_sources(cell.cuda, row), unclaimed=None) for cell, row in rows
    )


def _sources(variant: str, row: Torch) -> tuple[str | None, ...]:
    """The torch indexes that have a variant. Any torch serves a cpu wheel, so the default index's stands in."""
    if variant == row.pypi:
        return (None,)
    return ("cpu", None) if variant == "cpu" else (variant,)


def one_a_torch(found: Sequence[Place], own: str) -> tuple[Place, ...]:
    """One place for each torch, in the Python `own` where that is among them.

    Torches of the default index come first, then the newest.
    """
    chosen: dict[str, Place] = {}
    for place in sorted(found, key=lambda place: place.cell.python != own):
        chosen.setdefault(place.cell.torch, place)
    newest = sorted(chosen.values(), key=lambda place: version_key(place.cell.torch), reverse=True)
    return tuple(sorted(newest, key=lambda place: place.sources != (None,)))


def _unique(found: Iterator[Place]) -> tuple[Place, ...]:
    rows = {place.cell: place for place in found}.values()
    keys = lambda place: (version_key(place.cell.torch), place.cell.cuda, version_key(place.cell.python))  # noqa: E731
    return tuple(sorted(rows, key=keys))


def _one(facts: Facts, torch: str, pythons: Sequence[str], own: str) -> str | None:
    """The Python to try a torch in where one will do."""
    there = [p for p in pythons if p in facts.torch[torch].python]
    return own if own in there else there[-1] if there else None


def _neighbours(facts: Facts, claimed: Sequence[str], takes: Sequence[str], own: str) -> Iterator[tuple[str, str]]:
    """The torch minors next to the claimed ones, and the Pythons next to the claimed ones, in one cell each."""
    minors = list(facts.torch)
    for at in (minors.index(claimed[0]) - 1, minors.index(claimed[-1]) + 1):
        if 0 <= at < len(minors) and (python := _one(facts, minors[at], takes, own)):
            yield minors[at], python
    plain = [p for p in facts.pythons if not p.endswith("t")]
    for at in (plain.index(takes[0]) - 1, plain.index(takes[-1]) + 1):
        if 0 <= at < len(plain):
            there = [minor for minor in claimed if plain[at] in facts.torch[minor].python]
            yield (there or claimed)[-1], plain[at]


def _at(claim: Claim, facts: Facts, torch: str, python: str) -> Iterator[Place]:
    """The variants of one torch to try: the claimed one, and the default index's where that is another."""
    row = facts.torch[torch]
    variant, release = claim.variant(row), claim.takes_torch(row)
    absent = None if python in row.python else f"torch {torch} has no wheel for Python {python}"
    outside = _outside(claim, torch, python, release=release)
    if variant is not None:
        cell = Cell(cuda=variant, torch=torch, python=python)
        sources = _sources(variant, row)
        yield Place(cell=cell, release=release or row.release, sources=sources, unclaimed=outside, absent=absent)
    if row.pypi is not None and variant not in (row.pypi, "cpu"):
        reason = outside or f"it is for {claim.cuda}, and this torch is of {row.pypi}"
        cell = Cell(cuda=row.pypi, torch=torch, python=python)
        yield Place(cell=cell, release=release or row.release, sources=(None,), unclaimed=reason, absent=absent)


def _outside(claim: Claim, torch: str, python: str, *, release: str | None) -> str | None:
    if release is None:
        return f"it does not take torch {torch}"
    return None if claim.takes_python(python) else f"it does not take Python {python}"
