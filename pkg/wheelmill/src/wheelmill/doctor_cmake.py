"""What a CMake file says, line by line: it is never run. Conditions are followed, and variables that it sets once."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wheelmill import doctor_setup
from wheelmill.doctor_facts import Architectures, Standard

if TYPE_CHECKING:
    from collections.abc import Iterator

# cxx_std_17 is none: a feature raises what a compiler does by itself, and never lowers it.
STANDARD = re.compile(r"\b((?:CMAKE_)?(?:CXX|CUDA)_STANDARD)\s+(\d\w)\b")
TARGETS = re.compile(r"\b((?:CMAKE_)?CUDA_ARCHITECTURES|TORCH_CUDA_ARCH_LIST)\s+([\d.][^)$]*)")
TOLD = re.compile(r"\bPROPERT(?:Y|IES)\b[^)]*\bCUDA_ARCHITECTURES\s+\$\{")
# A target with a suffix runs on the GPUs of one capability, or of its family.
ONE = re.compile(r"\d+[af]").fullmatch
GUARD = r"\bif\s*\(\s*NOT\s+(?:DEFINED\s+)?\"?(?:\$\{)?%s\b"
CUDA = re.compile(r"enable_language\s*\(\s*CUDA|project\s*\([^)]*\bCUDA\b")
COMMAND = re.compile(r"^\s*(if|elseif|else|endif)\s*\((.*)\)\s*$", re.IGNORECASE)
SET = re.compile(r"^\s*set\s*\(\s*(\w+)\s+([^()$]*)\)\s*$", re.IGNORECASE)
ELSEWHERE = re.compile(r"\b(WIN32|MSVC|APPLE|ANDROID|IOS|MINGW|CYGWIN|\w*(?:HIP|ROCM)\w*)\b")
LONGEST = 120


@dataclass(slots=True)
class Said:
    """What one file says; `cuda` is whether it compiles CUDA code."""

    cuda: bool = False
    standards: list[Standard] = field(default_factory=list)
    architectures: list[Architectures] = field(default_factory=list)


def read(text: str, name: str) -> Said:
    said, told = Said(cuda=bool(CUDA.search(text))), False
    for number, plain, line, sure in _lines(text):
        for match in STANDARD.finditer(line):
            _standard(said, match[0], match[2], name, number, sure=sure)
        for match in doctor_setup.STANDARD.finditer(plain):
            _standard(said, match[0], match[1], name, number, sure=sure)
        said.architectures += _targets(plain, line, text, name, number, sure=sure)
        told = told or bool(TOLD.search(line))
    if told:
        # Units for one GPU alone, beside targets of which the build is told.
        said.architectures = [one for one in said.architectures if not one.sass or not all(map(ONE, one.sass))]
    return said


def _standard(said: Said, text: str, value: str, name: str, number: int, *, sure: bool) -> None:
    year = doctor_setup.standard(value)
    if year is not None:
        said.standards.append(Standard(text=text, file=name, line=number, value=year, sure=sure))


def _lines(text: str) -> Iterator[tuple[int, str, str, bool]]:
    """(number, line without its comment, the same without quotes and with the variables that the file itself set,
    whether no condition decides it) of the lines that count on Linux, with CUDA.
    """
    # True where a branch is taken only elsewhere, False where always here, None where that is not known.
    branches: list[bool | None] = []
    values: dict[str, str] = {}
    for number, whole in enumerate(text.splitlines(), 1):
        line = whole.partition("#")[0]
        command = COMMAND.match(line)
        if command:
            _branch(branches, command[1].lower(), command[2])
            continue
        if True in branches:
            continue
        full = re.sub(r"\$\{(\w+)\}", lambda match: values.get(match[1], match[0]), line).replace('"', "")
        assigned = SET.match(full)
        if assigned:
            values[assigned[1]] = assigned[2].strip()
        yield number, line, full, not branches or all(one is False for one in branches)


def _branch(branches: list[bool | None], command: str, condition: str) -> None:
    if command == "if":
        words = ELSEWHERE.search(condition)
        plain = words is not None and not re.search(r"\b(AND|OR)\b", condition)
        branches.append(not re.match(r"\s*NOT\b", condition) if plain else None)
    elif branches and command == "endif":
        branches.pop()
    elif branches:
        # The branch after one that is taken elsewhere is taken here, or decided by its own condition.
        branches[-1] = None if branches[-1] is None or command == "elseif" else not branches[-1]


def _targets(plain: str, line: str, text: str, name: str, number: int, *, sure: bool) -> Iterator[Architectures]:
    match = TARGETS.search(line)
    if match and not re.search(GUARD % match[1], text) and "CACHE" not in line:
        if match[1] == doctor_setup.LIST:
            yield doctor_setup.listed(match[2].strip(), name, number)
            return
        words = re.findall(r"(\d{2,3}[af]?)(-real|-virtual)?", match[2])
        sass = tuple(one for one, kind in words if kind != "-virtual")
        ptx = tuple(one for one, kind in words if kind != "-real")
        shown, variable = match[0].strip()[:LONGEST], "CMAKE_CUDA_ARCHITECTURES"
        yield Architectures(text=shown, file=name, line=number, sure=sure, sass=sass, ptx=ptx, variable=variable)
    elif doctor_setup.FLAG.search(plain) and doctor_setup.TARGET.search(plain):
        sass, ptx = doctor_setup.targets(plain)
        shown = plain.strip()[:LONGEST]
        yield Architectures(text=shown, file=name, line=number, sure=sure, sass=sass, ptx=ptx)
