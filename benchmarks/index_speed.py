"""Writing the index of many wheels in full, and adding one, beside other writers of static indexes in the same run.

python benchmarks/index_speed.py [--wheels 50000] [--json evidence/index.json] [--work FOLDER]

The wheels are small and real: METADATA, WHEEL and RECORD hold, and each has a manifest, an audit and a cover report
beside it, as `wheelmill build` leaves them. They are spread as a house's are: half of the projects build a wheel for
each torch and Python, the others one for a CUDA on torch's stable ABI, which six torch minors list; fifty wheels a
release, twenty-five releases a project. The other writers run in an environment that this script makes.

Every command is a whole process; its seconds are told by the clock and by the processor, which other work on the
machine does not change. What this one writes by adding is compared with a full write, byte by byte. Exits 1 where they
differ, or where adding is not --times faster.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import json
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from uv import find_uv_bin

from wheelmill import __version__
from wheelmill.store import write_json

if TYPE_CHECKING:
    from collections.abc import Iterator

OTHERS = ("dumb-pypi==1.15.0", "simple-repository-generator==0.2.1", "simple-repository==0.11.1")
PYTHONS = ("310", "311", "312", "313", "314")
PAIRS = tuple(
    f"{cuda}-torch2.{minor}"
    for cuda, minors in {"cpu": (4, 6, 8), "cu124": (4, 6), "cu126": (6, 8, 9), "cu128": (8, 9)}.items()
    for minor in minors
)
STABLE, MINORS = ("cpu", "cu126", "cu128", "cu130", "cu132"), range(10, 16)
MACHINES = ("x86_64", "aarch64")
RELEASE, RELEASES = 50, 25


@dataclass(frozen=True)
class Wheel:
    """A wheel to make: its file's name and the environments that list it."""

    project: str
    version: str
    tag: str
    environments: tuple[str, ...]

    @property
    def file(self) -> str:
        return f"{self.project}-{self.version}-{self.tag}.whl"


def release(number: int, version: str) -> Iterator[Wheel]:
    """The fifty wheels of a release."""
    project = f"house{number:03}"
    if number % 2:
        for pair in PAIRS:
            local = pair.replace("-", ".")
            for python in PYTHONS:
                tag = f"cp{python}-cp{python}-manylinux_2_28_x86_64"
                yield Wheel(project, f"{version}+{local}", tag, (pair,))
        return
    for cuda in STABLE:
        environments = tuple(f"{cuda}-torch2.{minor}" for minor in MINORS)
        for python in PYTHONS:
            for machine in MACHINES:
                tag = f"cp{python}-cp{python}-manylinux_2_28_{machine}"
                yield Wheel(project, f"{version}+{cuda}", tag, environments)


def house(count: int) -> Iterator[Wheel]:
    for number in range(-(-count // (RELEASE * RELEASES))):
        for minor in range(RELEASES):
            yield from release(number, f"1.{minor}.0")


def packed(wheel: Wheel) -> bytes:
    info = f"{wheel.project}-{wheel.version}.dist-info"
    torch = wheel.environments[0].rpartition("torch")[2]
    metadata = (
        f"Metadata-Version: 2.1\nName: {wheel.project}\nVersion: {wheel.version}\nSummary: A house's extension\n"
        f"Requires-Python: >=3.10\nRequires-Dist: torch>={torch}\nRequires-Dist: numpy\n\nText\n"
    )
    members = {
        f"{wheel.project}/__init__.py": f"version = {wheel.version!r}\n",
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: bench\nRoot-Is-Purelib: false\nTag: {wheel.tag}\n",
    }
    rows = []
    for name, text in members.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(text)}")
    members[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,"]) + "\n"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in members.items():
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), text)
    return out.getvalue()


def make(dist: Path, wheel: Wheel) -> None:
    """A wheel and what `wheelmill build` leaves beside it."""
    content = packed(wheel)
    sha256 = hashlib.sha256(content).hexdigest()
    cuda = wheel.environments[0].partition("-")[0]
    minor = None if cuda == "cpu" else f"{cuda[2:-1]}.{cuda[-1]}"
    (dist / wheel.file).write_bytes(content)
    cells = [
        {"cuda": cuda, "torch": name.rpartition("torch")[2], "python": "3.12", "unclaimed": None, "result": "pass"}
        for name in wheel.environments
    ]
    library = {"sass": ["80", "90", "100"], "ptx": ["100"], "needed": ["libtorch_cpu.so"], "glibc": "2.17"}
    libraries = {f"{wheel.project}/_C.so": {**library, "torch_abi": "stable", "min_torch": "2.10"}}
    reports = {
        "manifest": {
            "version": 1,
            "wheel": wheel.environments[0],
            "environments": wheel.environments,
            "proof": {"sha256": sha256},
            "engine": __version__,
            "executor": "docker",
            "built": "2026-01-01T00:00:00+00:00",
            "cuda": cuda,
            "toolkit": {"version": minor} if minor else None,
            "sm": ["8.0", "9.0", "10.0+PTX"],
        },
        "cover": {"version": 1, "cells": cells},
        "audit": {"version": 1, "verdict": "pass", "libraries": libraries, "findings": []},
    }
    for name, value in reports.items():
        text = json.dumps({**value, "file": wheel.file, "sha256": sha256})
        (dist / f"{wheel.file}.{name}.json").write_text(text)


@dataclass(frozen=True)
class Spent:
    """Seconds of a whole process, by the clock and by the processor."""

    clock: float
    processor: float


