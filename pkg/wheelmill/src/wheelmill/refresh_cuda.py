"""CUDA's part of a refresh: moved pins of toolkits and runtimes, and toolkits that have no row. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from wheelmill import refresh_wheels, toolkit
from wheelmill.errors import InputError
from wheelmill.refresh_answers import newer
from wheelmill.refresh_change import PYPI, Change, Row, Told

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelmill.facts import Cuda, Facts
    from wheelmill.refresh_answers import Answers, Release


def compare(known: Facts, said: Answers, date: str) -> Iterator[Change | Row | Told]:
    for row in known.cuda.values():
        if row.pypi is not None and said.toolkits is not None:
            yield from _toolkit(row, row.pypi, said)
        if row.runtime is not None:
            yield from _runtime(row, row.runtime, said)
    for minor in newer(known, said.toolkits or ()):
        yield from _new(known, minor, said, date)


def _differs(row: Cuda, what: str) -> Told:
    return Told(table="cuda", row=row.tag, what=what, open=False)


def _version(row: Cuda, text: str) -> Version:
    try:
        return Version(text)
    except InvalidVersion as error:
        raise InputError(f"cuda.toml: {row.tag}: {text!r} is no release", remedy="correct that row") from error


def _toolkit(row: Cuda, pinned: str, said: Answers) -> Iterator[Change | Told]:
    newest = (said.toolkits or {}).get(row.minor)
    if newest is None:
        yield _differs(row, f"PyPI has no cuda-toolkit of {row.minor} that is not yanked")
    elif Version(newest.release) < _version(row, pinned):
        yield _differs(row, f"the row has cuda-toolkit {pinned}, and the newest on PyPI is older: {newest.release}")
    elif Version(newest.release) > _version(row, pinned):
        match said.complete.get(newest.release):
            case True:
                yield Change(table="cuda", row=row.tag, field="pypi", old=pinned, new=newest.release, source=PYPI)
            case False:
                yield _differs(row, f"cuda-toolkit {newest.release} is out and lacks one of {toolkit.PARTS}")
            case None:
                yield _differs(row, f"cuda-toolkit {newest.release} is out, and could not be read")


def _runtime(row: Cuda, stated: str, said: Answers) -> Iterator[Change | Told]:
    package, _, pinned = stated.partition("==")
    if package not in said.runtimes:
        return
    newest = said.runtimes[package].get(row.minor)
    if newest is None or Version(newest) < _version(row, pinned):
        yield _differs(row, f"the row has {stated}, and the newest of {row.minor} on PyPI is {newest or 'none'}")
    elif Version(newest) > _version(row, pinned):
        new = f"{package}=={newest}"
        yield Change(table="cuda", row=row.tag, field="runtime", old=stated, new=new, source=PYPI)


def _new(known: Facts, minor: str, said: Answers, date: str) -> Iterator[Row | Told]:
    """A row where all of it is known: targets, host compiler and driver. Else what is known, for a person to finish."""
    kit: Release = (said.toolkits or {})[minor]
    tag, compiler = refresh_wheels.tag(minor), said.compilers.get(minor)
    major = minor.split(".", 1)[0]
    floors = {row.driver for row in known.cuda.values() if row.minor.split(".", 1)[0] == major}
    driver = floors.pop() if len(floors) == 1 else None
    lacks = []
    whole = said.complete.get(kit.release)
    if not whole:
        lacks.append(
            "whether its wheels are a complete compiler (pypi)" if whole is None else "a compiler outside PyPI"
        )
    if compiler is None or not compiler.sm:
        lacks.append("its targets by ptxas --help (sm)")
    if compiler is None or compiler.gcc is None:
        lacks.append("its newest host GCC by crt/host_config.h (gcc)")
    if driver is None:
        lacks.append("the lowest driver branch of its major (driver)")
    if lacks or compiler is None:
        read = [f"cuda-toolkit {kit.release}"]
        read += [f"gcc {compiler.gcc}"] if compiler and compiler.gcc else []
        read += [f"sm {' '.join(compiler.sm)}"] if compiler and compiler.sm else []
        what = f"CUDA {minor} is on PyPI and has no row yet. Read: {', '.join(read)}. Not known: {'; '.join(lacks)}"
        yield Told(table="cuda", row=tag, what=what, open=True)
        return
    source = (
        f"ptxas and crt/host_config.h of {compiler.nvcc} of nvidia-cuda-nvcc (sm, gcc); {PYPI} (pypi); "
        f"the rows of its major (driver); read {date}"
    )
    yield Row(
        table="cuda",
        row=tag,
        fields={
            "minor": minor,
            "sm": list(compiler.sm),
            "gcc": compiler.gcc,
            "driver": driver,
            "pypi": kit.release,
            "source": source,
        },
    )
    yield Told(table="cuda", row=tag, what="the PTX ISA that its compiler writes (ptx)", open=True)
