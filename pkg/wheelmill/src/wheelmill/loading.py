"""Which libraries of a wheel load together, and which are alternatives of which one is loaded by name."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

# The word in a path that says which build it is: `libx_cuda118.so`, `cu12/_C.so`, `sm90/ops.so`, `_C_cpu.so`.
BACKEND = re.compile(
    r"(?<![a-z])(cuda|cu|rocm|hip|xpu|sycl|cpu|mps|vulkan|sm|gfx|avx|sse)[-_.]?\d*[a-f]?(_no[a-z]+)?(?![a-z0-9])"
)
NUMBER = re.compile(r"\d+")
# libcudart.so.11.0, libcublas.so.12, libnvrtc.so.11.2: libraries whose version is CUDA's.
OF_CUDA = re.compile(r"lib(?:cudart|cublas|cublasLt|nvrtc|nvJitLink|nvjpeg|cupti)\.so\.(\d+)(?:\.[\d.]+)?")


class Library(Protocol):
    """What this module asks of a library."""

    @property
    def path(self) -> str: ...
    @property
    def needed(self) -> tuple[str, ...]: ...


def alternatives(libraries: Sequence[Library]) -> frozenset[str]:
    """The paths of libraries that are builds of one thing for several backends, of which one is loaded by name.

    Two that differ by the word for a backend are; so are three or more that differ by a number. What a library
    outside the family needs is none.
    """
    families: defaultdict[str, list[Library]] = defaultdict(list)
    for library in libraries:
        key, count = BACKEND.subn("*", library.path.lower())
        families[key if count else NUMBER.sub("#", key)].append(library)
    members = {
        library.path: library
        for key, family in families.items()
        if len(family) >= (2 if "*" in key else 3)
        for library in family
    }
    outside = {name for library in libraries if library.path not in members for name in library.needed}
    return frozenset(path for path in members if path.rpartition("/")[2] not in outside)


def cuda_major(name: str) -> str | None:
    """The CUDA major that a needed library's name states, as `12`."""
    match = OF_CUDA.fullmatch(name)
    return match[1] if match else None
