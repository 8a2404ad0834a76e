"""A stranger's wheel, read in parts: its METADATA, and where asked the libraries in it."""

from __future__ import annotations

import re
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from wheelmill import archive, elf, platforms, torch_use
from wheelmill.errors import GateError, InputError, MissingError
from wheelmill.records import Library

if TYPE_CHECKING:
    import zipfile
    from collections.abc import Mapping
    from typing import BinaryIO

    from wheelmill.web import Web
    from wheelmill.which_candidate import Candidate

LIBRARY = re.compile(r"\.so(\.[\w.]+)?$")
# Grafted copies of other projects' libraries say nothing of what the wheel computes with.
GRAFTED = re.compile(r"[^/]+\.libs/")


def metadata(url: str, session: Web, limit: int, total: int) -> bytes:
    """The METADATA inside a wheel, of which no more is fetched than that takes.

    Raises InputError for an archive that is none, MissingError where its server gives no parts.
    """
    with session.open(url, limit=total) as file:
        opened, infos = _opened(file)
        found = [info for info in infos if re.fullmatch(r"[^/]+\.dist-info/METADATA", info.filename)]
        if len(found) != 1 or found[0].file_size > limit:
            raise InputError("it holds no METADATA that can be read: pip refuses it", remedy="tell the wheel's maker")
        return _member(opened, found[0])


def members(url: str, session: Web, wanted: Mapping[str, int], total: int) -> dict[str, bytes]:
    """The named files inside a wheel, each of at most so many bytes; what is not there, or longer, is left out.

    Raises InputError for an archive that cannot be read, MissingError where its server gives no parts.
    """
    with session.open(url, limit=total) as file:
        opened, infos = _opened(file)
        found = [info for info in infos if info.file_size <= wanted.get(info.filename, -1)]
        return {info.filename: _member(opened, info) for info in found}


def read(candidate: Candidate, session: Web, limit: int) -> tuple[Candidate, int]:
    """(the candidate with what its libraries hold, the bytes that took); unread where that is more than `limit`."""
    try:
        with session.open(candidate.link.url, limit=max(limit, 1)) as file:
            opened, infos = _opened(file)
            wanted = [one for one in infos if LIBRARY.search(one.filename) and not GRAFTED.match(one.filename)]
            size = sum(info.compress_size for info in wanted)
            if size > limit:
                why = f"they are {size:,} bytes, and {max(limit, 0):,} may still be read: --deep-limit raises that"
                return _unread(candidate, why), 0
            return replace(candidate, libraries=_libraries(opened, wanted)), size
    except (MissingError, InputError, GateError) as error:
        return _unread(candidate, str(error)), 0


def _unread(candidate: Candidate, why: str) -> Candidate:
    return replace(candidate, unread={**candidate.unread, "what its libraries hold": why})


def _opened(file: BinaryIO) -> tuple[zipfile.ZipFile, list[zipfile.ZipInfo]]:
    try:
        size = file.seek(0, 2)
        return archive.listing(file, size)
    except archive.BROKEN as error:
        raise InputError(f"it is no archive that can be read: {error}", remedy="tell the wheel's maker") from error


def _member(opened: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    try:
        with opened.open(info) as source:
            return source.read(info.file_size)
    except archive.BROKEN as error:
        raise InputError(f"{archive.shown(info.filename)} cannot be read: {error}", remedy="tell the maker") from error


def _libraries(opened: zipfile.ZipFile, wanted: list[zipfile.ZipInfo]) -> dict[str, Library]:
    found = {}
    with tempfile.TemporaryDirectory(prefix="wheelmill-which-") as folder:
        target = Path(folder) / "library.elf"
        for info in wanted:
            try:
                with opened.open(info) as source, target.open("wb") as out:
                    shutil.copyfileobj(source, out, 1 << 20)
            except archive.BROKEN as error:
                raise InputError(f"{archive.shown(info.filename)}: {error}", remedy="tell the maker") from error
            if target.stat().st_size and target.read_bytes()[:4] == b"\x7fELF":
                name = archive.shown(info.filename)
                found[name] = _library(elf.read(target, name))
    return found


def _library(library: elf.Library) -> Library:
    use = torch_use.classify(library)
    return Library(
        sass=library.sass,
        ptx=library.ptx,
        ptx_isa="{}.{}".format(*library.ptx_isa) if library.ptx_isa else None,
        needed=library.needed,
        glibc=platforms.newest(library, "GLIBC"),
        glibcxx=platforms.newest(library, "GLIBCXX"),
        torch_abi=use.abi,
        min_torch=use.floor,
        cxx11_abi=use.cxx11_abi,
    )
