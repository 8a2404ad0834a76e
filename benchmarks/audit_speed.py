"""The audit's time and memory on a wheel, beside auditwheel and cuobjdump on the same file in the same run.

python benchmarks/audit_speed.py WHEEL [--cuobjdump PATH] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path

from wheelmill import cuobjdump

ROUNDS = 3


@dataclass(frozen=True)
class Measured:
    """The best of ROUNDS, in seconds, and the largest process, in MB."""

    name: str
    seconds: float
    megabytes: int


def children(commands: list[list[str]], environment: dict[str, str]) -> tuple[float, int]:
    """(seconds, largest child in MB) of commands that run one after another in a process of their own."""
    read, write = os.pipe()
    process = os.fork()
    if process == 0:
        started = time.monotonic()
        for command in commands:
            subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, env=environment)
        seconds = time.monotonic() - started
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
        os.write(write, json.dumps([seconds, peak]).encode())
        os._exit(0)
    os.close(write)
    os.waitpid(process, 0)
    with os.fdopen(read) as pipe:
        seconds, peak = json.load(pipe)
    return float(seconds), int(peak)


Work = tuple[list[list[str]], dict[str, str]]


def measure(works: dict[str, Work]) -> list[Measured]:
    """Each in turn, ROUNDS times over, so that whatever else the machine does meets all alike."""
    runs: dict[str, list[tuple[float, int]]] = {name: [] for name in works}
    for _ in range(ROUNDS):
        for name, work in works.items():
            runs[name].append(children(*work))
    return [
        Measured(name, round(min(seconds for seconds, _ in found), 2), max(peak for _, peak in found))
        for name, found in runs.items()
    ]


def unpacked(wheel: Path, folder: Path) -> list[Path]:
    """The shared libraries of a wheel that is trusted, in `folder`."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".so" in Path(name).name]
        return [Path(archive.extract(name, folder)) for name in names]


def rows(wheel: Path, tool: Path | None, folder: Path) -> list[Measured]:
    audit = [sys.executable, "-m", "wheelmill", "audit", "--json", str(wheel)]
    show = [sys.executable, "-m", "auditwheel", "show", str(wheel)]
    alone = {**os.environ, "PATH": os.defpath, "CUDA_HOME": "", "CUDA_PATH": ""}
    works: dict[str, Work] = {"wheelmill audit": ([audit], alone), "auditwheel show": ([show], dict(os.environ))}
    if tool is not None:
        beside = {**os.environ, "CUDA_HOME": str(tool.parent.parent)}
        lists = [[str(tool), "--list-elf", str(library)] for library in unpacked(wheel, folder)]
        works["wheelmill audit, cuobjdump at hand"] = ([audit], beside)
        works["auditwheel show, then cuobjdump --list-elf"] = ([show, *lists], dict(os.environ))
    return measure(works)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--cuobjdump", type=Path, default=cuobjdump.find())
    parser.add_argument("--json", type=Path, dest="out")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measured = rows(given.wheel, given.cuobjdump, Path(folder))
    print(f"{given.wheel.name}: {given.wheel.stat().st_size / 1e6:.0f} MB, the best of {ROUNDS}\n")
    print("| | seconds | MB |\n|---|---|---|")
    for row in measured:
        print(f"| {row.name} | {row.seconds} | {row.megabytes} |")
    if given.out:
        given.out.write_text(json.dumps({"version": 1, "rows": [asdict(row) for row in measured]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
