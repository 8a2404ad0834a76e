"""Seconds of building every operator from nothing for some GPU targets, and what a change to one kernel compiles again.

    python benchmarks/cold_build.py [--targets 8.0 9.0] [--out evidence/cold_build.json]

From the repository's root, in an environment with torch, cmake and ninja, and an nvcc on PATH. Exits with 1 where a
change to one file of kernels would compile another number of units than one.
"""

from __future__ import annotations

import argparse
import datetime as dt
import importlib.util
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCES = ("csrc", "CMakeLists.txt", "LICENSE")


def torch_folder() -> Path:
    """Where the torch of this environment is, which is not imported."""
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        raise SystemExit("torch is not installed here: pip install torch, of the release to build for")
    return Path(found.origin).parent


def tool(name: str) -> str:
    """The program of that name."""
    found = shutil.which(name)
    if found is None:
        raise SystemExit(f"{name} is not on PATH, and a build needs it")
    return found


def cpu_seconds() -> float:
    """Of all child processes so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def compiled_again(tree: Path, out: Path) -> dict[str, list[str]]:
    """Each file of kernels, and the units that a change to it compiles: those that read it, as their compilers said."""
    said = subprocess.run([tool("ninja"), "-C", str(out), "-t", "deps"], check=True, capture_output=True, text=True)
    read: dict[str, set[Path]] = {}
    for unit in said.stdout.split("\n\n"):
        first, _, files = unit.partition("\n")
        read[first.partition(": #deps")[0]] = {(out / line.strip()).resolve() for line in files.splitlines()}
    kernels = sorted([*tree.glob("csrc/*/*_cuda.cu"), *tree.glob("csrc/*/*_cpu.cpp")])
    return {
        str(kernel.relative_to(tree)): [name for name, files in read.items() if kernel.resolve() in files]
        for kernel in kernels
    }


def measure(work: Path, targets: list[str], jobs: int) -> dict[str, Any]:
    """A build in an empty folder, then the changes."""
    tree, out = work / "tree", work / "build"
    tree.mkdir()
    for name in SOURCES:
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy2)(ROOT / name, tree / name)
    architectures = ";".join(f"{target.replace('.', '')}-real" for target in targets)
    wanted = [f"-DTorch_ROOT={torch_folder()}", f"-DCMAKE_CUDA_ARCHITECTURES={architectures}"]
    begun, used, load = time.perf_counter(), cpu_seconds(), os.getloadavg()[0]
    configure = [tool("cmake"), "-S", str(tree), "-B", str(out), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", *wanted]
    subprocess.run(configure, check=True, env={**os.environ, "FORCE_CUDA": "1"}, stdout=subprocess.DEVNULL)
    subprocess.run([tool("ninja"), "-C", str(out), f"-j{jobs}"], check=True, stdout=subprocess.DEVNULL)
    built = {"seconds": round(time.perf_counter() - begun, 1), "cpu_seconds": round(cpu_seconds() - used, 1)}
    nvcc = subprocess.run([tool("nvcc"), "--version"], check=True, capture_output=True, text=True).stdout
    (release,) = re.findall(r"release ([\d.]+)", nvcc)
    return {
        "version": 1,
        "benchmark": "cold_build",
        "date": dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds"),
        "machine": {"cores": os.cpu_count(), "load_before": round(load, 2), "jobs": jobs, "cuda": release},
        "targets": targets,
        "built": built,
        "compiled_again": compiled_again(tree, out),
    }


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--targets", nargs="+", default=["8.0", "9.0"], help="default: 8.0 9.0, with 9.0a beside it")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        report = measure(Path(work), options.targets, options.jobs)
    text = json.dumps(report, indent=1) + "\n"
    if options.out:
        options.out.write_text(text)
    print(text, end="")
    more = {kernel: units for kernel, units in report["compiled_again"].items() if len(units) != 1}
    for kernel, units in more.items():
        print(f"a change to {kernel} compiles {len(units)} units again: {', '.join(units)}", file=sys.stderr)
    return int(bool(more))


if __name__ == "__main__":
    sys.exit(main())
