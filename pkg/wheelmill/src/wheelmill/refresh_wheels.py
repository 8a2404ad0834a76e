"""What a wheel of torch or of NVIDIA states of itself: parts of its bytes in, facts out. No I/O."""

from __future__ import annotations

import re
from email.parser import BytesParser
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from wheelmill import arch
from wheelmill.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

# The requirement of torch's wheel that names its CUDA, by release: nvidia-cuda-runtime-cu12==12.8.90 to 2.10,
# cuda-toolkit[...]==13.0.2 from 2.11 on.
NAMES_CUDA = re.compile(r"cuda-toolkit|nvidia-cuda-runtime(-cu\d+)?")
RELEASE = re.compile(r"(\d+)\.(\d+)(\.\d+)*")
HERE = {"platform_system": "Linux", "sys_platform": "linux", "platform_machine": "x86_64", "os_name": "posix"}
# torch.utils.cpp_extension: what it adds where an extension names no standard.
STANDARD = re.compile(rb"(?:cpp_flag_prefix \+ '|common_cflags \+= \['-std=)c\+\+(\d\d)'")
# A function of libc10 that takes a std::string, by the two mangled names that it can have.
NEW_ABI, OLD_ABI = b"torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_string", b"torchCheckFailEPKcS2_jRKSs"
TARGET = re.compile(rb"compute_(\d{1,2}\d[af]?)(?![0-9a-z_])")
GCC = re.compile(rb"^#if __GNUC__ > (\d+)\s*$", re.MULTILINE)


def _requirements(metadata: bytes, extra: str) -> Iterator[Requirement]:
    """What it requires on Linux x86_64 with that extra. Raises InputError where a requirement is none."""
    for text in BytesParser().parsebytes(metadata, headersonly=True).get_all("Requires-Dist", []):
        try:
            found = Requirement(str(text))
            wanted = found.marker is None or found.marker.evaluate({**HERE, "extra": extra})
        except ValueError as error:  # each of packaging's own errors is one
            raise InputError(f"its METADATA requires {str(text)[:200]!r}, which is no requirement") from error
        if wanted:
            yield found


def _pinned(requirement: Requirement) -> str | None:
    """The release that `==X` or `==X.*` pins."""
    found = [one for one in requirement.specifier if one.operator == "=="]
    text = found[0].version.removesuffix(".*") if len(found) == 1 else ""
    return text if RELEASE.fullmatch(text) else None


def pins(metadata: bytes, extra: str) -> dict[str, str]:
    """Each requirement that the extra pins, and its release."""
    found = {canonicalize_name(one.name): _pinned(one) for one in _requirements(metadata, extra)}
    return {name: release for name, release in found.items() if release is not None}


def extras(metadata: bytes) -> frozenset[str]:
    return frozenset(map(str, BytesParser().parsebytes(metadata, headersonly=True).get_all("Provides-Extra", [])))


def tag(release: str) -> str:
    """The CUDA tag of a release: `12.8.90` → `cu128`."""
    major, minor = release.split(".")[:2]
    return f"cu{major}{minor}"


def cuda(metadata: bytes) -> str | None:
    """The CUDA tag that torch's METADATA names; None where it names none, or more than one."""
    found = {tag(release) for name, release in pins(metadata, "").items() if NAMES_CUDA.fullmatch(name)}
    return found.pop() if len(found) == 1 else None


def standard(cpp_extension: bytes) -> int | None:
    """The C++ standard that torch.utils.cpp_extension compiles with; None where its text does not say one."""
    found = {int(one) for one in STANDARD.findall(cpp_extension)}
    return found.pop() if len(found) == 1 else None


def cxx11_abi(libc10: bytes) -> bool | None:
    """Whether libc10.so is of GCC's C++11 ABI; None where it is of neither or both."""
    new, old = NEW_ABI in libc10, OLD_ABI in libc10
    return new if new != old else None


def targets(ptxas: bytes) -> tuple[str, ...]:
    """The targets that a ptxas takes, in TORCH_CUDA_ARCH_LIST's words: the `compute_` names of its own help."""
    names = {found.decode() for found in TARGET.findall(ptxas)}
    words = {re.sub(r"^(\d+)(\d)([af]?)$", r"\1.\2\3", name) for name in names}
    return tuple(one.name for one in sorted(one for one in map(arch.parse, words) if one is not None))


def newest_gcc(host_config: bytes) -> int | None:
    """The newest host GCC that crt/host_config.h accepts; None where it states none, or more than one."""
    found = {int(one) for one in GCC.findall(host_config)}
    return found.pop() if len(found) == 1 else None
