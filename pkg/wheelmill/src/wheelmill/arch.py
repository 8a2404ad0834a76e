"""GPU architectures in the words of TORCH_CUDA_ARCH_LIST: `8.0`, `9.0a`, `10.0f`, `9.0+PTX`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

WORD = re.compile(r"(\d{1,2})\.(\d)([af]?)(\+PTX)?")


@dataclass(frozen=True, slots=True, order=True)
class Arch:
    """One target. `suffix` is `a` (this architecture alone), `f` (its family) or empty; `ptx` adds PTX."""

    major: int
    minor: int
    suffix: str = ""
    ptx: bool = False

    @property
    def name(self) -> str:
        """The target without its PTX, as toolkits list it: `9.0a`."""
        return f"{self.major}.{self.minor}{self.suffix}"

    @property
    def order(self) -> int:
        """The SM number: 90 for 9.0."""
        return self.major * 10 + self.minor

    def __str__(self) -> str:
        return f"{self.name}+PTX" if self.ptx else self.name


def parse(word: str) -> Arch | None:
    """The target that `word` states, or None when it is no word of that form."""
    match = WORD.fullmatch(word)
    if match is None:
        return None
    major, minor, suffix, ptx = match.groups()
    return Arch(int(major), int(minor), suffix, ptx is not None)


def split(text: str) -> tuple[str, ...]:
    """The words of one TORCH_CUDA_ARCH_LIST value, which separates them by semicolons or blanks."""
    return tuple(text.replace(";", " ").split())


def merge(archs: Iterable[Arch]) -> tuple[str, ...]:
    """Ascending words, each target once; PTX survives where any mention of the target has it."""
    ptx: dict[str, bool] = {}
    plain: dict[str, Arch] = {}
    for arch in archs:
        ptx[arch.name] = ptx.get(arch.name, False) or arch.ptx
        plain[arch.name] = Arch(arch.major, arch.minor, arch.suffix)
    return tuple(f"{arch.name}+PTX" if ptx[arch.name] else arch.name for arch in sorted(plain.values()))


def all_of(known: Iterable[Arch]) -> tuple[str, ...]:
    """Every plain target in `known`, PTX of the newest."""
    return _with_newest_ptx({Arch(arch.major, arch.minor) for arch in known if not arch.suffix})


def all_major(known: Iterable[Arch]) -> tuple[str, ...]:
    """The lowest plain target and each X.0 in `known`, PTX of the newest: what nvcc calls all-major."""
    plain = {Arch(arch.major, arch.minor) for arch in known if not arch.suffix}
    if not plain:
        return ()
    return _with_newest_ptx({min(plain)} | {arch for arch in plain if arch.minor == 0})


def _with_newest_ptx(plain: set[Arch]) -> tuple[str, ...]:
    ordered = sorted(plain)
    return tuple(f"{arch.name}+PTX" if arch == ordered[-1] else arch.name for arch in ordered)
