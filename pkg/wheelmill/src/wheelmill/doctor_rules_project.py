"""Checks of a project's files, and of an installed package. Facts → findings."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement

from wheelmill.doctor_case import older, oldest_and_newest, pin, public, runs
from wheelmill.doctor_findings import Finding, found
from wheelmill.doctor_rules import branch
from wheelmill.doctor_rules_cuda import newest_ptx
from wheelmill.names import listing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from wheelmill.doctor_case import Case
    from wheelmill.doctor_facts import Architectures, Package, PackageLibrary, Project
    from wheelmill.which_env import Gpu, Torch

SETUPTOOLS = "setuptools.build_meta"
SYMBOLS = 3


def project(case: Case) -> Iterator[Finding]:
    one = case.project
    if one is None:
        return
    for file, what, will in one.broken:
        yield found("project-unreadable", what=what, will=will, file=file)
    for what in one.unread:
        yield found("project-unread", what=what)
    if not one.files:
        yield found("project-empty", root=one.root)
        return
    if one.cuda and one.conditional and not case.machine.env.gpus and not case.machine.system.forced:
        yield found("cuda-conditional", what=one.conditional)
    for first, second in one.collisions:
        yield _collision(first, second)
    yield from _standards(case, one)
    for stated in one.architectures:
        yield from _architectures(case, stated)
    yield from _requires(case, one)
    yield from _unpinned(case, one)


def _collision(first: str, second: str) -> Finding:
    renamed = PurePosixPath(second)
    word = "cuda" if renamed.suffix == ".cu" else renamed.suffix.lstrip(".")
    words = {"first": first, "second": second, "object": str(renamed.with_suffix(".o"))}
    return found("sources-collide", **words, renamed=str(renamed.with_name(f"{renamed.stem}_{word}{renamed.suffix}")))


def _standards(case: Case, one: Project) -> Iterator[Finding]:
    """Pinned standards, of a project that uses torch's C++ API: its headers are what needs one."""
    if one.unstable is None and not one.setup:
        return
    files, torch = case.machine.torch, case.torch
    minor, row = list(case.known.torch.items())[-1]
    newest = row.cxx or 0
    demanded = (files.demanded or files.standard) if files is not None and torch is not None else None
    usual = files.standard if files is not None and torch is not None else None
    name = f"torch {torch.version}" if torch else f"torch {minor}"
    for stated in one.standards:
        words = {"file": stated.file, "line": stated.line, "have": stated.value, "text": stated.text}
        if stated.value < (demanded or 0):
            yield found("standard-pinned", **words, needed=demanded, torch=name)
        elif stated.value < (usual or newest):
            yield found("standard-ageing", "warning" if usual else None, **words, needed=usual or newest, torch=name)
        elif stated.value < newest:
            yield found("standard-ageing", **words, needed=newest, torch=f"torch {minor}")


def _architectures(case: Case, stated: Architectures) -> Iterator[Finding]:
    words = {"file": stated.file, "line": stated.line, "text": stated.text, "variable": stated.variable}
    row = case.toolkit
    numbers = {one.name.replace(".", "") for one in row.sm} if row else frozenset()
    unknown = [one for one in dict.fromkeys((*stated.sass, *stated.ptx)) if row is not None and one not in numbers]
    if row is not None and unknown:
        low, high = oldest_and_newest(row)
        asked = {**words, "text": f"{stated.text} ({listing(unknown)})"}
        yield found("architectures-toolkit", **asked, have=row.minor, low=low, high=high)
    bad = [gpu for gpu in case.machine.env.gpus or () if gpu.capability and (stated.sass or stated.ptx)]
    bad = [gpu for gpu in bad if not runs(gpu.capability or "", stated.sass, stated.ptx)]
    # Flags come one target each, of which another may serve the GPU.
    every = [one for one in case.project.architectures if one.file == stated.file] if case.project else []
    lost = [gpu for gpu in bad if not any(runs(gpu.capability or "", one.sass, one.ptx) for one in every)]
    if lost:
        yield found("architectures-gpu", **words, gpu=listing(map(str, dict.fromkeys(lost))))
    else:
        yield found("architectures-pinned", **words)


def _named(texts: Iterable[str]) -> dict[str, Requirement]:
    """Requirements by name; what is none is left out, and told by the back end."""
    found_: dict[str, Requirement] = {}
    for text in texts:
        try:
            one = Requirement(text)
        except InvalidRequirement:
            continue
        found_.setdefault(re.sub(r"[-_.]+", "-", one.name).lower(), one)
    return found_


def _requires(case: Case, one: Project) -> Iterator[Finding]:
    file = "pyproject.toml"
    words = {"python": case.python, "root": shlex.quote(one.root)}
    named = _named(one.requires or ())
    if one.setup and one.imports_torch and "torch" not in named:
        what = file if one.requires is not None else "pyproject.toml's build-system.requires (there is none)"
        yield found("requires-torch", **words, file=what, pin=pin(case.torch))
    if one.requires is not None and "setuptools" not in named and (one.backend or SETUPTOOLS).startswith("setuptools"):
        yield found("requires-setuptools", file=file, backend=one.backend or f"{SETUPTOOLS}, for it names none")
    if one.setup and one.imports_torch and "torch" in named and "ninja" not in named:
        yield found("requires-ninja", file=file)
    asked, torch = named.get("torch"), case.torch
    if asked is not None and torch is not None and one.unstable is not None and _other(asked, torch):
        yield found("isolation-torch", **words, file=file, requirement=asked, version=public(torch))


def _other(asked: Requirement, torch: Torch) -> bool:
    """Whether a build requirement of torch may bring another one than is installed."""
    return not _pinned(asked) or not asked.specifier.contains(torch.version or "", prereleases=True)


def _pinned(one: Requirement) -> bool:
    """Whether a requirement admits one minor of torch at most."""
    operators = {spec.operator for spec in one.specifier}
    return bool(operators & {"==", "===", "~="}) or one.url is not None


def _unpinned(case: Case, one: Project) -> Iterator[Finding]:
    if one.unstable is None:
        return
    for stated in one.dependencies:
        asked = _named([stated.text]).get("torch")
        if asked is not None and not _pinned(asked):
            words = {"file": f"{stated.file}:{stated.line}", "requirement": stated.text, "source": one.unstable}
            yield found("torch-unpinned", **words, pin=f"{case.torch.minor if case.torch else '2.X'}.*")


def package(case: Case) -> Iterator[Finding]:
    one = case.package
    if one is None:
        return
    words = {"python": case.python, "name": shlex.quote(one.name)}
    if one.version is None:
        yield found("package-absent", **words)
        return
    torch, asked = case.torch, _named(one.requires).get("torch")
    if torch is not None and asked is not None and not asked.specifier.contains(torch.version or "", prereleases=True):
        stated = {"version": one.version, "requirement": f"torch{asked.specifier}"}
        yield found("package-requires", **words, **stated, torch=torch.version, minor=torch.minor)
    if not one.libraries and not one.unreadable:
        yield found("package-no-library", **words, version=one.version)
    for path, why in one.unreadable.items():
        yield found("package-unreadable", **words, library=path, why=why)
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
        command = f"{case.python} -m pip install --force-reinstall {one.name}, or install what brings {lacking[0]}"
        if torch is None and any(text.startswith(("libtorch", "libc10")) for text in lacking):
            command = f"{case.python} -m pip install torch"
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
