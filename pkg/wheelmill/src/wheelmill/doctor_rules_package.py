"""Checks of an installed package. Facts → findings."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from wheelmill.doctor_case import older, runs
from wheelmill.doctor_findings import Finding, found
from wheelmill.doctor_rules import branch
from wheelmill.doctor_rules_driver import newest_ptx
from wheelmill.doctor_rules_project import named
from wheelmill.names import listing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelmill.doctor_case import Case
    from wheelmill.doctor_facts import Package, PackageLibrary
    from wheelmill.which_env import Gpu

SYMBOLS = 3


def package(case: Case) -> Iterator[Finding]:
    one = case.package
    if one is None:
        return
    words = {**case.words, "name": shlex.quote(one.name)}
    if one.version is None:
        yield found("package-absent", **words)
        return
    torch, asked = case.torch, named(one.requires, case).get("torch")
    if torch is not None and asked is not None and not asked.specifier.contains(torch.version or "", prereleases=True):
        stated = {"version": one.version, "requirement": f"torch{asked.specifier}"}
        yield found("package-requires", **words, **stated, torch=torch.version, minor=torch.minor)
    if not one.libraries and not one.unreadable:
        yield found("package-no-library", **words, version=one.version)
    for path, why in one.unreadable.items():
        yield found("package-unreadable", **words, version=one.version, library=path, why=why)
    for library in one.libraries:
        apart = library.path in one.alternatives
        for finding in _library(case, one, library, words):
            # Of several builds of one thing one is loaded: which, its own code decides.
            yield replace(finding, severity="info") if apart else finding


def _library(case: Case, one: Package, library: PackageLibrary, words: dict[str, str]) -> Iterator[Finding]:
    torch = case.torch
    name = {**words, "library": library.path}
    lacking = list(library.lacking)
    if torch is not None and torch.major is not None and library.cuda and library.cuda[1] != str(torch.major):
        needed, have = library.cuda
        yield found("package-cuda", **name, needed=needed, have=have, version=torch.version, wanted=torch.major)
        lacking = [text for text in lacking if not text.startswith(("libcu", "libnv"))]
    if lacking:
        count = "is not" if len(lacking) == 1 else "are not"
        command = f"{case.pip} --force-reinstall --no-deps {one.name}, or install what brings {lacking[0]}"
        if torch is None and any(text.startswith(("libtorch", "libc10")) for text in lacking):
            command = f"{case.pip} torch"
        yield found(
            "package-libraries",
            **name,
            libraries=listing(lacking, limit=6),
            count=count,
            first=lacking[0],
            command=command,
        )
    elif torch is not None and library.missing:
        shown = listing(library.missing, limit=SYMBOLS)
        yield found(
            "package-symbols", **name, symbols=shown, first=library.missing[0], version=torch.version, minor=torch.minor
        )
    for gpu in dict.fromkeys(case.machine.env.gpus or ()):
        yield from _code(case, library, gpu, name)
    yield from _versions(case, library, name)


def _code(case: Case, library: PackageLibrary, gpu: Gpu, name: dict[str, str]) -> Iterator[Finding]:
    if gpu.capability is None or not (library.sass or library.ptx) or runs(gpu.capability, library.sass, ()):
        return
    if not runs(gpu.capability, (), library.ptx):
        code = {"sass": listing(library.sass), "ptx": listing(library.ptx)}
        yield found("package-no-code", **name, **code, gpu=gpu, best=case.best_list)
        return
    late = newest_ptx(case, library.isa) if library.isa else None
    if late is not None and library.isa is not None:
        isa, (needs, serves) = "{}.{}".format(*library.isa), late
        yield found(
            "package-ptx",
            **name,
            gpu=gpu,
            isa=isa,
            needs=needs,
            serves=serves,
            best=case.best_list,
            branch=branch(needs),
        )


def _versions(case: Case, library: PackageLibrary, name: dict[str, str]) -> Iterator[Finding]:
    libc, mine = case.machine.env.libc, case.machine.system
    if (
        libc is not None
        and libc.kind == "glibc"
        and libc.version
        and library.glibc
        and older(libc.version, library.glibc)
    ):
        command = (
            "take a wheel of a lower manylinux tag, build it here, or use a newer distribution; never replace glibc"
        )
        yield found(
            "package-system",
            **name,
            needed=f"GLIBC_{library.glibc}",
            what="this glibc",
            have=libc.version,
            command=command,
        )
    have, what = (mine.conda_glibcxx, mine.conda_libstdcxx) if mine.conda_glibcxx else (mine.glibcxx, "libstdc++.so.6")
    if have and library.glibcxx and older(have, library.glibcxx):
        command = (
            "conda install -c conda-forge 'libstdcxx>=15'"
            if mine.conda_glibcxx
            else "use a newer distribution, or build it here"
        )
        yield found(
            "package-system", **name, needed=f"GLIBCXX_{library.glibcxx}", what=what, have=have, command=command
        )
