"""How a library uses torch: by the stable ABI or not, from which release on, with which C++ ABI."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wheelmill.elf import Library

TorchUse = Literal["stable", "unstable", "none"]
# torch-abi-audit's own rules, for Python 3.10, on which it does not install; a test holds the two together.
SHIM = re.compile(r"_?(?:aoti_torch_|torch_)")
UNSTABLE = re.compile(r"\b(?:at|c10|torch)::")
STABLE_NAMESPACES = re.compile(r"torch::(?:headeronly|stable)")
CXX11 = re.compile(r"std::__cxx11::|\[abi:cxx11\]")
OLD_STRING = re.compile(r"std::(?:string\b|basic_string<|list<)")
HAS_TABLE = sys.version_info >= (3, 11)


@dataclass(frozen=True, kw_only=True, slots=True)
class Use:
    """`floor` is the lowest torch by its shims, as `2.10.0`; `defining` the shims that set it; `unknown` those that
    no table has. `cxx11_abi` is that of the torch functions it imports, None where they do not tell. `told` is False
    where shims are used and no table of releases is at hand.
    """

    abi: TorchUse
    floor: str | None = None
    defining: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    unstable: tuple[str, ...] = ()
    cxx11_abi: bool | None = None
    told: bool = True


def demangled(names: Iterable[str]) -> list[str]:
    """The names as C++ writes them; one that is no mangled name stays."""
    if HAS_TABLE:
        from pycxxfilt import demangle
    else:  # pycxxfilt has no wheels for Python 3.10
        from cxxfilt import demangle
    plain = []
    for name in names:
        try:
            plain.append((demangle(name) or name) if name.startswith("_Z") else name)
        except (ValueError, RuntimeError):
            plain.append(name)
    return plain


def is_unstable(name: str) -> bool:
    """Whether a demangled name is of torch's C++ API outside its stable part."""
    return not SHIM.match(name) and UNSTABLE.search(STABLE_NAMESPACES.sub("", name)) is not None


def _cxx11_abi(unstable: Iterable[str]) -> bool | None:
    new = old = False
    for name in unstable:
        new = new or CXX11.search(name) is not None
        old = old or OLD_STRING.search(name) is not None
    return True if new else False if old else None


def classify(library: Library) -> Use:
    """The use that a library's undefined symbols make of torch."""
    symbols = [*library.undefined, *library.weak]
    if not any(re.search(r"2at|3c10|5torch|^_?(?:aoti_)?torch_", name) for name in symbols):
        return Use(abi="none")
    names = demangled(symbols)
    unstable = tuple(name for name in names if is_unstable(name))
    shims = [name for name in names if SHIM.match(name)]
    if not unstable and not shims:
        return Use(abi="none")
    abi: TorchUse = "unstable" if unstable else "stable"
    known = _cxx11_abi(unstable)
    if not HAS_TABLE:
        return Use(abi=abi, unstable=unstable, cxx11_abi=known, told=not shims)
    from torch_abi_audit.torch_abi import classify_symbols

    verdict = classify_symbols(names)
    return Use(
        abi="none" if not verdict.uses_torch else "stable" if verdict.stable else "unstable",
        floor=verdict.min_torch_version,
        defining=verdict.version_defining_symbols,
        unknown=verdict.unknown_shim_symbols,
        unstable=verdict.unstable_symbols,
        cxx11_abi=known,
    )
