"""How a library uses torch: by the stable ABI or not, from which release on, with which C++ ABI.

Told from mangled names. Demangled ones say the same and are what torch-abi-audit's own classification wants, but
a name made for it demangles to more bytes than any memory holds; a test holds the two together on real wheels.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from wheelmill.elf import Library

TorchUse = Literal["stable", "unstable", "none"]
SHIM = re.compile(r"(?:aoti_torch_|torch_)")
NAMESPACES = frozenset({"at", "c10", "torch"})
STABLE = frozenset({"stable", "headeronly"})
MAYBE = re.compile(r"2at|3c10|5torch")
# Of the Itanium C++ ABI's mangling: what has digits that are no length, then a length, then anything.
TOKEN = re.compile(r"Ss|S[0-9A-Z]*_|T[0-9]*_|L[a-z]n?[0-9]+E|A[0-9]+_|(?P<length>[1-9][0-9]{0,4})|.", re.DOTALL)
# What follows a namespace, and never a function's name: another name, or an operator's two letters.
WITHIN = re.compile(r"[1-9]|[a-z][a-zA-Z][EI]|D[0-2]|C[1-3]")
HAS_TABLE = sys.version_info >= (3, 11)


@dataclass(frozen=True, kw_only=True, slots=True)
class Use:
    """`floor` is the lowest torch by its shims, as `2.10.0`; `defining` the shims that set it; `unknown` those that
    no table has. `unstable` holds the mangled names of torch's C++ API, and `cxx11_abi` is their ABI, None where
    they do not tell. `shims` are the names of its C interface. `told` is False where shims are used and no table of
    releases is at hand.
    """

    abi: TorchUse
    floor: str | None = None
    defining: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    unstable: tuple[str, ...] = ()
    shims: tuple[str, ...] = ()
    cxx11_abi: bool | None = None
    told: bool = True


def _names(mangled: str) -> Iterator[tuple[str, int]]:
    """(source name or abbreviation, where it ends) of a mangled name."""
    at = 2
    while at < len(mangled):
        match = TOKEN.match(mangled, at)
        if match is None:
            return
        at = match.end()
        if match["length"]:
            end = at + int(match["length"])
            yield mangled[at:end], end
            at = end
        elif match[0] == "Ss":
            yield "Ss", at


def is_unstable(name: str) -> bool:
    """Whether a mangled name is of torch's C++ API, or mentions a type of it, outside the stable part."""
    if not name.startswith("_Z") or not MAYBE.search(name):
        return False
    pairs = list(_names(name))
    for position, (word, end) in enumerate(pairs):
        # `_Z2ati` is a function of one's own, `…E2atEm` a container's method.
        if word not in NAMESPACES or not WITHIN.match(name, end) or end == 2 + len(f"{len(word)}{word}"):
            continue
        following = pairs[position + 1][0] if position + 1 < len(pairs) else ""
        if word != "torch" or following not in STABLE:
            return True
    return False


def string_abi(unstable: Iterable[str]) -> bool | None:
    """Whether mangled names hold the C++11 ABI's std::string; None where they hold neither."""
    old = False
    for name in unstable:
        words = {word for word, _ in _names(name)}
        if words & {"__cxx11", "cxx11"}:
            return True
        old = old or "Ss" in words
    return False if old else None


def classify(library: Library) -> Use:
    """The use that a library's undefined symbols make of torch."""
    symbols = [*library.undefined, *library.weak]
    unstable = tuple(name for name in symbols if is_unstable(name))
    shims = [name for name in symbols if SHIM.match(name)]
    if not unstable and not shims:
        return Use(abi="none")
    floor, defining, unknown = _floor(shims)
    return Use(
        abi="unstable" if unstable else "stable",
        floor=floor,
        defining=defining,
        unknown=unknown,
        unstable=unstable,
        shims=tuple(shims),
        cxx11_abi=string_abi(unstable),
        told=HAS_TABLE or not shims,
    )


def _floor(shims: list[str]) -> tuple[str | None, tuple[str, ...], tuple[str, ...]]:
    """(lowest torch, the shims that set it, those that the table lacks) by torch-abi-audit's table."""
    if not HAS_TABLE:  # torch-abi-audit does not install on Python 3.10
        return None, (), ()
    from torch_abi_audit import minimum_version

    version, defining, unknown = minimum_version(shims)
    return (".".join(map(str, version)) if version else None), defining, unknown
