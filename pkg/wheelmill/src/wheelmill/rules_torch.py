"""Rules of torch: its ABI, and the range that METADATA requires."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from wheelmill.findings import Finding, found
from wheelmill.names import listing
from wheelmill.rules_cuda import label
from wheelmill.rules_platform import hosted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelmill.elf import Library
    from wheelmill.facts import Facts
    from wheelmill.rules_plan import Expected
    from wheelmill.torch_use import Use
    from wheelmill.wheelfacts import WheelFacts

# torch's own libraries and parts of it that are built and released with it.
SELF = frozenset({"torch", "torch-nightly"})
PATCHES = 10
SHOWN = 3


def findings(facts: WheelFacts, expected: Expected) -> Iterator[Finding]:
    if facts.name.project in SELF:
        return
    used = [(library, facts.uses[library.path]) for library in hosted(facts)]
    used = [(library, use) for library, use in used if use.abi != "none"]
    if not used:
        return
    every = [requirement for requirement in facts.requirements if requirement.name.lower() == "torch"]
    bare = [requirement.specifier for requirement in every if requirement.marker is None]
    if facts.metadata is not None and not bare:
        library, use = used[0]
        yield found("torch-unrequired", library.path, what=_shown(library, use))
    spec = SpecifierSet(",".join(map(str, bare))) if bare else None
    requires = listing(facts.requires_torch)
    stable = expected.wheel is not None and expected.wheel.torch_abi == "stable"
    for library, use in used:
        if not use.told or use.unknown:
            # Without the table nothing is wrong with the wheel; a shim that the table lacks may be.
            yield found("torch-floor-unknown", library.path, severity=None if use.told else "info", what=_untold(use))
        if spec is None:
            continue
        if use.abi == "unstable" and not stable:
            yield from _unstable(library, use, spec, requires, facts, expected)
        yield from _floor(library, use, spec, requires, expected.facts)


def _shown(library: Library, use: Use) -> str:
    # As the loader's "undefined symbol" names them.
    names = use.unstable or tuple(name for name in library.undefined if "torch" in name)
    return listing(names, limit=SHOWN)


def _untold(use: Use) -> str:
    if use.unknown:
        return f"it uses {listing(use.unknown, limit=SHOWN)}, which the table of shims does not have"
    return "torch-abi-audit, whose table says which release brought each shim, needs Python 3.11 to run"


def admitted(spec: SpecifierSet, known: Facts) -> tuple[list[str], bool]:
    """(the known minors of torch that a requirement admits, whether it admits any later one)."""
    minors = [minor for minor in known.torch if any(spec.contains(f"{minor}.{patch}") for patch in range(PATCHES))]
    last = Version(f"{list(known.torch)[-1]}.0")
    later = [f"{last.major}.{last.minor + 1}.0", f"{last.major}.{last.minor + 40}.0", f"{last.major + 1}.0.0"]
    return minors, any(spec.contains(release) for release in later)


def _unstable(
    library: Library, use: Use, spec: SpecifierSet, requires: str, facts: WheelFacts, expected: Expected
) -> Iterator[Finding]:
    minors, later = admitted(spec, expected.facts)
    if len(minors) + later > 1:
        yield found("torch-range-open", library.path, requires=requires)
        return
    if use.cxx11_abi is None or later:
        return
    variants = {
        expected.facts.torch[minor].cxx11(cuda)
        for minor in minors
        for cuda in ([label(facts, expected) or ""] if label(facts, expected) else expected.facts.torch[minor].cuda)
    }
    if variants and None not in variants and use.cxx11_abi not in variants:
        words = {True: "C++11", False: "pre-C++11"}
        have, other = words[use.cxx11_abi], words[not use.cxx11_abi]
        yield found("cxx11-abi", library.path, have=have, other=other, requires=requires)


def _floor(library: Library, use: Use, spec: SpecifierSet, requires: str, known: Facts) -> Iterator[Finding]:
    if use.floor is None or use.abi == "unstable":  # an unstable one is tied to its own release anyway
        return
    floor = Version(use.floor)
    minors, _ = admitted(spec, known)
    if any(Version(minor).release < floor.release[:2] for minor in minors):
        text = f"{floor.major}.{floor.minor}"
        what = listing(use.defining, limit=SHOWN) if use.defining else "the stable ABI's shims"
        yield found("torch-floor", library.path, floor=text, what=what, requires=requires)
