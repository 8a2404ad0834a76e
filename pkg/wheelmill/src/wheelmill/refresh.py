"""Tables of facts and what the servers say → what is to be changed, and what only a person can settle. No I/O.

A row is changed only by what its own source says, and only to say more: a newer release, another Python or CUDA
variant. Where a server contradicts a row, the row stays and the contradiction is told.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.version import Version

from wheelmill import refresh_cuda, refresh_wheels
from wheelmill.names import cuda_key, listing, version_key
from wheelmill.refresh_answers import minor_of, newer, ordered
from wheelmill.refresh_change import INDEX, PYPI, Change, Row, Told

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from wheelmill.facts import Facts, Torch
    from wheelmill.refresh_answers import Answers, Artifact, Release, Unreached

ONLY_PYPI = "only the PyPI variant is known yet"
# What the servers can name and a table cannot hold.
PLAIN = re.compile(r"\d+\.\d+\.\d+")
PLATFORM = re.compile(r"[a-z0-9_]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """`changes` and `rows` are true and go into the tables; `differs` and `open` are for a person."""

    changes: tuple[Change, ...]
    rows: tuple[Row, ...]
    differs: tuple[Told, ...]
    open: tuple[Told, ...]
    unreached: tuple[Unreached, ...]


def compare(known: Facts, said: Answers, date: str) -> Result:
    """What the answers, read on `date`, make of the tables."""
    found = [*_torch(known, said, date), *refresh_cuda.compare(known, said, date)]
    return Result(
        changes=tuple(one for one in found if isinstance(one, Change)),
        rows=tuple(one for one in found if isinstance(one, Row)),
        differs=tuple(one for one in found if isinstance(one, Told) and not one.open),
        open=tuple(one for one in found if isinstance(one, Told) and one.open),
        unreached=said.unreached,
    )


def _torch(known: Facts, said: Answers, date: str) -> Iterator[Change | Row | Told]:
    if said.torch is None:
        return
    oldest = min(map(version_key, known.torch), default=())
    minors = {*known.torch, *(minor for minor in said.torch if version_key(minor) > oldest)}
    for minor in sorted(minors, key=version_key):
        newest, row = said.torch.get(minor), known.torch.get(minor)
        if newest is None:
            yield _differs(minor, "PyPI has no wheel of it for Linux x86_64 that is not yanked")
        elif not PLAIN.fullmatch(newest.release):
            yield _open(minor, f"PyPI's newest release is {newest.release}, which is no X.Y.Z")
        elif row is None:
            yield from _new(newest, said, date)
        elif Version(newest.release) == Version(row.release):
            yield from _same(row, newest, said)
        elif Version(newest.release) < Version(row.release):
            yield _differs(
                minor,
                f"the row has {row.release}, and the newest on PyPI that is not yanked is older: {newest.release}",
            )
        else:
            yield from _newer(row, newest, said)
    told = {refresh_wheels.tag(minor) for minor in newer(known, said.toolkits or ())}
    for tag in sorted(_tags(said) - {"cpu", *known.cuda, *known.tags, *told}, key=cuda_key):
        yield Told(table="cuda", row=tag, what="torch has wheels of it, and it has no row", open=True)


def _tags(said: Answers) -> set[str]:
    """The CUDA tags that the newest releases have wheels of."""
    newest = {one.release for one in (said.torch or {}).values()}
    has = {tag for tag, every in (said.variants or {}).items() if newest & set(every)}
    return has | {one.cuda for one in said.wheels.values() if one.cuda is not None}


def _differs(minor: str, what: str) -> Told:
    return Told(table="torch", row=minor, what=what, open=False)


def _open(minor: str, what: str) -> Told:
    return Told(table="torch", row=minor, what=what, open=True)


def _change(row: Torch, field: str, new: object, source: str) -> Change:
    old = getattr(row, field)
    shown = ordered(old) if field == "python" else list(old) if isinstance(old, tuple) else old
    return Change(table="torch", row=row.minor, field=field, old=shown, new=new, source=source)


def _of(said: Answers, release: str) -> dict[str, Release] | None:
    """The variants of a release by tag; None where torch's index gave no answer."""
    if said.variants is None:
        return None
    return {tag: every[release] for tag, every in said.variants.items() if release in every}


def _variants(row: Torch, has: Mapping[str, Release], newest: Release) -> Iterator[Change | Told]:
    """Variants that the row lacks are added; one that the index lacks is told, and one without all Pythons."""
    added = set(has) - set(row.cuda)
    if added:
        yield _change(row, "cuda", sorted({*row.cuda, *added}, key=cuda_key), INDEX)
    for tag in sorted(added, key=cuda_key):
        if tag != "cpu":
            yield _open(row.minor, f"the SM targets of torch's own kernels for {tag} (sm)")
    yield from _fewer(row.minor, has, newest)


