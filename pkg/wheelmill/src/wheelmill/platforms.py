"""Which systems a wheel's libraries run on, by auditwheel's policies."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from wheelmill.repair import EXTERNAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from wheelmill.elf import Library

TORCH = ("libtorch*.so", "libc10*.so", "libshm.so", "libcaffe2*.so")
# NVIDIA's packages beside those that torch's repair leaves out.
NVIDIA: tuple[str, ...] = (
    *(name for name in EXTERNAL if not name.startswith(("libtorch", "libc10"))),
    *("libcuda.so", "libcuda.so.*", "libnvidia-*", "libnvshmem*", "libnvToolsExt*", "libcufile*", "libnpp*"),
    *("libnvjpeg*", "libnvvm*", "libnvcuvid*", "libnvinfer*", "libcupti*", "libcusparseLt*", "libcudss*"),
)
# AMD's and Intel's stacks, which a wheel for them finds where their own torch or driver put them.
OTHER_GPU: tuple[str, ...] = (
    "libamd*",
    "libhip*",
    "librocm*",
    "libroc*",
    "libhsa-*",
    "libMIOpen*",
    "libmiopen*",
    "librccl*",
)
OTHER_GPU += ("libsycl*", "libze_loader*", "libmkl_*", "libOpenCL*", "libumf*", "libur_*", "libdnnl*")
VERSION = re.compile(r"(GLIBC|GLIBCXX|CXXABI|GCC|LIBATOMIC)_(\d{1,6}(?:\.\d{1,6}){0,5})")
DOTTED = re.compile(r"\d{1,6}(?:\.\d{1,6}){0,5}")
LOADER = re.compile(r"ld-linux.*|ld64\.so\.[12]|ld-musl.*")
HASHED = re.compile(r"(?P<stem>lib.+?)[-.][0-9a-f]{6,}(?P<end>\.so(?:\.[\w.]+)?)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """One manylinux or musllinux policy. `versions` are the version names that its systems offer, by prefix."""

    name: str
    aliases: tuple[str, ...]
    versions: dict[str, frozenset[str]]
    libraries: frozenset[str]
    forbidden: dict[str, frozenset[str]]


@cache
def policies(machine: str, musl: str | None) -> tuple[Policy, ...]:
    """The policies of auditwheel for that machine, oldest systems first; empty for one that it does not know."""
    from auditwheel.architecture import Architecture
    from auditwheel.libc import Libc
    from auditwheel.policy import WheelPolicies

    try:
        arch = Architecture(machine)
        found: Any = WheelPolicies(libc=Libc.MUSL if musl else Libc.GLIBC, arch=arch, musl_policy=musl)
    except (ValueError, StopIteration):
        return ()
    rows = [
        Policy(
            name=row.name,
            aliases=tuple(row.aliases),
            versions={kind: frozenset(f"{kind}_{one}" for one in ones) for kind, ones in row.symbol_versions.items()},
            libraries=frozenset(row.whitelist),
            forbidden=dict(row.blacklist),
        )
        for row in found
        if not row.name.startswith("linux")
    ]
    return tuple(reversed(rows))


def matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def original(name: str) -> str:
    """The name that a library had before auditwheel gave it a hash: `libcudart-1a2b3c4d.so.12` → `libcudart.so.12`."""
    match = HASHED.fullmatch(name)
    return f"{match['stem']}{match['end']}" if match else name


@lru_cache(maxsize=1 << 16)
def is_external(name: str) -> bool:
    """Whether the user's torch, CUDA or other GPU stack brings that library."""
    return matches(name, (*TORCH, *NVIDIA, *OTHER_GPU))


def newest(library: Library, kind: str) -> str | None:
    """The highest version of that kind (GLIBC, GLIBCXX, …) that a library asks for."""
    found = {
        match[2]
        for names in library.versions.values()
        for name in names
        if (match := VERSION.fullmatch(name)) and match[1] == kind
    }
    return max(found, key=lambda text: tuple(map(int, text.split("."))), default=None)


def beyond(library: Library, policy: Policy) -> list[str]:
    """The versions that a library asks for and the systems of a policy do not offer."""
    asked = sorted({name for names in library.versions.values() for name in names})
    return [
        name
        for name in asked
        if (kind := name.partition("_")[0]) in policy.versions and name not in policy.versions[kind]
    ]


def unoffered(library: Library, policy: Policy, inside: frozenset[str]) -> list[str]:
    """The libraries that it needs, and neither the wheel nor the systems of a policy offer."""
    return [
        name
        for name in library.needed
        if name not in policy.libraries and name not in inside and not LOADER.fullmatch(name)
    ]


def inside(libraries: Sequence[Library]) -> frozenset[str]:
    """Every name under which the wheel's own libraries can be needed."""
    names = {library.path.rpartition("/")[2] for library in libraries}
    return frozenset(names | {library.soname for library in libraries if library.soname})


def tag(libraries: Sequence[Library], musl: str | None, external: Callable[[str], bool]) -> str | None:
    """The oldest platform that all libraries run on, `linux_<machine>` where no policy holds.

    What `external` names is another's to bring. None for libraries of machines that auditwheel does not know,
    or of several.
    """
    machines = {library.machine for library in libraries}
    if len(machines) != 1:
        return None
    (machine,) = machines
    known = policies(machine, musl)
    own = inside(libraries)
    for policy in known:
        if not any(
            beyond(library, policy)
            or [name for name in unoffered(library, policy, own) if not external(name)]
            or _forbidden(library, policy)
            for library in libraries
        ):
            return policy.name
    return f"linux_{machine}" if known else None


def _forbidden(library: Library, policy: Policy) -> bool:
    """Whether it uses private symbols of a system library, which a policy's systems need not share."""
    return any(
        name in library.needed and not symbols.isdisjoint(library.undefined)
        for name, symbols in policy.forbidden.items()
    )
