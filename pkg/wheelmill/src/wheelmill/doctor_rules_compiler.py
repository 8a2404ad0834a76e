"""Checks of the host compiler, and of the variables that name compilers. Facts → findings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from wheelmill.doctor_findings import Finding, found

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelmill.doctor_case import Case
    from wheelmill.doctor_facts import Compiler, Named
    from wheelmill.findings import Severity

# The lowest GCC whose C++ of that year torch's headers compile with (c10/util/C++17.h; <concepts> came with GCC 10).
GCC_OF = {14: 5, 17: 9, 20: 10, 23: 13}
# torch's own pattern of a version that it was built with from source.
FROM_SOURCE = re.compile(r"\d+\.\d+\.\d+\w+\+\w+")
KINDS = {"gcc": "GCC", "clang": "clang"}
CCBIN = "nvcc stops with 'nvcc fatal   : Failed to preprocess host compiler properties'"


def compiler(case: Case) -> Iterator[Finding]:
    one = case.machine.compiler
    asked = f" ({one.variable} names it)" if one.variable else ""
    install = case.install("compiler")
    if one.path is None:
        asked = f": {one.variable} names one that is not there" if one.variable else ": neither g++ nor c++ is on PATH"
        yield found(
            "compiler-absent", asked=asked, install=f"unset {one.variable}, or {install}" if one.variable else install
        )
        return
    if one.answer != "works":
        why = "does not end" if one.answer == "hangs" else "does not run"
        yield found("compiler-broken", path=one.path, asked=asked, why=why, install=_instead(case, one) or install)
        return
    if one.version is not None and one.kind is not None:
        yield from _new(case, one, one.version, one.kind)
        yield from _old(case, one, one.version, one.kind)


def _new(case: Case, one: Compiler, have: str, kind: str) -> Iterator[Finding]:
    limit, own, chosen = _most(case, kind), _torchs(case, kind), case.machine.toolkits.chosen
    if limit is None or chosen is None or _major(have) <= limit:
        return
    release = chosen.release
    if own == limit and case.torch is not None:  # it looks before nvcc is called
        whose = f"torch {case.torch.version} takes {KINDS[kind]} {limit} at most with CUDA {release}"
        name = next((stated.value.split()[0] for stated in one.named if stated.variable == one.variable), "g++")
        bound = f"({have}) is greater than the maximum required version by CUDA {release}"
        stops = f"torch's build stops with 'The current installed version of {name} {bound}'"
    else:
        whose = f"CUDA {release} takes {KINDS[kind]} {limit} at most"
        said = {
            "gcc": f"GNU version! gcc versions later than {limit} are not supported!",
            "clang": f"clang version! clang version must be less than {limit + 1}",
        }
        stops = f"nvcc stops with '#error -- unsupported {said[kind]}'"
    words = {"path": one.path, "have": have, "kind": KINDS[kind], "whose": whose, "stops": stops}
    severity: Severity | None = None if case.wants_cuda else "info"  # nvcc is not called
    yield found("compiler-new", severity, **words, command=_instead(case, one) or _another(case, kind, limit))


def _old(case: Case, one: Compiler, have: str, kind: str) -> Iterator[Finding]:
    files, own = case.machine.torch, case.torch
    needed = _needed(case)
    if own is not None and files is not None and needed is not None and kind == "gcc" and _major(have) < needed:
        words = {"path": one.path, "have": have, "version": own.version, "needed": needed}
        command = _instead(case, one) or _another(case, kind, needed)
        yield found("compiler-old", **words, standard=files.demanded or files.standard, command=command)


def _major(version: str) -> int:
    return int(version.partition(".")[0])


def _by_cmake(case: Case) -> bool:
    """Whether the project is built without setup.py, and so without torch's own build."""
    return case.project is not None and not case.project.setup


def _needed(case: Case) -> int | None:
    files = case.machine.torch
    return GCC_OF.get(files.demanded or files.standard or 0) if files is not None else None


def _most(case: Case, kind: str) -> int | None:
    """The newest GCC or clang that both the toolkit and torch's build take."""
    chosen, row = case.machine.toolkits.chosen, case.toolkit
    gcc = (chosen.gcc if chosen else None) or (row.gcc if row else None)
    cuda = gcc if kind == "gcc" else chosen.clang if chosen else None
    return min(filter(None, (cuda, _torchs(case, kind))), default=None)


