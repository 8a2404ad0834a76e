"""Rows of wheels for the pages' scripts, and the statuses that a page shows of a wheel."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from wheelmill.claims import Claim
from wheelmill.facts import PYTHON

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wheelmill.records import Cell, Library, Record

Status = Literal["pass", "fail", "incomplete", "unknown"]
ERROR_LENGTH = 160
LEGACY = {"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}
PLATFORM = re.compile(r"(manylinux|musllinux)_(\d+)_(\d+)_(\w+)")
OLDER = re.compile(r"(manylinux1|manylinux2010|manylinux2014)_(\w+)")


def script(call: str, value: object) -> bytes:
    """A script that hands a JSON value to `wheelmill.<call>`; it holds no character that ends a script or a line."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True)
    return f"wheelmill.{call}({text.replace('<', chr(92) + 'u003c')});\n".encode()


def row(record: Record, pythons: Sequence[str]) -> dict[str, Any]:
    """What the choice of a wheel, and the comparison of two releases, need of it. `pythons` are those that exist."""
    tags = _tags(record.file)
    return {
        "file": record.file,
        "release": record.release,
        "size": record.size,
        "environments": list(record.environments),
        "pythons": [python for python in pythons if admits(record, python)],
        "platforms": _platforms(tags, record),
        "code": _code(record) if record.audit else None,
        "torch": _torch(record),
        "requires": list(record.requires),
        "passed": _tried(record, "pass"),
        "failed": _tried(record, "fail"),
        "errors": _errors(record),
        "times": [[t.card, t.operator, t.sample, _short(t.milliseconds)] for t in times(record)],
        "yanked": record.yanked,
    }


def admits(record: Record, python: str) -> bool:
    """Whether tags and Requires-Python admit that Python; not where one of the three cannot be understood."""
    tags = frozenset((tag.interpreter, tag.abi) for tag in _tags(record.file))
    return PYTHON.fullmatch(python) is not None and _admits(tags, record.requires_python or "", python)


@lru_cache(maxsize=4096)
def _admits(tags: frozenset[tuple[str, str]], requires: str, python: str) -> bool:
    try:
        needs = SpecifierSet(requires)
    except InvalidSpecifier:
        return False
    claim = Claim(
        project="",
        version="",
        torch=None,
        minor=None,
        python=needs,
        cuda=None,
        tags=frozenset(Tag(interpreter, abi, "any") for interpreter, abi in tags),
        others=(),
        modules=(),
    )
    return claim.takes_python(python)


def times(record: Record) -> list[Any]:
    """The times of a record in an order of their own."""
    found = record.gates.times if record.gates else ()
    return sorted(found, key=lambda t: (t.card, t.operator, t.sample))


def audit_status(record: Record) -> Status:
    return record.audit.verdict if record.audit else "unknown"


def gates_status(record: Record) -> Status:
    """The worst verdict of the dynamic gates."""
    found = set(record.gates.verdicts.values()) if record.gates else set()
    for verdict in ("fail", "incomplete", "pass"):
        if verdict in found:
            return verdict
    return "unknown"


def cell_of(record: Record, environment: str, python: str) -> Cell | None:
    for cell in record.cover or ():
        if f"{cell.cuda}-torch{cell.torch}" == environment and cell.python == python:
            return cell
    return None


def cell_status(cell: Cell | None) -> Status:
    return "unknown" if cell is None or cell.result == "not-available" else cell.result


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key in which numbers count as numbers, of any text: a record's words are not trusted to be versions."""
    parts = re.findall(r"([0-9]+)|([^0-9]+)", text)
    return tuple((0, int(number), "") if number else (1, 0, word) for number, word in parts)


def environment_key(name: str) -> tuple[bool, tuple[Any, ...], tuple[Any, ...]]:
    """Sort key of `cu130-torch2.11`: newest CUDA first and `cpu` last; turned around, so sort in reverse."""
    cuda, _, torch = name.partition("-torch")
    return (cuda != "cpu", natural(cuda), natural(torch))


def cuda_words(tag: str) -> str:
    """`CUDA 13.0` for `cu130`; any other text as it is."""
    if tag == "cpu":
        return "CPU"
    return f"CUDA {tag[2:-1]}.{tag[-1]}" if re.fullmatch(r"cu[0-9]{2,}", tag) else tag


