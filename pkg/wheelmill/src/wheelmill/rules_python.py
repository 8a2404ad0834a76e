"""Rules of Python: what the tags promise, and what the libraries use of CPython."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from wheelmill.findings import Finding, found
from wheelmill.names import listing
from wheelmill.rules_platform import hosted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelmill.elf import Library
    from wheelmill.findings import Severity
    from wheelmill.rules_plan import Expected
    from wheelmill.wheelfacts import WheelFacts

CPYTHON = re.compile(r"_?Py[A-Z_]\w*")
SUFFIX = re.compile(r"\.cpython-(\d)(\d+)(t?)d?-[\w-]*\.so$")
SHOWN = 3


def findings(facts: WheelFacts, expected: Expected) -> Iterator[Finding]:  # noqa: ARG001
    abis = {abi for _, abi in facts.pairs}
    libraries = hosted(facts)
    versions = {library.path: _version(library) for library in libraries}
    modules = Counter(SUFFIX.sub("", library.path) for library in libraries)
    for library in libraries:
        python = versions[library.path]
        if python is not None and abis and abis <= {"none", "abi3"}:
            yield _for_one(facts, library, python, siblings=modules[SUFFIX.sub("", library.path)])
        elif python is not None and abis and not _serves(facts, python):
            yield found("python-tag", library.path, python=f"CPython {_dotted(python)}", tag=_tag(facts))
        elif "none" in abis:
            yield from _uses(facts, library)
        if abis == {"abi3"}:
            yield from _limited(facts, library)


def _version(library: Library) -> str | None:
    """The Python that a library's name is for, as `310` or `313t`."""
    match = SUFFIX.search(library.path)
    return "".join(match.groups()) if match else None


def _dotted(python: str) -> str:
    return f"{python[0]}.{python[1:]}"


def _tag(facts: WheelFacts) -> str:
    return listing(sorted(f"{interpreter}-{abi}" for interpreter, abi in facts.pairs), limit=4)


def _serves(facts: WheelFacts, python: str) -> bool:
    return any(f"cp{python}" in {interpreter, abi} for interpreter, abi in facts.pairs)


def _for_one(facts: WheelFacts, library: Library, python: str, *, siblings: int) -> Finding:
    # One for each Python, side by side, are alternatives.
    severity: Severity | None = "info" if siblings > 1 else None
    return found(
        "version-specific-library",
        library.path,
        severity=severity,
        python=f"CPython {_dotted(python)}",
        tag=_tag(facts),
    )


def _uses(facts: WheelFacts, library: Library) -> Iterator[Finding]:
    names = sorted(symbol for symbol in library.undefined if CPYTHON.fullmatch(symbol))
    names += [name for name in library.needed if name.startswith("libpython")]
    if names:
        what = f"{', '.join(names[:SHOWN])} ({len(names)} in all)"
        yield found("cpython-symbol", library.path, what=what, tag=_tag(facts))


def _limited(facts: WheelFacts, library: Library) -> Iterator[Finding]:
    names = [symbol for symbol in (*library.undefined, *library.weak) if CPYTHON.fullmatch(symbol)]
    if not names:
        return
    from abi3audit._audit import audit

    result: Any = audit(_Object(facts, names))
    wrong = sorted(symbol.name for symbol in result.non_abi3_symbols)
    later = sorted(f"{one.symbol.name} of {one.added}" for one in result.future_abi3_objects)
    if wrong or later:
        what = f"{', '.join([*wrong, *later][:SHOWN])} ({len(wrong) + len(later)} in all)"
        yield found("abi3-symbol", library.path, what=what, tag=_tag(facts), python=f"Python {result.baseline}")


class _Object:
    """A library as abi3audit sees one, made of facts: abi3audit's own reader extracts and parses the file again."""

    def __init__(self, facts: WheelFacts, names: list[str]) -> None:
        from abi3info.models import Symbol

        self._facts = facts
        self._symbols = [Symbol(name) for name in names]

    def abi3_version(self, assume_lowest: Any) -> Any:
        """The Python whose limited API the tags promise."""
        from abi3info.models import PyVersion

        minors = [re.fullmatch(r"cp3(\d+)", interpreter) for interpreter, abi in self._facts.pairs if abi == "abi3"]
        found_ = [PyVersion(3, int(minor[1])) for minor in minors if minor]
        return min(found_, default=assume_lowest)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._symbols)