def timed(command: list[str | Path]) -> Spent:
    os.sync()
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    clock, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Spent(clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def mill(*arguments: str | Path) -> list[str | Path]:
    return [sys.executable, "-m", "wheelmill", "index", *arguments]


def differing(one: Path, other: Path) -> list[str]:
    """Files that two sites do not have with the same bytes."""
    names = [
        {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file() and path.name[0] != "."}
        for site in (one, other)
    ]
    both = names[0] & names[1]
    return sorted(
        (names[0] ^ names[1]) | {name for name in both if (one / name).read_bytes() != (other / name).read_bytes()}
    )


def package_list(dist: Path, path: Path) -> None:
    """What dumb-pypi reads in place of the wheels."""
    rows = []
    for wheel in sorted(dist.glob("*.whl")):
        row = {"filename": wheel.name, "hash": f"sha256={hashlib.sha256(wheel.read_bytes()).hexdigest()}"}
        rows.append(json.dumps({**row, "requires_python": ">=3.10", "upload_timestamp": 1767225600}))
    path.write_text("\n".join(rows) + "\n")


def own(work: Path, dist: Path, extra: tuple[Wheel, Wheel]) -> tuple[dict[str, Spent], list[str]]:
    """This writer: in full, one wheel more in the folder, one wheel from another folder; and what differs then."""
    site, fresh, single = work / "site", work / "fresh", work / "single"
    timed(mill("--help"))  # compiles the modules, once
    seconds = {"full": timed(mill(dist, "--out", site))}
    seconds["nothing new"] = timed(mill(dist, "--out", site))
    make(dist, extra[0])
    seconds["one more in DIST"] = timed(mill(dist, "--out", site))
    single.mkdir()
    make(single, extra[1])
    seconds["--add one"] = timed(mill(single, "--add", "--out", site))
    make(dist, extra[1])
    seconds["full again, into an empty folder"] = timed(mill(dist, "--out", fresh))
    return seconds, differing(site, fresh)


def others(work: Path, dist: Path, extra: Wheel) -> dict[str, Spent]:
    """The other writers: dumb-pypi from a list, and simple-repository-generator with the files copied."""
    python = work / "others" / "bin" / "python"
    uv = find_uv_bin()
    subprocess.run([uv, "venv", "-q", str(work / "others")], check=True)
    subprocess.run([uv, "pip", "install", "-q", "--python", str(python), *OTHERS], check=True)
    before, after = work / "before.json", work / "after.json"
    seconds = {}
    package_list(dist, before)
    base = [python, "-m", "dumb_pypi.main", "--packages-url", "../../files", "--output-dir", work / "dumb"]
    seconds["dumb-pypi, full, pages alone"] = timed([*base, "--package-list-json", before])
    make(dist, extra)
    package_list(dist, after)
    base += ["--previous-package-list-json", before]
    seconds["dumb-pypi, one more, pages alone"] = timed([*base, "--package-list-json", after])
    command = [python, "-m", "simple_repository_generator", dist, "--copy", "--output", work / "generator"]
    seconds["simple-repository-generator --copy, full"] = timed(command)
    return seconds


def rows(spent: dict[str, Spent], full: Spent) -> dict[str, dict[str, float]]:
    """Each command's seconds, and how many times faster than this one's full write it is."""
    return {
        name: {
            "seconds": round(one.clock, 3),
            "processor_seconds": round(one.processor, 3),
            "times_faster": round(full.clock / one.clock, 1),
            "times_less_processor": round(full.processor / one.processor, 1),
        }
        for name, one in spent.items()
    }


def report(
    ours: dict[str, Spent], theirs: dict[str, Spent], differs: list[str], wheels: list[Wheel]
) -> dict[str, object]:
    return {
        "version": 1,
        "date": time.strftime("%Y-%m-%d"),
        "engine": __version__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load": [round(one, 1) for one in os.getloadavg()],
        "wheels": len(wheels),
        "projects": len({wheel.project for wheel in wheels}),
        "releases": len({(wheel.project, re.sub(r"\+.*", "", wheel.version)) for wheel in wheels}),
        "environments": len({name for wheel in wheels for name in wheel.environments}),
        "wheelmill": rows(ours, ours["full"]),
        "identical": not differs,
        "others": {"versions": OTHERS, **rows(theirs, ours["full"])},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheels", type=int, default=50_000)
    parser.add_argument("--times", type=float, default=100, help="how many times faster adding must be")
    parser.add_argument("--json", type=Path, help="also write the result there")
    parser.add_argument("--work", type=Path, help="an empty folder for wheels and sites; default: a temporary one")
    arguments = parser.parse_args()
    work = arguments.work or Path(tempfile.mkdtemp(prefix="index-speed-"))
    dist = work / "dist"
    dist.mkdir(parents=True)
    try:
        wheels = list(house(arguments.wheels))
        for wheel in wheels:
            make(dist, wheel)
        last = [*release(0, "1.99.0")]
        ours, differs = own(work, dist, (last[0], last[11]))
        theirs = others(work, dist, last[12])
    finally:
        if arguments.work is None:
            shutil.rmtree(work)
    made = report(ours, theirs, differs, wheels)
    print(f"{'':44} {'seconds':>9} {'of it CPU':>9} {'x faster':>9} {'x less CPU':>11}")
    for name, row in rows({**ours, **theirs}, ours["full"]).items():
        print(f"{name:44} " + " ".join(f"{value:9.2f}" for value in row.values()))
    print(f"differing after adding: {len(differs)} {differs[:3]}")
    if arguments.json:
        write_json(arguments.json, made)
    least = ours["full"].processor / ours["--add one"].processor
    return 0 if not differs and least >= arguments.times else 1


if __name__ == "__main__":
    sys.exit(main())
