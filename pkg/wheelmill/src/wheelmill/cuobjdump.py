"""The second reader of device code: NVIDIA's cuobjdump, where it is at hand. Its failures are never an answer."""

from __future__ import annotations

import os
import re
import shutil
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wheelmill import proc
from wheelmill.fatbin import sm_order

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS, MEMORY = 60, 4 << 30
LINE = re.compile(r"(ELF|PTX) file +\d+: .*?\.?sm_(\d+[af]?)\.(?:cubin|elf|ptx)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """What cuobjdump said. Where it did not finish, `failure` says why, and its targets are no answer."""

    sass: tuple[str, ...] = ()
    ptx: tuple[str, ...] = ()
    failure: str | None = None


def _places() -> Iterator[Path]:
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(name):
            yield Path(os.environ[name]) / "bin"
    yield from map(Path, filter(None, os.environ.get("PATH", "").split(os.pathsep)))
    # Where NVIDIA's packages of the index put it.
    yield from sorted(Path(sysconfig.get_path("purelib")).glob("nvidia/*/bin"))
    yield Path("/usr/local/cuda/bin")


def find() -> Path | None:
    """The first cuobjdump of CUDA_HOME, PATH, and NVIDIA's packages beside this one."""
    for place in _places():
        found = shutil.which("cuobjdump", path=str(place))
        if found:
            return Path(found)
    return None


def read(tool: Path, library: Path) -> Reading:
    """List a library's device code, for a bounded time and in bounded memory."""
    arguments = [str(tool), "--list-elf", "--list-ptx", str(library)]
    try:
        status, output = proc.limited(arguments, seconds=SECONDS, memory=MEMORY)
    except OSError as error:
        return Reading(failure=f"it does not start: {error}")
    if status is None:
        return Reading(failure=f"it did not end within {SECONDS} s")
    found: dict[str, set[str]] = {"ELF": set(), "PTX": set()}
    for kind, target in LINE.findall(output):
        found[kind].add(target)
    sass, ptx = (tuple(sorted(found[kind], key=sm_order)) for kind in ("ELF", "PTX"))
    return Reading(sass=sass, ptx=ptx, failure=_failure(status, output))


def _failure(status: int, output: str) -> str | None:
    told = [line.strip() for line in output.splitlines() if re.search(r"\b(fatal|error)\b", line, re.IGNORECASE)]
    if told:
        return told[0]
    return f"it ended with status {status}" if status else None
