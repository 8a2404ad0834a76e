"""Rules of the platform: system versions, needed libraries, search paths, and how the library was linked."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from wheelmill import loading, platforms
from wheelmill.findings import Finding, found
from wheelmill.names import listing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelmill.elf import Library
    from wheelmill.findings import Severity
    from wheelmill.rules_plan import Expected
    from wheelmill.wheelfacts import WheelFacts

LINUX = re.compile(r"(?:(?:many|musl)linux[\w]*|linux)_(?P<machine>x86_64|i686|aarch64|armv7l|ppc64le|s390x|riscv64)")
GPU_CODE = frozenset({"cuda", "amdgpu"})


def musl(facts: WheelFacts) -> str | None:
    """The musl policy of the wheel's tag, such as `musllinux_1_2`."""
    match = next((re.match(r"musllinux_\d+_\d+", tag) for tag in facts.platforms if tag.startswith("musllinux")), None)
    return match[0] if match else None


def hosted(facts: WheelFacts) -> tuple[Library, ...]:
    """The shared libraries for a processor; files of GPU code are left out."""
    return tuple(library for library in facts.shared if library.machine not in GPU_CODE)


def needs(facts: WheelFacts) -> str | None:
    """The oldest platform that the wheel runs on, with torch's and CUDA's libraries another's to bring."""
    return platforms.tag(hosted(facts), musl(facts), platforms.is_external)


def promised(facts: WheelFacts) -> platforms.Policy | None:
    """The policy of the oldest systems that the filename's tags name; None without such a tag."""
    machine = next((library.machine for library in hosted(facts)), "x86_64")
    known = platforms.policies(machine, musl(facts))
    return next((row for row in known if {row.name, *row.aliases} & set(facts.platforms)), None)


def findings(facts: WheelFacts, expected: Expected) -> Iterator[Finding]:  # noqa: ARG001
    libraries = hosted(facts)
    policy = promised(facts)
    yield from _tags(facts, libraries, policy)
    mild = loading.alternatives(libraries)
    inside = platforms.inside(libraries)
    for library in libraries:
        if policy is not None:
            yield from _versions(facts, library, policy, mild=library.path in mild)
        yield from _needed(facts, library, policy, inside, mild=library.path in mild)
        yield from _paths(library)
        yield from _linking(library)
    yield from _cuda_libraries(facts, libraries, inside)


def _tags(facts: WheelFacts, libraries: tuple[Library, ...], policy: platforms.Policy | None) -> Iterator[Finding]:
    if not libraries or not facts.platforms:
        return
    first = libraries[0]
    if "any" in facts.platforms:
        yield found("platform-any", first.path, machine=first.machine)
        return
    strange = [tag for tag in facts.platforms if not LINUX.fullmatch(tag)]
    if strange:
        yield found("platform-unsupported", what=f"the tag is {listing(strange)}")
        return
    machines = {match["machine"] for tag in facts.platforms if (match := LINUX.fullmatch(tag))}
    for library in libraries:
        if library.machine not in machines:
            yield found("machine-mismatch", library.path, machine=library.machine, tag=listing(facts.platforms))
    if all(tag.startswith("linux_") for tag in facts.platforms):
        yield found("platform-linux", tag=facts.platforms[0], needs=needs(facts) or "a system that no policy names")
    elif policy is None and first.machine in machines:
        yield found("platform-unsupported", what=f"no policy is known for the tag {listing(facts.platforms)}")


def _versions(facts: WheelFacts, library: Library, policy: platforms.Policy, *, mild: bool) -> Iterator[Finding]:
    above = platforms.beyond(library, policy)
    if above:
        oldest = platforms.tag((library,), musl(facts), lambda _: True)
        yield found(
            "platform-tag",
            library.path,
            severity="warning" if mild else None,
            tag=listing(facts.platforms),
            promised=policy.name,
            what=listing(above, limit=6),
            needs=oldest if oldest and not oldest.startswith("linux_") else "of the systems that have these",
        )


def _needed(
    facts: WheelFacts, library: Library, policy: platforms.Policy | None, inside: frozenset[str], *, mild: bool
) -> Iterator[Finding]:
    if policy is None:  # a plain linux tag promises the libraries of the newest policy at most
        known = platforms.policies(library.machine, musl(facts))
        policy = known[-1] if known else None
    if policy is not None:
        names = platforms.unoffered(library, policy, inside)
        names = [name for name in names if not platforms.is_external(name) and not _grafted_name(name)]
        if names:
            tag = listing(facts.platforms) or "Linux"
            severity: Severity | None = "warning" if mild else None
            yield found("needed-missing", library.path, severity=severity, needed=listing(names), tag=tag)
    for name in library.versions:
        if name not in library.needed and not platforms.LOADER.fullmatch(name):
            yield found("version-needs", library.path, file=name, needed=listing(library.needed, limit=6))


def _grafted_name(name: str) -> bool:
    """Whether it is the renamed copy of torch's or CUDA's own, which another rule speaks of."""
    return platforms.original(name) != name and platforms.is_external(platforms.original(name))


def _cuda_libraries(facts: WheelFacts, libraries: tuple[Library, ...], inside: frozenset[str]) -> Iterator[Finding]:
    required = {requirement.name.lower() for requirement in facts.requirements}
    if any(name == "torch" or name.startswith(("nvidia-", "cuda-", "torch-")) for name in required):
        return
    mild = loading.alternatives(libraries)
    for library in libraries:
        if facts.uses[library.path].abi != "none" or library.path in mild or facts.name.project.startswith("nvidia"):
            continue  # that torch is not required is the greater fault
        names = [name for name in library.needed if platforms.matches(name, platforms.NVIDIA) and name not in inside]
        names = [name for name in names if not name.startswith(("libcuda.so", "libnvidia-"))]  # the driver's
        if names:
            yield found("cuda-unrequired", library.path, needed=listing(names, limit=4))


def _paths(library: Library) -> Iterator[Finding]:
    folder = posixpath.dirname(library.path)
    leaving = []
    for entry in dict.fromkeys(part for path in library.rpath for part in path.split(":")):
        inside = re.match(r"\$(ORIGIN|\{ORIGIN\})(?=/|$)", entry)
        if inside is None:
            if entry:
                leaving.append(entry)
        elif _climbs(posixpath.join(folder, entry[inside.end() :].lstrip("/"))):
            leaving.append(entry)
    if leaving:
        yield found("rpath-leaves", library.path, what=listing(leaving, limit=4))


def _climbs(path: str) -> bool:
    """Whether a path relative to site-packages leaves it; the `nvidia` and `torch` folders there do not."""
    return posixpath.normpath(path).startswith("..")


def _linking(library: Library) -> Iterator[Finding]:
    if library.exec_stack:
        yield found("exec-stack", library.path)
    if not library.relro:
        yield found("relro-missing", library.path)
    # A grafted library was built by somebody else.
    if library.build_paths and not library.path.partition("/")[0].endswith(".libs"):
        yield found("build-path", library.path, what=listing(library.build_paths, limit=3))


def unassisted(facts: WheelFacts) -> str | None:
    """The platform that auditwheel gives the wheel when nothing is left out."""
    return platforms.tag(hosted(facts), musl(facts), lambda _: False)
