"""Facts of one shared library, read from its bytes and never by loading it.

What the dynamic loader reads is read here from where the loader reads it: the dynamic segment. By hand, because
these bytes are a stranger's and pyelftools follows their offsets and counts without a bound, and takes a minute
for the symbols of a large library. Layout: https://gabi.xinuos.com and the LSB's symbol versioning.
"""

from __future__ import annotations

import contextlib
import mmap
import struct
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelmill import fatbin
from wheelmill.errors import GateError
from wheelmill.image import DYN, Image

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from wheelmill.fatbin import Buffer

WEAK = 2
REGISTERS_DEVICE_CODE = "__cudaRegisterFatBinary"


@dataclass(frozen=True, kw_only=True, slots=True)
class Units:
    """How many of a library's compiled units hold device code for those targets, and for no others."""

    sass: tuple[str, ...]
    ptx: tuple[str, ...]
    count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Library:
    """What a library holds and needs. `sass` and `ptx` are SM numbers with their suffix, such as `90a`.

    `undefined` maps each strong undefined symbol to the version it asks for, or to None; `weak` holds the weak
    ones. `versions` maps each library to the version names that it must offer. `ptx_isa` is the newest PTX ISA
    version of its PTX, None where it has none; `relocatable` says that some of its device code is linked when it is
    loaded. `program` says that it is an executable and no library.
    """

    path: str
    machine: str
    bits: int
    soname: str | None
    sass: tuple[str, ...]
    ptx: tuple[str, ...]
    needed: tuple[str, ...]
    rpath: tuple[str, ...]
    undefined: dict[str, str | None]
    versions: dict[str, tuple[str, ...]]
    weak: tuple[str, ...] = ()
    entry_points: tuple[str, ...] = ()
    ptx_isa: tuple[int, int] | None = None
    relocatable: bool = False
    device_entries: int = 0
    units: tuple[Units, ...] = ()
    exec_stack: bool = False
    relro: bool = True
    program: bool = False
    build_paths: tuple[str, ...] = ()


def exported(path: Path) -> frozenset[str]:
    """The symbols that a library offers to others. Raises GateError when it cannot be read."""
    with _opened(path, path.name) as data:
        return frozenset(symbol.name for symbol in Image(data).symbols() if symbol.defined)


def _device(image: Image) -> tuple[tuple[Units, ...], tuple[int, int], int]:
    """(units by their targets, newest PTX ISA, number of entries) of every fatbin section."""
    count = 0
    targets: dict[int, tuple[set[str], set[str]]] = {}
    isa = (0, 0)
    for section in image.sections:
        if section.name in fatbin.SECTIONS:
            image.within(section.offset, section.size)
            for entry in fatbin.entries(image.data, section.offset, section.offset + section.size):
                count += 1
                if entry.kind in (fatbin.SASS, fatbin.PTX):
                    sass, ptx = targets.setdefault(entry.fatbin, (set(), set()))
                    (sass if entry.kind == fatbin.SASS else ptx).add(entry.target)
                    isa = max(isa, entry.isa)
    kinds = Counter((_ordered(sass), _ordered(ptx)) for sass, ptx in targets.values())
    return tuple(Units(sass=sass, ptx=ptx, count=units) for (sass, ptx), units in kinds.items()), isa, count


def _ordered(targets: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(targets), key=fatbin.sm_order))


def _targets(units: Sequence[Units]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(SASS, PTX) of all of them."""
    return (
        _ordered(target for unit in units for target in unit.sass),
        _ordered(target for unit in units for target in unit.ptx),
    )


def device(path: Path, name: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[int, int] | None]:
    """(SASS, PTX, newest PTX ISA) of a library, without its symbols. Raises GateError when they cannot be read."""
    with _opened(path, name) as data:
        units, isa, _ = _device(Image(data))
    sass, ptx = _targets(units)
    return sass, ptx, isa if ptx else None


def links(path: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(needed libraries, search path) of a library, without the rest. Raises GateError when they cannot be read."""
    with _opened(path, path.name) as data:
        image = Image(data)
        return image.needed, image.rpath


def parse(data: Buffer, name: str) -> Library:
    """The facts of an ELF image. Raises ValueError or struct.error where the bytes do not follow the format."""
    image = Image(data)
    symbols = list(image.symbols(defined=b"Py"))
    names, versions = image.version_needs()
    undefined = [symbol for symbol in symbols if not symbol.defined]
    units, isa, count = _device(image)
    sass, ptx = _targets(units)
    if not (sass or ptx) and any(symbol.name == REGISTERS_DEVICE_CODE for symbol in undefined) and image.stripped:
        raise ValueError("it registers device code, and its section table, which says where that lies, is gone")
    return Library(
        path=name,
        machine=image.machine,
        bits=image.bits,
        soname=image.soname,
        sass=sass,
        ptx=ptx,
        needed=image.needed,
        rpath=image.rpath,
        undefined={symbol.name: names.get(symbol.version) for symbol in undefined if symbol.bind != WEAK},
        versions=versions,
        weak=tuple(symbol.name for symbol in undefined if symbol.bind == WEAK),
        entry_points=tuple(s.name for s in symbols if s.defined and s.name.startswith(("PyInit_", "PyModExport_"))),
        ptx_isa=isa if ptx else None,
        device_entries=count,
        units=units,
        relocatable=any(section.name == fatbin.SECTIONS[1] for section in image.sections),
        exec_stack=image.exec_stack,
        relro=image.relro,
        program=image.kind != DYN or image.interpreted,
        build_paths=image.build_paths(),
    )


def read(path: Path, name: str) -> Library:
    """The facts of the library at `path`, which the wheel calls `name`.

    Raises GateError when the file is not an ELF file or its device code cannot be read: what cannot be
    determined is never reported as fine.
    """
    with _opened(path, name) as data:
        return parse(data, name)


@contextlib.contextmanager
def _opened(path: Path, name: str) -> Iterator[mmap.mmap]:
    """A library's bytes. Raises GateError where they, or what is made of them meanwhile, do not follow the format."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield data
    except (ValueError, struct.error) as error:
        raise GateError(
            f"{name}: its contents cannot be read ({error}), so nothing can be said of what it holds",
            remedy="rebuild the wheel; if the file is sound, report it with the toolkit's version",
        ) from error
