"""A candidate: one wheel of an index, with all that was read of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from packaging.version import Version

from wheelmill import loading, platforms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wheelmill.claims import Claim
    from wheelmill.records import Cell, Library, Record

CXX11 = re.compile(r"cxx11_?abi_?(true|false|1|0)")

LABEL = re.compile(r"cpu|cu\d{2,4}")
OTHER = re.compile(r"(?:^|[^a-z])(rocm|xpu)(?![a-z])")
DOTTED = re.compile(r"\d{1,4}(\.\d{1,4}){0,3}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """A wheel as an index lists it. `yanked` is the reason, empty without one, None where it is not yanked.

    `metadata` is the SHA-256 of the METADATA that the index offers apart, empty where it states none, None where it
    offers none; `record` the SHA-256 of the wheel's record. `environments` are those that our index names.
    """

    file: str
    url: str
    sha256: str | None = None
    requires_python: str | None = None
    yanked: str | None = None
    metadata: str | None = None
    record: str | None = None
    environments: tuple[str, ...] = ()
    provenance: str | None = None


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """`metadata` says whether its METADATA was read; `libraries` is None where nobody looked into them.

    `measured` are the environments in which these bytes were measured, None where nobody says. `unread` is what was
    to be read and was not, and why; `broken` why it cannot be taken at all.
    """

    link: Link
    claim: Claim
    metadata: bool = False
    record: Record | None = None
    libraries: Mapping[str, Library] | None = None
    measured: tuple[str, ...] | None = None
    cover: tuple[Cell, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)
    broken: str | None = None

    @property
    def file(self) -> str:
        return self.link.file

    @cached_property
    def version(self) -> Version:
        return Version(self.claim.version)

    @property
    def pure(self) -> bool:
        """Whether its tags say that it runs everywhere, so that it holds no library."""
        return {tag.platform for tag in self.claim.tags} == {"any"}

    @cached_property
    def cuda(self) -> str | None:
        """The CUDA it is for, as `cu130`, `cu12` or `cpu`: by its record, else its name."""
        stated = self.record.build.cuda if self.record and self.record.build else None
        return stated if stated and LABEL.fullmatch(stated) else self.claim.cuda

    @cached_property
    def other(self) -> str | None:
        """The stack beside CUDA that its name says it is for: `rocm` or `xpu`."""
        match = OTHER.search(self.version.local or "")
        return match[1] if match else None

    @cached_property
    def together(self) -> Mapping[str, Library] | None:
        """Its libraries without those of which one is chosen when it is imported."""
        if self.libraries is None:
            return None
        apart = self.alternatives
        return {path: library for path, library in self.libraries.items() if path not in apart}

    @cached_property
    def alternatives(self) -> frozenset[str]:
        shapes = [_Shape(path=path, needed=one.needed) for path, one in (self.libraries or {}).items()]
        return loading.alternatives(shapes)

    @cached_property
    def runtime(self) -> int | None:
        """The CUDA major whose runtime its libraries need, else the one that it is labelled with."""
        for library in (self.together or {}).values():
            for name in library.needed:
                major = loading.cuda_major(platforms.original(name))
                if major is not None:
                    return int(major)
        label = self.cuda
        return int(label[2:4]) if label and label != "cpu" else None

    @cached_property
    def minor(self) -> str | None:
        """The CUDA minor it is labelled with, as `12.4`; None where the label names a major alone, or nothing."""
        label = self.cuda
        return f"{label[2:-1]}.{label[-1]}" if label and label.startswith("cu") and len(label) > len("cu12") else None

    @cached_property
    def abis(self) -> frozenset[str] | None:
        """How its libraries use torch: `stable`, `unstable`, `none`; None where nobody looked."""
        return None if self.together is None else frozenset(one.torch_abi for one in self.together.values())

    @cached_property
    def floor(self) -> Version | None:
        """The lowest torch that has what its libraries use of the stable ABI."""
        stated = [one.min_torch for one in (self.together or {}).values() if one.min_torch]
        floors = [Version(one) for one in stated if DOTTED.fullmatch(one)]
        return max(floors, default=None)

    @cached_property
    def pinned(self) -> str | None:
        """The torch minor that its requirement pins it to, as `2.4`."""
        for one in self.claim.torch or ():
            match = re.match(r"(\d+\.\d+)(\.|$)", one.version)
            if (
                one.operator in ("==", "===", "~=")
                and match
                and not (one.operator == "~=" and one.version.count(".") == 1)
            ):
                return match[1]
        return None

    @cached_property
    def tied(self) -> str | None:
        """The torch minor whose C++ ABI it was built for, by its name, its record or its requirement."""
        if self.abis is None:
            return self.claim.minor or self.pinned
        if "unstable" not in self.abis:
            return None
        built = self.record.build.torch if self.record and self.record.build else None
        release = ".".join(built.split("+")[0].split(".")[:2]) if built else None
        return self.claim.minor or release or self.pinned

    @cached_property
    def cxx11(self) -> bool | None:
        """The C++11 ABI it was built with, by its libraries, else its name."""
        stated = [one.cxx11_abi for one in (self.together or {}).values() if one.cxx11_abi is not None]
        if stated:
            return stated[0]
        match = CXX11.search(self.version.local or "")
        return match[1] in ("true", "1") if match else None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Shape:
    """What `loading` needs of a library."""

    path: str
    needed: tuple[str, ...]