def environment_words(name: str) -> str:
    """`torch 2.11, CUDA 13.0` for `cu130-torch2.11`."""
    cuda, _, torch = name.partition("-torch")
    return f"torch {torch}, {cuda_words(cuda)}"


def capability(target: str) -> str:
    """`9.0a` for the target `90a`."""
    digits, suffix = target.rstrip("af"), target[len(target.rstrip("af")) :]
    return f"{digits[:-1]}.{digits[-1]}{suffix}" if len(digits) > 1 else target


def with_device_code(record: Record) -> list[Library]:
    libraries = record.audit.libraries if record.audit else {}
    return [library for library in libraries.values() if library.sass or library.ptx]


def targets(record: Record) -> tuple[list[str], list[str]]:
    """(SASS, PTX) of all libraries together, as capabilities."""
    found = with_device_code(record)
    sass = sorted({one for library in found for one in library.sass}, key=natural)
    ptx = sorted({one for library in found for one in library.ptx}, key=natural)
    return [*map(capability, sass)], [*map(capability, ptx)]


def _short(value: float) -> float:
    return float(f"{value:.4g}")


@lru_cache(maxsize=1024)
def _tags(file: str) -> frozenset[Tag]:
    try:
        return parse_wheel_filename(file)[3]
    except InvalidWheelFilename:
        return frozenset()


def _platforms(tags: Iterable[Tag], record: Record) -> list[list[str | None]]:
    """[kind, C library's version, machine] of each platform tag."""
    found: set[tuple[str, str | None, str]] = set()
    needed = _newest_glibc(record)
    for platform in {tag.platform for tag in tags}:
        if match := PLATFORM.fullmatch(platform):
            version = f"{match[2]}.{match[3]}"
            glibc = match[1] == "manylinux"
            found.add(("glibc", _newer(version, needed), match[4]) if glibc else ("musl", version, match[4]))
        elif match := OLDER.fullmatch(platform):
            found.add(("glibc", _newer(LEGACY[match[1]], needed), match[2]))
        elif platform.startswith("linux_"):
            found.add(("glibc", needed, platform.removeprefix("linux_")))
        else:
            found.add(("any", None, "any") if platform == "any" else ("other", None, platform))
    return [list(one) for one in sorted(found, key=str)]


def _newer(tag: str, needed: str | None) -> str:
    """The glibc that a wheel asks for by its tag or, where that says too little, by its libraries."""
    return tag if needed is None else max(tag, needed, key=natural)


def _newest_glibc(record: Record) -> str | None:
    stated = [library.glibc for library in (record.audit.libraries.values() if record.audit else ()) if library.glibc]
    known = [one for one in stated if re.fullmatch(r"\d+(\.\d+)+", one)]
    return max(known, key=natural, default=None)


def _code(record: Record) -> list[list[Any]]:
    """[SASS, PTX, PTX ISA] of each library with device code, each different one once."""
    unique = {(library.sass, library.ptx, library.ptx_isa) for library in with_device_code(record)}
    return [[list(sass), list(ptx), isa] for sass, ptx, isa in sorted(unique, key=str)]


def _torch(record: Record) -> str:
    """The range of torch that METADATA requires; empty where it requires none."""
    found = []
    for text in record.requires:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        if canonicalize_name(requirement.name) == "torch" and "extra" not in str(requirement.marker or ""):
            found += sorted(str(one) for one in requirement.specifier)
    return ",".join(found)


def _tried(record: Record, result: str) -> list[list[str]]:
    """[environment, Python] of the cells with that result."""
    cells = [cell for cell in record.cover or () if cell.result == result]
    return sorted([f"{cell.cuda}-torch{cell.torch}", cell.python] for cell in cells)


def _errors(record: Record) -> list[list[str]]:
    """[environment, what went wrong there], the first of each environment."""
    found: dict[str, str] = {}
    for cell in record.cover or ():
        if cell.result == "fail" and cell.error:
            text = " ".join(cell.error.split())
            cut = text if len(text) <= ERROR_LENGTH else text[: ERROR_LENGTH - 1] + "…"
            found.setdefault(f"{cell.cuda}-torch{cell.torch}", cut)
    return sorted([name, text] for name, text in found.items())
