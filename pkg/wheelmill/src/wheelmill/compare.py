"""Two wheel files held against each other, byte for byte: the first member that differs, and why."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from wheelmill.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DATE = re.compile(rb"(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d{4}|\d{4}-\d\d-\d\d")
TIME = re.compile(rb"\d\d:\d\d:\d\d(\.\d+)?")
FOLDER = re.compile(rb"/[\w.+~-]+(/[\w.+~-]+)+")
WORDS = re.compile(rb"[\x20-\x7e]{4,}")
# What a member's header says beside its content, and what a difference there comes from.
HEADER = (
    ("date_time", "the timestamp", "set SOURCE_DATE_EPOCH, and let the back end use it"),
    ("external_attr", "the permissions", "set file modes in the build, whatever the umask"),
    ("compress_type", "the compression method", "write the archive with one tool"),
    ("compress_size", "the compression", "write the archive with one zlib and one level"),
    ("create_system", "the operating system that is named", "write the archive with one tool"),
    ("extra", "the extra field", "write the archive with one tool"),
    ("comment", "the comment", "write the archive with one tool"),
    ("flag_bits", "the flags", "write the archive with one tool"),
    ("header_offset", "the place in the archive", "write the archive with one tool"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """The first member in which two wheels differ, what the cause is, and what to do. `member` is None for the file."""

    member: str | None
    cause: str
    remedy: str


def first_difference(one: Path, other: Path) -> Difference | None:
    """None where the files are the same bytes. Raises InputError when either is no archive."""
    if one.read_bytes() == other.read_bytes():
        return None
    try:
        with zipfile.ZipFile(one) as a, zipfile.ZipFile(other) as b:
            return next(_differences(a, b))
    except (OSError, ValueError, zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError) as error:
        raise InputError(f"{one.name} or {other.name} cannot be read: {error}", remedy="name sound wheels") from error


def _differences(a: zipfile.ZipFile, b: zipfile.ZipFile) -> Iterator[Difference]:
    """Contents first, for the rest follows from them; RECORD last among them, for it names the others."""
    names = a.namelist()
    for name in sorted(set(names) ^ set(b.namelist())):
        yield Difference(
            member=name, cause="only one of the two has this member", remedy="look for what the build leaves behind"
        )
    for name in sorted(names, key=lambda name: name.endswith(".dist-info/RECORD")):
        first, second = a.read(name), b.read(name)
        if first != second:
            cause, remedy = _content(name, first, second)
            yield Difference(member=name, cause=cause, remedy=remedy)
    if names != b.namelist():
        name = next(x for x, y in zip(names, b.namelist(), strict=True) if x != y)
        yield Difference(
            member=name, cause="the members are in another order", remedy="sort the files before they are packed"
        )
    for name in names:
        for field, what, remedy in HEADER:
            values = [getattr(archive.getinfo(name), field) for archive in (a, b)]
            if values[0] != values[1]:
                cause = f"{what} differs: {values[0]!r} and {values[1]!r}"
                yield Difference(member=name, cause=cause, remedy=remedy)
    yield Difference(
        member=None,
        cause="the members are the same, and the bytes between them differ",
        remedy="write the archive with one tool",
    )


def _content(name: str, a: bytes, b: bytes) -> tuple[str, str]:
    if name.endswith(".dist-info/RECORD"):
        return "RECORD differs, though what it lists is the same", "write RECORD with one tool, in one order"
    stripped = [_without_build_id(data) for data in (a, b)]
    if stripped[0] == stripped[1]:
        return (
            "the build id (.note.gnu.build-id) alone differs: the linker's input did, in what was stripped later",
            "map the build folder away (-ffile-prefix-map), or link with -Wl,--build-id=none",
        )
    words = _told_apart(*stripped)
    for pattern, what, remedy in (
        (FOLDER, "an embedded path", "map it away: -ffile-prefix-map=DIR=. for compilers; relative paths elsewhere"),
        (DATE, "an embedded date (__DATE__ writes one)", "leave it out, or take it from SOURCE_DATE_EPOCH"),
        (TIME, "an embedded time (__TIME__ writes one)", "leave it out, or take it from SOURCE_DATE_EPOCH"),
    ):
        pair = [found[0] if (found := pattern.search(text)) else b"" for text in words]
        if pair[0] != pair[1]:
            shown = " and ".join(ascii(text.decode(errors="replace")[:80]) for text in pair)
            return f"{what}: {shown}", remedy
    shown = " and ".join(ascii(text.decode(errors="replace")[:80]) for text in words)
    return (
        f"the content differs from byte {_offset(*stripped)} on: {shown}",
        "look for what the build takes from elsewhere than its inputs: random names, hash order, threads",
    )


def _offset(a: bytes, b: bytes) -> int:
    """The first place where two texts differ."""
    if a[: len(b)] == b or b[: len(a)] == a:
        return min(len(a), len(b))
    return next(at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y)


def _told_apart(a: bytes, b: bytes) -> tuple[bytes, bytes]:
    """The first readable words of each that the other has not; without any, the bytes at the first difference."""
    pair = [WORDS.findall(data) for data in (a, b)]
    only = [next((word for word in words if word not in set(others)), b"") for words, others in (pair, pair[::-1])]
    if any(only):
        return only[0], only[1]
    at = _offset(a, b)
    return a[at : at + 8], b[at : at + 8]


def _without_build_id(data: bytes) -> bytes:
    """An ELF file with its build id's bytes zeroed; anything else as it is."""
    if not data.startswith(b"\x7fELF"):
        return data
    try:
        note = ELFFile(io.BytesIO(data)).get_section_by_name(".note.gnu.build-id")
    except ELFError:
        return data
    if note is None:
        return data
    start, size = note["sh_offset"], note["sh_size"]
    return data[:start] + bytes(size) + data[start + size :]
