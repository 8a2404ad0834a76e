"""The card, the processor and every version that a number depends on. Needs torch."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

import fusedops

SMI = {
    "clock_mhz": "clocks.sm",
    "clock_most_mhz": "clocks.max.sm",
    "memory_clock_mhz": "clocks.mem",
    "memory_clock_most_mhz": "clocks.max.mem",
    "temperature": "temperature.gpu",
    "watts": "power.draw",
    "watts_most": "power.limit",
}


def smi(*fields: str) -> list[str]:
    """What nvidia-smi says of the current device; nothing where there is none."""
    program = shutil.which("nvidia-smi")
    if program is None or not torch.cuda.is_available():
        return []
    index = str(torch.cuda.current_device())
    asked = [program, f"--id={index}", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    return [one.strip() for one in lines[0].split(",")] if done.returncode == 0 and lines else []


def gpu() -> bool:
    return bool(torch.cuda.is_available())


def clocks() -> dict[str, str]:
    """As nvidia-smi reads them now, in its words."""
    return dict(zip(SMI, smi(*SMI.values()), strict=False))


def release(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()


def described() -> dict[str, Any]:
    gpu: dict[str, Any] = {"card": None, "capability": None, "memory": None, "driver": None}
    if torch.cuda.is_available():
        gpu = {
            "card": torch.cuda.get_device_name(),
            "capability": "{}.{}".format(*torch.cuda.get_device_capability()),
            "memory": torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory,
            "driver": next(iter(smi("driver_version")), None),
        }
    return {
        **gpu,
        "cuda": torch.version.cuda,
        "torch": torch.__version__,
        "torchvision": release("torchvision"),
        "triton": release("triton"),
        "fusedops": release("fusedops"),
        "python": platform.python_version(),
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
    }


def wheel(path: Path) -> dict[str, Any]:
    """The wheel's file and hash, and how it was built where its manifest lies beside it.

    Exits where the library that is installed, and was measured, is not the wheel's.
    """
    said: dict[str, Any] = {"file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    library = "libfusedops.so"
    with zipfile.ZipFile(path) as archive:
        inside = archive.read(f"fusedops/{library}")
    if inside != Path(str(fusedops.__file__)).with_name(library).read_bytes():
        raise SystemExit(f"the fusedops that is installed is not {path}: install it, or name the wheel that is")
    manifest = path.with_name(f"{path.name}.manifest.json")
    if not manifest.exists():
        return said
    built = json.loads(manifest.read_text(encoding="utf-8"))
    if built["sha256"] != said["sha256"]:
        raise SystemExit(f"{manifest} describes another file than {path}: give the two that were built together")
    return {**said, "built": {name: built[name] for name in ("wheel", "key", "python", "torch", "toolkit", "sm")}}
