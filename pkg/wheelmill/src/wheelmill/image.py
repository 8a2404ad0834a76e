"""An ELF image as the dynamic loader sees it: segments, dynamic entries, symbols and their versions.

Every offset and count comes from the file, so each is held against the file's size before it is followed.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelmill.fatbin import Buffer

DYN = 3
LOAD, DYNAMIC, INTERPRETER, STACK, RELRO = 1, 2, 3, 0x6474E551, 0x6474E552
DYNSYM, NOBITS = 11, 8
NEEDED, HASH, STRTAB, SYMTAB, SONAME, RPATH, RUNPATH = 1, 4, 5, 6, 14, 15, 29
GNU_HASH, VERSYM, VERNEED, VERNEEDNUM, STRSZ = 0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFFE, 0x6FFFFFFF, 10
MACHINES = {3: "i686", 20: "ppc", 21: "ppc64le", 22: "s390x", 40: "armv7l", 62: "x86_64", 183: "aarch64"}
MACHINES |= {190: "cuda", 224: "amdgpu", 243: "riscv64", 258: "loongarch64"}
# Far above any real file: libtorch_cuda.so has 60 segments and sections, 300,000 symbols.
ITEMS, DYNAMICS = 100_000, 4096
SYMBOLS = 1_000_000
NAME = 1 << 16
# Names may lie within one another, so their sum has a bound of its own.
NAMES = 1 << 25
BUILD_PATH = re.compile(
    rb"/(?:home|tmp|root|build|builds|workspace|__w|Users|private/var|var/tmp|github/workspace)"
    rb"/[\w.+@-][\w./+@-]{2,250}"
)
# What stands before it in a longer path or an address; looked at afterwards, so that the search is for a letter.
WITHIN_PATH = re.compile(rb"[\w./:-]")
TEXT_SECTIONS = (".rodata", ".data", ".debug_str", ".debug_line_str", ".comment")
SHOWN = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    name: str
    kind: int
    offset: int
    size: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    kind: int
    flags: int
    offset: int
    address: int
    size: int


@dataclass(frozen=True, slots=True)
class Symbol:
    """A dynamic symbol; `version` is its index into the needed versions."""

    name: str
    bind: int
    defined: bool
    version: int


class Image:
    """Raises ValueError or struct.error, here or in any method, where the bytes do not follow the format."""

    def __init__(self, data: Buffer) -> None:
        self.data = data
        self._read = 0
        ident = data[:16]
        if len(ident) < 16 or ident[:4] != b"\x7fELF" or ident[4] not in {1, 2} or ident[5] not in {1, 2}:  # noqa: PLR2004
            raise ValueError("it is no ELF file")
        self.bits = 32 * ident[4]
        self.order = "<" if ident[5] == 1 else ">"
        word = "Q" if self.wide else "I"
        head = struct.unpack_from(f"{self.order}HHI{word * 3}IHHHHHH", data, 16)
        self.kind, number = head[:2]
        self._phoff, self._shoff = head[4:6]
        self._phsize, self._phnum, self._shsize, self._shnum, self._shnames = head[8:]
        self.machine = MACHINES.get(number, f"machine {number}")

    @property
    def wide(self) -> bool:
        return self.bits == 64  # noqa: PLR2004

    def unpack(self, form: str, offset: int) -> tuple[int, ...]:
        self.within(offset, 0)
        return struct.unpack_from(self.order + form, self.data, offset)

    def within(self, offset: int, size: int) -> None:
        """Raises ValueError where those bytes are not in the file."""
        if offset < 0 or size < 0 or offset + size > len(self.data):
            raise ValueError(f"{size} bytes at offset {offset} lie outside the file of {len(self.data)}")

    def text(self, offset: int, limit: int = NAME) -> str:
        self.within(offset, 1)
        end = self.data.find(b"\0", offset, min(offset + limit, len(self.data)))
        if end < 0:
            raise ValueError(f"the text at offset {offset} has no end")
        self._read += end - offset
        if self._read > NAMES:
            raise ValueError(f"its names come to more than {NAMES:,} bytes")
        return self.data[offset:end].decode("utf-8", "backslashreplace")

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        form = "IIQQQQQQ" if self.wide else "IIIIIIII"
        if self._phnum and self._phsize < struct.calcsize("<" + form):
            raise ValueError("its program headers are too small")
        found = []
        for index in range(self._phnum):
            row = self.unpack(form, self._phoff + index * self._phsize)
            kind, flags, offset, address, _, size = row[:6] if self.wide else (row[0], row[6], *row[1:5])
            found.append(Segment(kind=kind, flags=flags, offset=offset, address=address, size=size))
        return tuple(found)

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """The section table. Its sections may not overlap: else reading each would have no bound."""
        found = tuple(self._sections())
        if sum(section.size for section in found if section.kind not in {0, NOBITS}) > 2 * len(self.data):
            raise ValueError("its sections come to more than the file")
        return found

    def _sections(self) -> Iterator[Section]:
        if self.stripped:
            return
        form = "IIQQQQIIQQ" if self.wide else "IIIIIIIIII"
        if self._shsize < struct.calcsize("<" + form):
            raise ValueError("its section headers are too small")
        rows = [self.unpack(form, self._shoff + index * self._shsize) for index in range(self._shnum)]
        if self._shnames >= len(rows):
            raise ValueError("its section names are nowhere")
        names = rows[self._shnames][4]
        for row in rows:
            yield Section(name=self.text(names + row[0]) if row[1] else "", kind=row[1], offset=row[4], size=row[5])

    @property
    def stripped(self) -> bool:
        """Whether the section table is gone."""
        return not self._shoff or not self._shnum

    def _offset(self, address: int) -> int:
        for segment in self.segments:
            if segment.kind == LOAD and segment.address <= address < segment.address + segment.size:
                return address - segment.address + segment.offset
        raise ValueError(f"the address {address:#x} is in no segment of the file")

    @cached_property
    def _dynamic(self) -> tuple[tuple[int, int], ...]:
        segment = next((segment for segment in self.segments if segment.kind == DYNAMIC), None)
        if segment is None:
            return ()
        size = 16 if self.wide else 8
        self.within(segment.offset, segment.size)
        found = []
        for index in range(min(segment.size // size, DYNAMICS)):
            tag, value = self.unpack("QQ" if self.wide else "II", segment.offset + index * size)
            if not tag:
                break
            found.append((tag, value))
        return tuple(found)

    def _value(self, tag: int) -> int | None:
        return next((value for found, value in self._dynamic if found == tag), None)

    def _strings(self, tag: int) -> tuple[str, ...]:
        return tuple(self.text(self._names + value) for found, value in self._dynamic if found == tag)

    @cached_property
    def _names(self) -> int:
        table = self._value(STRTAB)
        if table is None:
            raise ValueError("it has no dynamic string table")
        return self._offset(table)

    @property
    def needed(self) -> tuple[str, ...]:
        return self._strings(NEEDED)

    @property
    def rpath(self) -> tuple[str, ...]:
        """RPATH and RUNPATH, as written."""
        return (*self._strings(RPATH), *self._strings(RUNPATH))

    @property
    def soname(self) -> str | None:
        return next(iter(self._strings(SONAME)), None)

    @property
    def interpreted(self) -> bool:
        return any(segment.kind == INTERPRETER for segment in self.segments)

    @property
    def exec_stack(self) -> bool:
        """Whether loading it makes the stack executable. Without the header Linux takes that for a yes on x86."""
        flags = [segment.flags for segment in self.segments if segment.kind == STACK]
        return bool(flags[0] & 1) if flags else self.machine in {"i686", "x86_64"} and bool(self._dynamic)

    @property
    def relro(self) -> bool:
        return not self._dynamic or any(segment.kind == RELRO for segment in self.segments)

    def symbols(self, defined: bytes | None = None) -> Iterator[Symbol]:
        """The dynamic symbols; of the defined ones, where `defined` is given, those whose names begin so.

        A program without a dynamic segment has none; a library must have one.
        """
        table = self._value(SYMTAB)
        if table is None:
            if self.kind == DYN and not self.interpreted:
                raise ValueError("it has no dynamic symbol table")
            return
        start = self._offset(table)
        count = self._symbol_count(start)
        form = struct.Struct(self.order + ("IBBHQQ" if self.wide else "IIIBBH"))
        if count > SYMBOLS:
            raise ValueError(f"it claims {count:,} symbols")
        self.within(start, count * form.size)
        marks = self._value(VERSYM)
        at = self._offset(marks) if marks is not None else None
        if at is not None:
            self.within(at, 2 * count)
            versions = struct.unpack_from(f"{self.order}{count}H", self.data, at)
        text, names = self.text, self._names
        for index, row in enumerate(form.iter_unpack(self.data[start : start + count * form.size])):
            name, info, where = (row[0], row[1], row[3]) if self.wide else (row[0], row[3], row[5])
            if name and (
                defined is None or not where or self.data[names + name : names + name + len(defined)] == defined
            ):
                yield Symbol(text(names + name), info >> 4, where != 0, versions[index] & 0x7FFF if at else 0)

    def _symbol_count(self, start: int) -> int:
        size = 24 if self.wide else 16
        for section in self.sections:
            if section.kind == DYNSYM and section.offset == start:
                return section.size // size
        table = self._value(HASH)
        if table is not None:
            return self.unpack("II", self._offset(table))[1]
        table = self._value(GNU_HASH)
        if table is None:
            raise ValueError("nothing says how many symbols it has")
        return self._gnu_hash_count(self._offset(table))

    def _gnu_hash_count(self, at: int) -> int:
        buckets, first, bloom, _ = self.unpack("IIII", at)
        chains = at + 16 + bloom * (8 if self.wide else 4)
        self.within(chains, buckets * 4)
        last = max(self.unpack(f"{buckets}I", chains), default=0)
        if last < first:
            return first
        chains += buckets * 4
        while last - first < SYMBOLS and not self.unpack("I", chains + (last - first) * 4)[0] & 1:
            last += 1
        return last + 1

    def version_needs(self) -> tuple[dict[int, str], dict[str, tuple[str, ...]]]:
        """(version name by index, version names by library)."""
        by_index: dict[int, str] = {}
        by_library: dict[str, tuple[str, ...]] = {}
        table, count = self._value(VERNEED), self._value(VERNEEDNUM) or 0
        if table is None:
            return by_index, by_library
        at = self._offset(table)
        for _ in range(min(count, ITEMS)):
            _, auxiliaries, file, auxiliary, following = self.unpack("HHIII", at)
            versions = []
            where = at + auxiliary
            for _ in range(auxiliaries):
                _, _, index, name, step = self.unpack("IHHII", where)
                by_index[index] = self.text(self._names + name)
                versions.append(by_index[index])
                where += step
                if not step or len(by_index) > ITEMS:
                    break
            library = self.text(self._names + file)
            by_library[library] = (*by_library.get(library, ()), *versions)
            at += following
            if not following:
                break
        return by_index, by_library

    def build_paths(self) -> tuple[str, ...]:
        """Paths of a build's own folders in the text that the image carries, the first few."""
        found: dict[str, None] = {}
        for section in self.sections:
            if section.kind == NOBITS or not section.name.startswith(TEXT_SECTIONS):
                continue
            self.within(section.offset, section.size)
            for match in BUILD_PATH.finditer(self.data, section.offset, section.offset + section.size):
                if not WITHIN_PATH.match(self.data, max(match.start() - 1, section.offset), match.start()):
                    found[match[0].decode("ascii", "replace")] = None
                if len(found) >= SHOWN:
                    return tuple(found)
        return tuple(found)
