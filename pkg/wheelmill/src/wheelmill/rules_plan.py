"""Rules of the plan and the policy: what the matrix asks of a wheel."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.requirements import Requirement

from wheelmill.findings import Finding, found
from wheelmill.names import listing
from wheelmill.rules_platform import hosted, musl, needs
from wheelmill.torch_use import SHIM

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelmill.elf import Library
    from wheelmill.facts import Facts
    from wheelmill.matrix import Policy
    from wheelmill.model import Wheel
    from wheelmill.wheelfacts import WheelFacts

# Libraries whose symbols the stable ABI's library may use beside torch's shims.
SYSTEM = re.compile(r"(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|libcudart|ld-linux-x86-64)\.so.*")
SHOWN = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Expected:
    """What wheels are held against: the tables, and where a matrix says so a wheel's plan and the policy."""

    facts: Facts
    wheel: Wheel | None = None
    policy: Policy | None = None


def findings(facts: WheelFacts, expected: Expected) -> Iterator[Finding]:
    if expected.wheel is not None:
        yield from _label(facts, expected.wheel)
        for library in hosted(facts):
            yield from _stable(library, expected.wheel)
    if expected.policy is not None:
        yield from _limits(facts, expected.policy)


def _label(facts: WheelFacts, wheel: Wheel) -> Iterator[Finding]:
    if facts.name.version is not None:
        local = facts.name.version.local or ""
        if local != wheel.local and not local.endswith(f".{wheel.local}"):
            yield found("local-version", name=facts.name.project, version=facts.name.version, label=wheel.local)
    torch = [one for one in facts.requirements if one.name.lower() == "torch" and one.marker is None]
    needed = set(Requirement(wheel.requires).specifier)
    if facts.metadata is not None and (len(torch) != 1 or not needed <= set(torch[0].specifier)):
        yield found("torch-requirement", requires=wheel.requires)
    abis = {abi for _, abi in facts.pairs}
    planned = {"none": abis == {"none"}, "abi3": abis == {"abi3"}, "version": not abis & {"none", "abi3"}}
    if abis and not planned[wheel.python_abi]:
        tag = listing(sorted(f"{interpreter}-{abi}" for interpreter, abi in facts.pairs), limit=4)
        stated = "per-version" if wheel.python_abi == "version" else wheel.python_abi
        yield found("plan-tag", tag=tag, planned=stated)


def _stable(library: Library, wheel: Wheel) -> Iterator[Finding]:
    if wheel.torch_abi != "stable" or library.path.partition("/")[0].endswith(".libs"):
        return
    foreign = sorted(
        symbol
        for symbol, version in library.undefined.items()
        if version is None and not SHIM.match(symbol) and not re.match(r"_?Py[A-Z_]", symbol)
    )
    foreign += [name for name in library.versions if not SYSTEM.fullmatch(name)]
    foreign += ["libtorch_python.so"] * ("libtorch_python.so" in library.needed and wheel.python_abi == "none")
    if foreign:
        yield found("unstable-torch-abi", library.path, what=f"{', '.join(foreign[:SHOWN])} ({len(foreign)} in all)")


def _limits(facts: WheelFacts, policy: Policy) -> Iterator[Finding]:
    floors = [tuple(map(int, one)) for tag in facts.platforms for one in re.findall(r"manylinux_(\d+)_(\d+)_", tag)]
    floors += [
        (2, {"1": 5, "2010": 12, "2014": 17}[one])
        for tag in facts.platforms
        for one in re.findall(r"manylinux(1|2010|2014)_", tag)
    ]
    limit = tuple(map(int, policy.glibc.split(".")))
    if hosted(facts) and not musl(facts) and (not floors or min(floors) > limit):
        stated = " or ".join(facts.platforms)
        yield found("glibc-policy", needs=stated or needs(facts) or "nothing known", policy=policy.glibc)
    unpacked = sum(member.size for member in facts.contents.members)
    for key, size, most in (("size", facts.size, policy.size), ("unpacked", unpacked, policy.unpacked)):
        if most is not None and size > most:
            yield found("size-policy", size=f"{size:,}", key=key, policy=f"{most:,}")
