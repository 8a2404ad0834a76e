"""Device code of a library: SASS and PTX targets, read from fatbin headers and never from payloads."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator
    from mmap import mmap

Buffer: TypeAlias = "bytes | mmap"

SECTIONS = (".nv_fatbin", "__nv_relfatbin")
MAGIC = 0xBA55ED50
HEADER = struct.Struct("<IHHQ")
# kind, version, header size, payload size; then at +24 the PTX ISA (minor, major), at +28 the SM, at +40 the flags.
ENTRY = struct.Struct("<HHIQ8xHHI8xQ")
ENTRY_MINIMUM = 64
PTX, SASS = 1, 2
# What link-time optimization leaves (NVVM intermediate code): no target of its own.
OTHER = frozenset({8, 16, 32, 64})
SM_LOWEST, SM_HIGHEST = 10, 999
ARCHITECTURE_SPECIFIC, FAMILY = 1 << 20, 1 << 21
# Far above any library: a public one of 226 MB has some 30,000.
ENTRIES = 400_000
_CONTENT = re.compile(rb"[^\0]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One entry: `target` is the SM number with its suffix, such as `90a`; `isa` the PTX ISA of a PTX entry.

    `fatbin` is where the fatbin that holds it begins: the compiler writes one for each unit.
    """

    fatbin: int
    kind: int
    target: str
    isa: tuple[int, int]


def entries(data: Buffer, start: int, end: int) -> Iterator[Entry]:
    """The entries of the fatbins in `data[start:end]`, which zeros may part.

    A fatbin is a 16-byte header and entries, each a header and a payload; the headers can be read whatever
    the payload's compression (layout found by experiment with nvcc 11.8 to 13.2, see docs/architecture.md).
    Raises ValueError where the bytes do not follow it.
    """
    count = 0
    while (found := _CONTENT.search(data, start, end)) is not None:
        at = found.start() & ~3
        if at + HEADER.size > end:
            raise ValueError(f"a fatbin header at offset {at} is cut")
        magic, _, header, size = HEADER.unpack_from(data, at)
        if magic != MAGIC or header < HEADER.size or at + header + size > end:
            raise ValueError(f"no fatbin at offset {at}")
        entry, start = at + header, at + header + size
        while entry < start:
            count += 1
            if count > ENTRIES:
                raise ValueError(f"more than {ENTRIES:,} fatbin entries")
            if entry + ENTRY_MINIMUM > start:
                raise ValueError(f"a fatbin entry at offset {entry} is cut")
            kind, _, head, payload, minor, major, sm, flags = ENTRY.unpack_from(data, entry)
            if kind not in OTHER | {PTX, SASS} or head < ENTRY_MINIMUM or entry + head + payload > start:
                raise ValueError(f"no fatbin entry at offset {entry}")
            if not SM_LOWEST <= sm <= SM_HIGHEST:
                raise ValueError(f"the fatbin entry at offset {entry} is for SM {sm}, which is none")
            suffix = "a" if flags & ARCHITECTURE_SPECIFIC else "f" if flags & FAMILY else ""
            isa = (major, minor) if kind == PTX else (0, 0)
            yield Entry(fatbin=at, kind=kind, target=f"{sm}{suffix}", isa=isa)
            entry += head + payload


def sm_order(target: str) -> tuple[int, str]:
    """Sort key of targets: by number, then suffix."""
    return int(target.rstrip("af")), target