def _torchs(case: Case, kind: str) -> int | None:
    """The newest that torch's build takes with this nvcc; None where it does not look, or does not know that CUDA."""
    files, own, chosen = case.machine.torch, case.torch, case.machine.toolkits.chosen
    if files is None or own is None or own.major is None or chosen is None or _by_cmake(case):
        return None
    if not case.machine.compiler.checked or FROM_SOURCE.match(own.version or ""):
        return None
    table = files.tables.gcc if kind == "gcc" else files.tables.clang
    return table.get(chosen.release or "")


def _instead(case: Case, one: Compiler) -> str | None:
    """The command that has builds take a g++ of PATH that fits; None where there is none."""
    low, high = _needed(case) or 0, _most(case, "gcc")
    for other in one.others:
        fits = other.version and other.kind == "gcc" and other.answer == "works" and _major(other.version) >= low
        if fits and other.path and (high is None or _major(other.version or "0") <= high):
            folder, _, name = other.path.rpartition("/")
            if one.variable and other.path == one.default:
                return "unset CXX CC"
            return f"export CXX={other.path} CC={folder}/{name.replace('g++', 'gcc')}"
    return None


def _another(case: Case, kind: str, number: int) -> str:
    """The command that gets a compiler of that number, and what else would fit: distributions have few of them."""
    if kind == "clang":
        return f"export CXX=clang++-{number} CC=clang-{number} CUDAHOSTCXX=clang++-{number}, or unset them and use g++"
    install = case.install("compiler").replace("g++", f"g++-{number}").replace("gcc-c++", f"gcc{number}-c++")
    low, high, chosen = _needed(case), _most(case, "gcc"), case.machine.toolkits.chosen
    fitting = f"{low} to {high}" if low and high else f"{low} and later" if low else f"{high} and older"
    command = f"{install}; export CXX=g++-{number} CC=gcc-{number} CUDAHOSTCXX=g++-{number}"
    command += f" (the distribution may have another number: GCC {fitting} will do)"
    major = _major(case.machine.compiler.version or "0")
    if chosen is None or high is None or major <= high:
        return command
    taking = [cuda.minor for cuda in case.known.cuda.values() if cuda.gcc is not None and cuda.gcc >= major]
    same = [minor for minor in taking if minor.partition(".")[0] == (chosen.release or "").partition(".")[0]]
    return f"{command}; or CUDA {same[0]}, which takes GCC {major}" if same else command


def variables(case: Case) -> Iterator[Finding]:
    """What CC and the like name: CC becomes nvcc's -ccbin in torch's build, and some are for CMake alone."""
    project, stated = case.project, {one.variable: one for one in case.machine.compiler.named}
    torchs = project is None or project.ninja or project.certain
    for name, one in stated.items():
        if name in ("CUDAHOSTCXX", "CUDACXX"):
            told, sure = _cmake(one), _by_cmake(case)
        elif _by_cmake(case) if name != "NVCC_CCBIN" else "CC" in stated and not _by_cmake(case):
            continue
        else:
            told, sure = _torch(case, one), torchs or name == "NVCC_CCBIN"
        if told is not None:
            so, will, mend = told
            words = {"variable": name, "value": repr(one.value), "why": so, "what": will, "command": mend}
            yield found("compiler-variable", None if sure else "warning", **words)


def _cmake(one: Named) -> tuple[str, str, str] | None:
    """What is so of a variable that CMake reads, what will happen, and what mends it."""
    if one.path is not None:
        return None
    said = f"CMake stops where CUDA is enabled: 'Could not find compiler set in environment variable {one.variable}'"
    return "which is not there", said, f"unset {one.variable}"


def _torch(case: Case, one: Named) -> tuple[str, str, str] | None:
    """The same of one that torch's build reads, or nvcc."""
    known = _torchs(case, "gcc") is not None
    chosen = case.machine.toolkits.chosen
    match one.variable:
        case "CC" | "NVCC_CCBIN" if one.path is None:
            part = one.program if one.program and one.program != one.value else ""
            mend = f"export {one.variable}={part}" if part else f"unset {one.variable}"
            return "which nvcc is given as its host compiler: that must be one program that is there", CCBIN, mend
        case "PYTORCH_NVCC" if one.path is None:
            said = f"torch's build stops at its first CUDA file: '{one.program}: not found'"
            return "which is not there", said, "unset PYTORCH_NVCC"
        case "CXX" if one.launcher and known and chosen is not None:
            bound = f"(0.0.0) is less than the minimum required version by CUDA {chosen.release}"
            said = f"a build of CUDA code stops with 'The current installed version of {one.launcher} {bound}'"
            return "whose first word torch's build asks for its version", said, "export TORCH_DONT_CHECK_COMPILER_ABI=1"
    return None