def _fewer(minor: str, has: Mapping[str, Release], newest: Release) -> Iterator[Told]:
    for tag, one in sorted(has.items(), key=lambda item: cuda_key(item[0])):
        fewer = ordered(set(newest.pythons) - set(one.pythons))
        if fewer:
            yield _differs(minor, f"{tag} of {newest.release} has no wheel for Python {listing(fewer)}, which PyPI has")


def _same(row: Torch, newest: Release, said: Answers) -> Iterator[Change | Told]:
    """The row's own release."""
    if set(newest.pythons) - set(row.python):
        yield _change(row, "python", ordered({*row.python, *newest.pythons}), PYPI)
    if gone := ordered(set(row.python) - set(newest.pythons)):
        yield _differs(row.minor, f"PyPI has no wheel of {row.release} for Python {listing(gone)}")
    for what in _contradictions(row, newest, said.wheels.get(newest.release)):
        yield _differs(row.minor, what)
    has = _of(said, newest.release)
    if has is None:
        return
    yield from _variants(row, has, newest)
    for tag in row.cuda:
        if tag not in has and tag != row.pypi:
            yield _differs(row.minor, f"torch's index has no {tag} of {row.release}")


def _newer(row: Torch, newest: Release, said: Answers) -> Iterator[Change | Told]:
    """A newer patch release: taken where everything that the row states is known to hold for it too."""
    wheel, has = said.wheels.get(newest.release), _of(said, newest.release)
    against = list(_contradictions(row, newest, wheel))
    if wheel is None:
        against.append("its wheel could not be read")
    if has is None and set(row.cuda) - {row.pypi}:
        against.append("which variants it has is not known, as torch's index was not read")
    if has is not None and (lacks := [tag for tag in row.cuda if tag not in has and tag != row.pypi]):
        against.append(f"torch's index has no {listing(lacks)} of it")
    if against:
        yield _differs(row.minor, f"{newest.release} is out, and the row stays at {row.release}: {'; '.join(against)}")
        return
    yield _change(row, "release", newest.release, PYPI)
    if set(newest.pythons) != set(row.python):
        yield _change(row, "python", ordered(newest.pythons), PYPI)
    if has is not None:
        yield from _variants(row, has, newest)


def _contradictions(row: Torch, newest: Release, wheel: Artifact | None) -> Iterator[str]:
    if row.manylinux is not None and row.manylinux not in newest.platforms:
        yield f"its wheels are tagged {listing(newest.platforms)}, not {row.manylinux}"
    for what, states, has in (
        ("CUDA", row.pypi, wheel and wheel.cuda),
        ("C++ standard", row.cxx, wheel and wheel.cxx),
        ("C++11 ABI", row.cxx11(row.pypi or ""), wheel and wheel.cxx11_abi),
    ):
        if has is not None and states is not None and states != has:
            yield f"the {what} of its PyPI wheel is {has}, not {states}"


def _new(newest: Release, said: Answers, date: str) -> Iterator[Row | Told]:
    minor, release = minor_of(newest.release), newest.release
    wheel, has = said.wheels.get(release), _of(said, release)
    if wheel is None or wheel.cuda is None or not newest.pythons:
        lacks = "its Pythons" if wheel and wheel.cuda else "its CUDA"
        yield _open(minor, f"{release} is out, and has no row yet: {lacks} could not be read from PyPI's wheel")
        return
    cuda = sorted({wheel.cuda, *(has or ())}, key=cuda_key)
    platform = newest.platforms[0] if len(newest.platforms) == 1 and PLATFORM.fullmatch(newest.platforms[0]) else None
    read = {"pypi": wheel.cuda, "cxx": wheel.cxx, "cxx11_abi": wheel.cxx11_abi}
    variants = f"{INDEX} (cuda)" if has else f"{ONLY_PYPI} (cuda)"
    stated = ", ".join(name for name, value in read.items() if value is not None)
    fields = {
        "release": release,
        "pypi": wheel.cuda,
        "cuda": cuda,
        "python": ordered(newest.pythons),
        "cxx": wheel.cxx,
        "manylinux": platform,
        "cxx11_abi": wheel.cxx11_abi,
        "source": f"{PYPI} (release, python); {variants}; the PyPI wheel of {release} ({stated}); read {date}",
    }
    yield Row(table="torch", row=minor, fields={name: value for name, value in fields.items() if value is not None})
    if not has:
        yield _open(minor, "the variants beside PyPI's, cpu among them (cuda): torch's index told none")
    for tag in cuda:
        if tag != "cpu":
            yield _open(minor, f"the SM targets of torch's own kernels for {tag} (sm)")
    for name, what in (("cxx", "the C++ standard"), ("cxx11_abi", "the C++11 ABI"), ("manylinux", "the platform tag")):
        if fields[name] is None:
            yield _open(minor, f"{what} ({name}), which its wheel does not say")
    yield from _fewer(minor, has or {}, newest)
