"""A wheel's archive, read as what it is: a stranger's zip file. Nothing is written but to numbered files in `work`.

A fault of a member is a problem in the result, and the others are still read; a fault of the whole archive leaves
the result empty but for it. Nothing is read that the limits do not allow, whatever the archive claims.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import posixpath
import re
import stat
import struct
import zipfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from concurrent.futures import Executor, Future
    from pathlib import Path

ENTRIES = 100_000
DIRECTORY = 32 << 20
UNPACKED = 4 << 30
# Deflate reaches 1032:1; public wheels with device code stay below 5:1 as a whole.
RATIO, RATIO_FREE = 20, 64 << 20
# RECORD and SBOMs; the other files of a dist-info folder are small.
TEXT, SMALL_TEXT = 16 << 20, 1 << 20
NAME = 4096
END = struct.Struct("<4s4H2LH")
END64, END64_LOCATOR = struct.Struct("<4sQ2H2L4Q"), struct.Struct("<4sLQL")
METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
ENCRYPTED = 1
SHOWN = 200
CONTROL = re.compile(r"[\0-\x1f\x7f]")
LINKER_SCRIPT = re.compile(rb"\s*(/\*|INPUT|GROUP|OUTPUT_FORMAT)")
BLOCK = 1 << 20
BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    ValueError,
    NotImplementedError,
    RuntimeError,
    struct.error,
)


@dataclass(frozen=True, slots=True)
class Problem:
    """What a rule says of the archive or of one member."""

    rule: str
    member: str | None
    what: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """A file that could be read. `elf` is where its bytes lie, for an ELF file only; `script` marks a linker
    script, which some wheels hold under a library's name.
    """

    name: str
    size: int
    digests: Mapping[str, bytes]
    elf: Path | None
    script: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Contents:
    """What an archive holds. `texts` are the files of its dist-info folders; `names` every member's, read or not."""

    names: tuple[str, ...] = ()
    members: tuple[Member, ...] = ()
    texts: Mapping[str, bytes] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


def _directory_size(file: BinaryIO, size: int) -> int:
    """The size of the central directory as zipfile will read it. Raises BadZipFile when there is none."""
    tail = min(size, END.size + (1 << 16))
    file.seek(size - tail)
    data = file.read(tail)
    at = len(data) - END.size
    if at < 0 or data[at : at + 4] != b"PK\5\6" or data[-2:] != b"\0\0":
        at = data.rfind(b"PK\5\6")
    if at < 0 or at + END.size > len(data):
        raise zipfile.BadZipFile("it has no central directory: the file is cut, or no zip file")
    directory = int(END.unpack_from(data, at)[5])
    locator = at - END64_LOCATOR.size
    if locator >= 0 and data[locator : locator + 4] == b"PK\6\7":
        start = locator - END64.size
        if start >= 0 and data[start : start + 4] == b"PK\6\6":
            directory = max(directory, int(END64.unpack_from(data, start)[8]))
    return directory


def listing(file: BinaryIO, size: int) -> tuple[zipfile.ZipFile, list[zipfile.ZipInfo]]:
    """Raises BadZipFile for an archive that is none, or that no honest wheel is like."""
    directory = _directory_size(file, size)
    if directory > DIRECTORY:
        raise zipfile.BadZipFile(f"its directory of members takes {directory:,} bytes, and {DIRECTORY:,} are allowed")
    file.seek(0)
    archive = zipfile.ZipFile(file)
    infos = archive.infolist()
    if len(infos) > ENTRIES:
        raise zipfile.BadZipFile(f"it has {len(infos):,} members, and {ENTRIES:,} are allowed")
    total = sum(info.file_size for info in infos)
    limit = min(UNPACKED, RATIO * size + RATIO_FREE)
    if total > limit:
        raise zipfile.BadZipFile(f"it unpacks to {total:,} bytes, and {limit:,} are allowed for a file of {size:,}")
    end = 0
    for info in sorted(infos, key=lambda info: info.header_offset):
        if info.header_offset < end:
            raise zipfile.BadZipFile(f"its members overlap at {info.filename!r}")
        end = info.header_offset + 30 + info.compress_size
    return archive, infos


def _unsafe(info: zipfile.ZipInfo) -> str | None:
    """Why an installer must not write that member, or None."""
    name, mode = info.orig_filename, info.external_attr >> 16
    if len(name) > NAME or CONTROL.search(name):
        return "its name has control characters, or no end"
    if name.startswith("/") or "\\" in name or name[1:2] == ":" or ".." in name.split("/"):
        return "its name leads out of the folder that it is unpacked in"
    if info.create_system == 3 and stat.S_IFMT(mode) not in {0, stat.S_IFREG, stat.S_IFDIR}:  # noqa: PLR2004
        return "it is a symbolic link or a device" if stat.S_IFMT(mode) != stat.S_IFIFO else "it is a pipe"
    return None


def _names(infos: list[zipfile.ZipInfo]) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for info in infos:
        reason = _unsafe(info)
        if reason:
            yield Problem("member-unsafe", shown(info.orig_filename), reason)
        key = posixpath.normpath(info.filename) if not info.is_dir() else ""
        if key and key in seen:
            yield Problem("member-duplicate", shown(info.filename), shown(seen[key]))
        seen[key] = info.filename


