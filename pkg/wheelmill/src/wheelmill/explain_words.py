"""What a pattern cannot tell of what it found: the few functions that rules may call by name, each word → word.

A rule's `derive` names one of FUNCTIONS with the groups it is given; an answer of "" means that nothing can be told.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import unquote

from packaging.version import InvalidVersion, Version

from wheelmill import facts, hardware, torch_use

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LONGEST = 1000
# Names that refer to earlier parts of themselves over and over demangle to more than any memory holds.
NESTED = re.compile(r"S[0-9A-Z]*_S[0-9A-Z]*_")
DEEPEST = 12


def demangle(symbol: str) -> str:
    """A C++ name as it was written; the symbol itself where it is none, or too deep to be undone."""
    if not symbol.startswith("_Z") or len(symbol) > LONGEST or len(NESTED.findall(symbol)) > DEEPEST:
        return symbol
    try:
        from pycxxfilt import demangle as undo
    except ImportError:  # it does not install on Python 3.10
        return symbol
    try:
        found = str(undo(symbol))
    except (ValueError, RuntimeError):
        return symbol
    found = re.sub(
        r"std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char>\s?>", "std::string", found
    )
    return found if len(found) <= LONGEST else found[:LONGEST] + "…"


def abi(symbol: str) -> str:
    """`new` or `old`: GCC's std::string in the name of a symbol; "" where the name has none."""
    told = torch_use.string_abi([symbol])
    return {True: "new", False: "old", None: ""}[told]


def compare(left: str, right: str) -> str:
    """`older`, `same` or `newer`: the left version against the right one, local parts left out."""
    try:
        one, other = (Version(re.split(r"\+|%2[Bb]", text)[0]) for text in (left, right))
    except InvalidVersion:
        return ""
    return "older" if one < other else "newer" if one > other else "same"


def differ(left: str, right: str) -> str:
    """`yes` where two versions differ, be it in their local parts alone."""
    return "yes" if left != right else ""


def decoded(text: str) -> str:
    """A name of an address without its percent codes."""
    return unquote(text)


def minor(version: str) -> str:
    """`2.6` of 2.6.0+cu124."""
    match = re.match(r"\d+\.\d+", version)
    return match[0] if match else ""


def local(version: str) -> str:
    """`cu124` of 2.6.0+cu124."""
    return version.partition("+")[2]


def cuda_of(version: str) -> str:
    """`12.4` of 2.6.0+cu124 or cu124, `cpu` of 2.6.0+cpu."""
    match = re.search(r"\bcu(\d+)(\d)\b", version)
    return f"{match[1]}.{match[2]}" if match else "cpu" if re.search(r"\bcpu\b", version) else ""


@cache
def _known() -> facts.Facts:
    return facts.load()


def torch_abi(version: str) -> str:
    """`new` or `old`: the C++ ABI of PyTorch's own wheel of that version and variant."""
    row = _known().torch.get(minor(version))
    if row is None:
        return ""
    variant = local(version)
    told = row.cxx11_abi_of.get(variant, row.cxx11_abi)
    return "" if told is None else "new" if told else "old"


def cards(capability: str) -> str:
    """What cards have a capability such as `9.0`, `90` or `sm_90`."""
    number = re.sub(r"\D", "", capability)
    return next((card.name for card in hardware.table().cards if card.sm == number), "")


def driver_for(cuda: str) -> str:
    """The oldest driver branch that serves a CUDA."""
    branch = hardware.branch_for(minor(cuda)) if minor(cuda) else None
    return str(branch) if branch else ""


def file(path: str) -> str:
    """The last part of a path."""
    return path.rstrip("/").rpartition("/")[2]


def before(number: str) -> str:
    """The whole number before one: the newest that `<14` admits."""
    return str(int(number) - 1)


def join(*words: str) -> str:
    """Words with a space between, so that `where` can hold several against one pattern; one that is "" stays so."""
    return " ".join(words)


FUNCTIONS: Mapping[str, Callable[..., str]] = {
    function.__name__: function
    for function in (demangle, abi, compare, decoded, differ, cuda_of, torch_abi, cards, driver_for, file, before, join)
}
