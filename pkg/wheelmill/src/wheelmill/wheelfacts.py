"""The facts of a wheel: what its name, its archive, its metadata and its libraries say. Nothing is judged here."""

from __future__ import annotations

import base64
import contextlib
import csv
import io
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import compat32
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

from wheelmill import archive, cuobjdump, elf, torch_use
from wheelmill.errors import GateError
from wheelmill.store import file_sha256

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from email.message import Message
    from pathlib import Path

    from packaging.tags import Tag
    from packaging.version import Version

    from wheelmill.archive import Contents, Problem
    from wheelmill.cuobjdump import Reading
    from wheelmill.elf import Library
    from wheelmill.torch_use import Use

NAMED_LIBRARY = re.compile(r"\.(so(\.[\w.]+)?|dylib|pyd|dll)$")

# Libraries, and undefined symbols and fatbin entries in all: ten times what the largest public wheels have.
LIBRARIES, ITEMS = 2000, 1_000_000
# A needed library is held against every policy, so it weighs more.
NEEDED = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class Name:
    """What a filename says. `wrong` is why it is no wheel's; then the rest is empty."""

    project: str = ""
    version: Version | None = None
    tags: frozenset[Tag] = frozenset()
    wrong: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A line of RECORD."""

    algorithm: str
    digest: bytes
    size: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class WheelFacts:
    """Everything that is read of one wheel. `readings` is cuobjdump's, by library; empty where it is not at hand.

    `stated` is every Requires-Dist as written, `requirements` those that can be understood.
    """

    file: str
    sha256: str
    size: int
    name: Name
    contents: Contents
    infos: tuple[str, ...]
    metadata: Message | None
    wheel: Message | None
    record: Mapping[str, Row] | None
    libraries: tuple[Library, ...]
    uses: Mapping[str, Use]
    readings: Mapping[str, Reading] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    stated: tuple[str, ...] = ()
    requirements: tuple[Requirement, ...] = ()

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platform tags of the filename, each once."""
        return tuple(sorted({tag.platform for tag in self.name.tags}))

    @property
    def claimed(self) -> str | None:
        """The platform part of the filename, as written; None where it is no wheel's."""
        return None if self.name.wrong else self.file.removesuffix(".whl").rpartition("-")[2]

    @property
    def pairs(self) -> frozenset[tuple[str, str]]:
        """The (interpreter, ABI) pairs of the filename's tags."""
        return frozenset((tag.interpreter, tag.abi) for tag in self.name.tags)

    @property
    def shared(self) -> tuple[Library, ...]:
        """The libraries without the executables."""
        return tuple(library for library in self.libraries if not library.program)

    @property
    def requires_torch(self) -> tuple[str, ...]:
        """What it requires of torch, as written."""
        return tuple(
            text for text in self.stated if canonicalize_name(re.split(r"[^\w.-]", text.strip())[0]) == "torch"
        )


def _requirements(stated: tuple[str, ...]) -> Iterator[Requirement]:
    for text in stated:
        with contextlib.suppress(ValueError):  # the rule metadata-invalid tells of it
            yield Requirement(text)


def _name(filename: str) -> Name:
    try:
        project, version, _, tags = parse_wheel_filename(filename)
    except ValueError as error:
        return Name(wrong=str(error))
    return Name(project=project, version=version, tags=tags)


def _record(text: bytes) -> tuple[dict[str, Row], list[Problem]]:
    rows: dict[str, Row] = {}
    problems: list[Problem] = []
    try:
        for line in csv.reader(io.StringIO(text.decode("utf-8"))):
            if not line:
                continue
            path, hashed, size = (*line, "", "")[:3]
            algorithm, _, encoded = hashed.partition("=")
            digest = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
            rows[path] = Row(algorithm=algorithm, digest=digest, size=int(size) if size else None)
    except (ValueError, csv.Error) as error:
        problems.append(archive.Problem("dist-info-incomplete", None, f"RECORD cannot be read: {error}"))
    return rows, problems


def _headers(texts: Mapping[str, bytes], name: str) -> Message | None:
    return BytesParser(policy=compat32).parsebytes(texts[name]) if name in texts else None


def _libraries(contents: Contents) -> tuple[list[Library], list[Problem]]:
    libraries: list[Library] = []
    problems: list[Problem] = []
    kept = 0
    for member in contents.members:
        name = archive.shown(member.name)
        if member.elf is None:
            if NAMED_LIBRARY.search(name) and not member.script:
                ours = ".so" in name and "-darwin.so" not in name
                rule = "library-unreadable" if ours else "platform-unsupported"
                what = "it is no ELF file" if ours else f"{name} is a library of another system"
                problems.append(archive.Problem(rule, name, what))
            continue
        if len(libraries) >= LIBRARIES or kept > ITEMS:
            problems.append(archive.Problem("library-unreadable", name, "the wheel holds more than can be read"))
            break
        try:
            found = elf.read(member.elf, name)
        except GateError as error:
            problems.append(archive.Problem("library-unreadable", name, str(error.__cause__)))
            continue
        kept += len(found.undefined) + len(found.weak) + found.device_entries + NEEDED * len(found.needed)
        libraries.append(found)
    return libraries, problems


def _readings(contents: Contents, libraries: list[Library], tool: Path | None) -> dict[str, Reading]:
    if tool is None:
        return {}
    files = {archive.shown(member.name): member.elf for member in contents.members if member.elf is not None}
    holding = [library.path for library in libraries if library.sass or library.ptx]
    return {path: cuobjdump.read(tool, files[path]) for path in holding}


def read(path: Path, work: Path, *, tool: Path | None = None) -> WheelFacts:
    """The facts of the wheel at `path`; `work` is an empty folder for its libraries, `tool` a cuobjdump.

    Raises OSError when the file itself cannot be read. Whatever is wrong inside it is a problem among the facts.
    """
    with ThreadPoolExecutor(max_workers=1) as beside:
        sha256 = beside.submit(file_sha256, path)
        contents = archive.read(path, work)
    infos = tuple(sorted({name.partition("/")[0] for name in contents.names if archive.in_dist_info(name)}))
    info = infos[0] if len(infos) == 1 else ""
    record, wrong = _record(contents.texts[f"{info}/RECORD"]) if f"{info}/RECORD" in contents.texts else (None, [])
    libraries, unreadable = _libraries(contents)
    metadata = _headers(contents.texts, f"{info}/METADATA")
    stated = tuple(map(str, metadata.get_all("Requires-Dist", []))) if metadata else ()
    return WheelFacts(
        file=path.name,
        sha256=sha256.result(),
        size=path.stat().st_size,
        name=_name(path.name),
        contents=contents,
        infos=infos,
        metadata=metadata,
        wheel=_headers(contents.texts, f"{info}/WHEEL"),
        record=record,
        libraries=tuple(libraries),
        uses={library.path: torch_use.classify(library) for library in libraries},
        readings=_readings(contents, libraries, tool),
        problems=(*contents.problems, *wrong, *unreadable),
        stated=stated,
        requirements=tuple(_requirements(stated)),
    )