def shown(name: str) -> str:
    """A name from an archive, fit for a terminal and of a bounded length."""
    if len(name) <= SHOWN and name.isprintable():
        return name
    plain = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in name[:SHOWN])
    return plain if len(name) <= SHOWN else plain + "…"


def _blocks(source: BinaryIO, info: zipfile.ZipInfo) -> Iterator[bytes]:
    """A member's bytes. Raises ValueError where it is not of the size that the archive says."""
    read = 0
    while block := source.read(BLOCK):
        read += len(block)
        if read > info.file_size:
            raise ValueError(f"it holds more than the {info.file_size:,} bytes that the archive says")
        yield block
    if read != info.file_size:
        raise ValueError(f"it holds {read:,} bytes, and the archive says {info.file_size:,}")


def _copy(
    blocks: Iterator[bytes], info: zipfile.ZipInfo, algorithms: tuple[str, ...], target: Path, hasher: Executor
) -> Member:
    """Read a member to its end; an ELF file's bytes go to `target`. One block is kept while the next is read."""
    digests = {name: hashlib.new(name, usedforsecurity=False) for name in algorithms}
    first = next(blocks, b"")
    elf = first.startswith(b"\x7fELF")
    with contextlib.ExitStack() as stack:
        out = stack.enter_context(target.open("wb")) if elf else None

        def keep(block: bytes) -> None:
            for digest in digests.values():
                digest.update(block)
            if out is not None:
                out.write(block)

        pending: Future[None] | None = None
        try:
            for block in itertools.chain([first], blocks):
                if pending is not None:
                    pending.result()
                # A small one is kept sooner than it is handed over.
                pending = hasher.submit(keep, block) if len(block) == BLOCK else None
                if pending is None:
                    keep(block)
        finally:
            if pending is not None:
                pending.result()
    hashes = {name: digest.digest() for name, digest in digests.items()}
    script = LINKER_SCRIPT.match(first) is not None
    return Member(name=info.filename, size=info.file_size, digests=hashes, elf=target if elf else None, script=script)


def _member(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, algorithms: tuple[str, ...], target: Path, hasher: Executor
) -> Member | Problem:
    name = shown(info.filename)
    try:
        if info.flag_bits & ENCRYPTED:
            return Problem("member-unreadable", name, "it is encrypted")
        if info.compress_type not in METHODS:
            return Problem("member-unreadable", name, f"compression method {info.compress_type} is not a wheel's")
        with archive.open(info) as source:
            return _copy(_blocks(source, info), info, algorithms, target, hasher)  # type: ignore[arg-type]
    except BROKEN as error:
        if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise  # the disk's fault, and not the wheel's
        return Problem("member-unreadable", name, str(error) or type(error).__name__)


def _text(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes | Problem:
    try:
        limit = TEXT if info.filename.endswith("/RECORD") or "/sboms/" in info.filename else SMALL_TEXT
        if info.file_size > limit:
            return Problem("member-unreadable", shown(info.filename), f"it is larger than {limit:,} bytes")
        with archive.open(info) as source:
            return source.read(TEXT)
    except BROKEN as error:
        return Problem("member-unreadable", shown(info.filename), str(error) or type(error).__name__)


def in_dist_info(name: str) -> bool:
    """Whether a member lies in a top-level `.dist-info` folder."""
    return name.partition("/")[0].endswith(".dist-info") and "/" in name


def read(path: Path, work: Path) -> Contents:
    """Every member of the archive, hashed; ELF files laid out in `work` under numbers. Raises OSError alone."""
    with path.open("rb") as file:
        try:
            archive, infos = listing(file, path.stat().st_size)
        except BROKEN as error:
            return Contents(problems=(Problem("archive-unreadable", None, str(error) or type(error).__name__),))
        problems = list(_names(infos))
        files = [info for info in infos if not info.is_dir()]
        texts: dict[str, bytes] = {}
        for info in files:
            if in_dist_info(info.filename) and "/licenses/" not in info.filename:
                text = _text(archive, info)
                if isinstance(text, Problem):
                    problems.append(text)
                else:
                    texts[info.filename] = text
        algorithms = algorithms_of(texts)
        # zlib and hashlib release the interpreter's lock.
        with ThreadPoolExecutor(max_workers=1) as hasher, ThreadPoolExecutor(max_workers=2) as readers:
            jobs = [
                readers.submit(_member, archive, info, algorithms, work / f"{index}.elf", hasher)
                for index, info in enumerate(files)
            ]
            done = [job.result() for job in jobs]
    return Contents(
        names=tuple(info.filename for info in files),
        members=tuple(one for one in done if isinstance(one, Member)),
        texts=texts,
        problems=(*problems, *(one for one in done if isinstance(one, Problem))),
    )


def algorithms_of(texts: Mapping[str, bytes]) -> tuple[str, ...]:
    """The hash algorithms that a RECORD among `texts` uses, sha256 always."""
    found = {"sha256"}
    for name, text in texts.items():
        if name.endswith("/RECORD"):
            found |= {word for word in ("sha384", "sha512", "md5", "sha1", "sha224") if f",{word}=".encode() in text}
    return tuple(sorted(found))
