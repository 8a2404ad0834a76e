"""Facts of one shared library, read from its bytes and never by loading it."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection
from elftools.elf.sections import SymbolTableSection

from wheelmill.errors import GateError

if TYPE_CHECKING:
    from pathlib import Path

FATBIN_SECTIONS = (".nv_fatbin", "__nv_relfatbin")
FATBIN_MAGIC = 0xBA55ED50
FATBIN_HEADER = struct.Struct("<IHHQ")
# kind, reserved, header size, payload size; the SM number is at +28 and the flags at +40.
ENTRY_HEADER = struct.Struct("<HHIQ")
ENTRY_MINIMUM = 64
PTX, SASS = 1, 2
ARCHITECTURE_SPECIFIC, FAMILY = 1 << 20, 1 << 21


@dataclass(frozen=True, kw_only=True, slots=True)
class Library:
    """What a library holds and needs. `sass` and `ptx` are SM numbers with their suffix, such as `90a`.

    `undefined` maps each strong undefined symbol to the version it asks for, or to None; `versions` maps
    each library to the version names that it must offer.
    """

    path: str
    sass: tuple[str, ...]
    ptx: tuple[str, ...]
    needed: tuple[str, ...]
    rpath: tuple[str, ...]
    undefined: dict[str, str | None]
    versions: dict[str, tuple[str, ...]]


def _target(entry: bytes, start: int) -> str:
    sm = struct.unpack_from("<I", entry, start + 28)[0]
    flags = struct.unpack_from("<Q", entry, start + 40)[0]
    suffix = "a" if flags & ARCHITECTURE_SPECIFIC else "f" if flags & FAMILY else ""
    return f"{sm}{suffix}"


def fatbin_targets(data: bytes) -> tuple[set[str], set[str]]:
    """(SASS, PTX) targets of a section that holds fatbins.

    A fatbin is a 16-byte header and entries, each a header and a payload; the headers can be read whatever
    the payload's compression (layout found by experiment with nvcc 11.8 to 13.0, see docs/architecture.md).
    Raises ValueError where the bytes do not follow it.
    """
    sass: set[str] = set()
    ptx: set[str] = set()
    at = 0
    while at < len(data):
        if data[at : at + 4] == b"\0\0\0\0":  # padding between fatbins
            at += 4
            continue
        magic, _, header, size = FATBIN_HEADER.unpack_from(data, at)
        if magic != FATBIN_MAGIC or header < FATBIN_HEADER.size or at + header + size > len(data):
            raise ValueError(f"no fatbin at offset {at}")
        entry, end = at + header, at + header + size
        while entry < end:
            kind, _, entry_header, payload = ENTRY_HEADER.unpack_from(data, entry)
            if kind not in {PTX, SASS} or entry_header < ENTRY_MINIMUM or entry + entry_header + payload > end:
                raise ValueError(f"no fatbin entry at offset {entry}")
            (sass if kind == SASS else ptx).add(_target(data, entry))
            entry += entry_header + payload
        at = end
    return sass, ptx


def exported(path: Path) -> frozenset[str]:
    """The symbols that a library offers to others."""
    with path.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".dynsym")
        return frozenset(s.name for s in table.iter_symbols() if s["st_shndx"] != "SHN_UNDEF" and s.name)


def sm_order(target: str) -> tuple[int, str]:
    return int(target.rstrip("af")), target


def _versions(elf: ELFFile) -> tuple[dict[int, str], dict[str, tuple[str, ...]]]:
    by_index: dict[int, str] = {}
    by_library: dict[str, tuple[str, ...]] = {}
    for section in elf.iter_sections():
        if isinstance(section, GNUVerNeedSection):
            for need, auxiliaries in section.iter_versions():
                names = []
                for auxiliary in auxiliaries:
                    by_index[auxiliary["vna_other"]] = auxiliary.name
                    names.append(auxiliary.name)
                by_library[need.name] = tuple(names)
    return by_index, by_library


def _undefined(elf: ELFFile, names: dict[int, str]) -> dict[str, str | None]:
    table = elf.get_section_by_name(".dynsym")
    marks = elf.get_section_by_name(".gnu.version")
    if not isinstance(table, SymbolTableSection):
        return {}
    found = {}
    for index, symbol in enumerate(table.iter_symbols()):
        if symbol["st_shndx"] == "SHN_UNDEF" and symbol.name and symbol["st_info"]["bind"] != "STB_WEAK":
            mark = marks.get_symbol(index)["ndx"] if marks is not None else None
            found[symbol.name] = names.get(mark) if isinstance(mark, int) else None
    return found


def _library(elf: ELFFile, name: str) -> Library:
    """Raises ValueError where the file's tables are not there to be read."""
    if elf.get_section_by_name(".dynsym") is None or elf.get_section_by_name(".dynamic") is None:
        raise ValueError("it has no dynamic symbol table")
    sass: set[str] = set()
    ptx: set[str] = set()
    tags = []
    for section in elf.iter_sections():
        if section.name in FATBIN_SECTIONS:
            more_sass, more_ptx = fatbin_targets(section.data())
            sass |= more_sass
            ptx |= more_ptx
        elif isinstance(section, DynamicSection):
            tags += [(tag.entry.d_tag, tag) for tag in section.iter_tags()]
    names, versions = _versions(elf)
    return Library(
        path=name,
        sass=tuple(sorted(sass, key=sm_order)),
        ptx=tuple(sorted(ptx, key=sm_order)),
        needed=tuple(tag.needed for kind, tag in tags if kind == "DT_NEEDED"),
        rpath=tuple(
            tag.runpath if kind == "DT_RUNPATH" else tag.rpath
            for kind, tag in tags
            if kind in {"DT_RUNPATH", "DT_RPATH"}
        ),
        undefined=_undefined(elf, names),
        versions=versions,
    )


def read(path: Path, name: str) -> Library:
    """The facts of the library at `path`, which the wheel calls `name`.

    Raises GateError when the file is not an ELF file or its device code cannot be read: what cannot be
    determined is never reported as fine.
    """
    try:
        with path.open("rb") as file:
            return _library(ELFFile(file), name)
    except (ELFError, ValueError, struct.error) as error:
        raise GateError(
            f"{name}: its contents cannot be read ({error}), so nothing can be said of what it holds",
            remedy="rebuild the wheel; if the file is sound, report it with the toolkit's version",
        ) from error
