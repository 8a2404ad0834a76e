"""What a CMake file says, a command at a time: it is never run. Conditions are followed, and variables that it sets."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wheelmill import doctor_names, doctor_setup
from wheelmill.doctor_facts import Architectures, Standard

if TYPE_CHECKING:
    from collections.abc import Iterator

# cxx_std_17 is none: a feature raises what a compiler does by itself, and never lowers it.
STANDARD = re.compile(r"\b((?:CMAKE_)?(?:CXX|CUDA)_STANDARD)\s+(\d\w)\b")
TARGETS = re.compile(r"\b((?:CMAKE_)?CUDA_ARCHITECTURES|TORCH_CUDA_ARCH_LIST)\s+([\d.][^)$]*)")
TOLD = re.compile(r"\bPROPERT(?:Y|IES)\b[^)]*\bCUDA_ARCHITECTURES\s+\$\{")
# A target with a suffix runs on the GPUs of one capability, or of its family.
ONE = re.compile(r"\d+[af]").fullmatch
GUARD = r"\bif\s*\((?:[^()]*\bNOT\s+(?:DEFINED\s+)?\"?(?:\$\{)?%s\b|\s*\"?\$\{%s\}\"?\s+STREQUAL\s+\"\")"
CUDA = re.compile(r"enable_language\s*\(\s*CUDA|project\s*\([^)]*\bCUDA\b")
TORCH = re.compile(r"find_package\s*\(\s*Torch\b", re.IGNORECASE)
# A command's name, what opens a bracket comment or argument, and else what its text is made of.
NAME = re.compile(r"(\w+)[ \t]*\(")
BRACKET = re.compile(r"#?\[(=*)\[")
PART = re.compile(r'\s+|#[^\n]*|"(?:[^"\\]|\\.)*"|[^()#"\[\s]+|.', re.DOTALL)
BRANCHES = frozenset({"if", "elseif", "else", "endif"})
# Commands whose texts set nothing: what is asked, looked for, replaced, or said to people.
WORDS = re.compile(r"message|string|check_\w*|try_compile|math|list|mark_as_advanced|option", re.IGNORECASE)
SET = re.compile(r"\s*(\w+)\s+([^()$]*)$")
VALUE = 4096  # characters of a variable that are followed
ELSEWHERE = re.compile(r"\b(WIN32|MSVC|APPLE|ANDROID|IOS|MINGW|CYGWIN|\w*(?:HIP|ROCM)\w*)\b")
# The flags that name targets, as they are told.
FLAGS = re.compile(
    r"(?:-?-gencode[= ]\"?|--generate-code=|-?-gpu-architecture=|-arch[= ])?(?:arch=)?compute_\w+"
    r"(?:,\s*code=[\[\w,]+\]?)?|-?-(?:arch|gpu-architecture)[= ]sm_\w+"
)
LONGEST = 120


@dataclass(slots=True)
class Said:
    """What one file says; `cuda` is whether it compiles CUDA code, `torch` whether it looks for torch."""

    cuda: bool = False
    torch: int | None = None
    standards: list[Standard] = field(default_factory=list)
    architectures: list[Architectures] = field(default_factory=list)


def read(text: str, name: str) -> Said:
    said, told = Said(cuda=bool(CUDA.search(text))), False
    last: dict[str, int] = {}
    for number, plain, line, sure in _lines(text):
        if sure and TORCH.match(line):
            said.torch = said.torch or number
        for match in STANDARD.finditer(line):
            if sure and match[1].startswith("CMAKE_"):  # of several, the last one counts
                said.standards = [one for one in said.standards if not (one.sure and one.line == last.get(match[1]))]
                last[match[1]] = number
            _standard(said, match[0], match[2], name, number, sure=sure)
        for match in doctor_names.STANDARD.finditer(plain):
            _standard(said, match[0], match[1], name, number, sure=sure)
        said.architectures += _targets(plain, line, text, name, number, sure=sure)
        told = told or bool(TOLD.search(line))
    if told:
        # Units for one GPU alone, beside targets of which the build is told.
        said.architectures = [one for one in said.architectures if not one.sass or not all(map(ONE, one.sass))]
    chosen = max((one.value for one in said.standards if not one.sure), default=0)
    said.standards = [one for one in said.standards if one.sure or one.value == chosen]
    return said


def _standard(said: Said, text: str, value: str, name: str, number: int, *, sure: bool) -> None:
    year = doctor_setup.standard(value)
    if year is not None:
        said.standards.append(Standard(text=text, file=name, line=number, value=year, sure=sure))


def _lines(text: str) -> Iterator[tuple[int, str, str, bool]]:
    """(line, command, the same without quotes and with the variables that the file itself set, whether no condition
    decides it) of the commands that count on Linux, with CUDA, each in one line.
    """
    # True where a branch is taken only elsewhere, False where always here, None where that is not known.
    branches: list[bool | None] = []
    values: dict[str, str] = {}
    for number, name, inner in _commands(text):
        if name.lower() in BRANCHES:
            _branch(branches, name.lower(), inner)
            continue
        if True in branches or WORDS.fullmatch(name):
            continue
        full = re.sub(r"\$\{(\w+)\}", lambda match: values.get(match[1], match[0]), inner).replace('"', "")
        assigned = SET.match(full) if name.lower() == "set" else None
        if assigned:
            values[assigned[1]] = assigned[2].strip()[:VALUE]
        yield number, f"{name}({inner})", f"{name}({full})", not branches or all(one is False for one in branches)


def _commands(text: str) -> Iterator[tuple[int, str, str]]:
    """(line, name, arguments in one line, without comments) of each command; what is no CMake ends it."""
    at, line, unclosed = 0, 1, set[str]()
    name, begun, depth = "", 1, 0
    parts: list[str] = []
    while at < len(text):
        command = None if depth else NAME.match(text, at)
        part = command[0] if command else _part(text, at, unclosed)
        at, line = at + len(part), line + part.count("\n")
        if command:
            name, begun, depth, parts = command[1], line, 1, []
        elif depth:
            depth += {"(": 1, ")": -1}.get(part, 0)
            parts += [part] if depth and not part.startswith("#") else []
            if not depth:
                yield begun, name, " ".join("".join(parts).split())
        elif part.strip() and not part.startswith("#"):
            return


def _part(text: str, at: int, unclosed: set[str]) -> str:
    """The comment, argument, bracket or space at a place. `unclosed` are brackets whose end was looked for in vain."""
    bracket = BRACKET.match(text, at)
    if bracket and bracket[1] not in unclosed:
        close = f"]{bracket[1]}]"
        end = text.find(close, bracket.end())
        if end >= 0:
            return text[at : end + len(close)]
        unclosed.add(bracket[1])
    part = PART.match(text, at)
    return part[0] if part else text[at:]


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
    if match and not re.search(GUARD % (match[1], match[1]), text) and "CACHE" not in line:
        if match[1] == doctor_setup.LIST:
            yield doctor_setup.listed(match[2].strip(), name, number)
            return
        words = re.findall(r"(\d{2,3}[af]?)(-real|-virtual)?", match[2])
        sass = tuple(one for one, kind in words if kind != "-virtual")
        ptx = tuple(one for one, kind in words if kind != "-real")
        shown, variable = match[0].strip()[:LONGEST], "CMAKE_CUDA_ARCHITECTURES"
        yield Architectures(text=shown, file=name, line=number, sure=sure, sass=sass, ptx=ptx, variable=variable)
    elif doctor_names.FLAG.search(plain) and doctor_setup.TARGET.search(plain):
        sass, ptx = doctor_setup.targets(plain)
        shown = " ".join(one[0] for one in FLAGS.finditer(plain))[:LONGEST] or plain[:LONGEST]
        yield Architectures(text=shown, file=name, line=number, sure=sure, sass=sass, ptx=ptx)
