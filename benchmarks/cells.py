"""CPU-seconds of four cells built one by one the usual way, beside those of the one wheel that serves them all.

    python benchmarks/cells.py --out evidence/cells.json [--store DIR]

The cells are CUDA 13.0 with torch 2.11 and 2.13 on Python 3.11 and 3.12. `usual/` holds the same operators as an
ordinary extension: setup.py, CUDAExtension, torch/extension.h. It is built in each cell's own environment by
`pip wheel --no-build-isolation`, each time from a clean copy. fusedops is built by `wheelmill build`, before each of
those, from a store without any wheel. Both compile with the same CUDA toolkit and host compiler, for the same GPU
targets, with as many jobs.

A number is the user and system CPU-seconds of the command's whole process tree. Downloads, environments and toolkits
are there before, for both. Of fusedops' builds the dearest counts. Every wheel is then loaded in its cell, fusedops'
in all four, and computes all samples of fusedops.testing on the CPU; its GPU targets are read from its bytes.

Needs the engine installed, a host compiler, and Pythons 3.11 and 3.12 with their headers, where uv finds them. Writes
a JSON report and exits 1 when the ratio is under 10, a value is wrong or the GPU targets differ.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import json
import os
import platform
import re
import resource
import shutil
import sys
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wheelmill import check, facts, fetch, matrix, plan, proc, toolkit
from wheelmill.local import FLAGS
from wheelmill.store import Store, digest, file_sha256, write_json

if TYPE_CHECKING:
    from wheelmill.facts import Facts
    from wheelmill.model import Cell, Step
    from wheelmill.toolkit import Compiler, Toolkit

ROOT = Path(__file__).resolve().parent.parent
USUAL = ROOT / "benchmarks" / "usual"
WHEEL = "cu130-stable2.10"
TORCHES = ("2.11", "2.13")
PYTHONS = ("3.11", "3.12")
LIMIT = 10.0
TOOLS = ("numpy", "ninja", "pip", "setuptools", "wheel")
PARTS = ("compile", "repair", "label", "check")
# What a build finds ready in its store, as a cell's environment is ready for the usual way.
READY = ("envs", "resolutions", "toolkits", "torch")
# Of the caller's environment, what would change how much is done.
DROPPED = {*FLAGS, "PYTHONDONTWRITEBYTECODE", "PYTHONPATH"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Environment:
    """A cell's virtual environment, with the versions of torch and of the build tools in it."""

    cell: Cell
    python: Path
    versions: dict[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Bench:
    """What all builds of one run share. `work` is a folder for everything that is thrown away."""

    store: Store
    work: Path
    log: Path
    step: Step
    kit: Toolkit
    compiler: Compiler
    jobs: str


def measure(bench: Bench, args: list[str], *, env: dict[str, str], cwd: Path) -> dict[str, float]:
    """Run a command; CPU-seconds of its process tree, seconds, and how busy the machine was at the start."""
    load = os.getloadavg()[0]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    proc.run(args, log=bench.log, cwd=cwd, env=env)
    seconds, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"cpu_seconds": round(used, 2), "seconds": round(seconds, 2), "load_before": round(load, 2)}


def environment(store: Store, known: Facts, cell: Cell, log: Path) -> Environment:
    """The cell's environment, made unless it is in the store: torch from PyPI, and what setup.py needs."""
    wanted = [f"torch=={known.torch[cell.torch].release}", *TOOLS]
    pins = fetch.resolve(store, wanted, python=cell.python, log=log)

    def make(folder: Path) -> None:
        python = fetch.venv(folder / "env", python=cell.python, log=log)
        fetch.install(store, pins, into=python, log=log)
        # As pip does it; else imports of torch would do it on the clock. It fails for files of newer Pythons' syntax.
        with contextlib.suppress(proc.ProcessError):
            proc.run([str(python), "-m", "compileall", "-q", "-j", "0", str(folder / "env" / "lib")], log=log)

    folder = store.entry("envs", digest(["usual", cell.python, pins]), make)
    versions = {name: fetch.pinned(pins, name) for name in ("torch", *TOOLS)}
    return Environment(cell=cell, python=folder / "env" / "bin" / "python", versions=versions)


def caller_environ(bench: Bench) -> dict[str, str]:
    """The caller's environment without what would change the work, and with the jobs set."""
    return {**{name: os.environ[name] for name in os.environ.keys() - DROPPED}, "MAX_JOBS": bench.jobs}


def usual_environ(bench: Bench, where: Environment) -> dict[str, str]:
    """What somebody sets who builds an extension by hand for this toolkit and these targets."""
    environ = caller_environ(bench)
    path = [str(where.python.parent), str(bench.kit.home / "bin"), environ.get("PATH", os.defpath)]
    return {
        **environ,
        "PATH": os.pathsep.join(path),
        "CC": bench.compiler.cc,
        "CXX": bench.compiler.cxx,
        "CUDA_HOME": str(bench.kit.home),
        "TORCH_CUDA_ARCH_LIST": ";".join(bench.step.wheel.sm),
    }


def build_usual(bench: Bench, where: Environment) -> tuple[Path, dict[str, float]]:
    """Build `usual/` for one cell from a clean copy: the wheel and what it took."""
    folder = bench.work / where.cell.id
    shutil.copytree(USUAL, folder / "source", ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    pip = [str(where.python), "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index"]
    args = [*pip, "--no-cache-dir", "--wheel-dir", str(folder / "dist"), str(folder / "source")]
    used = measure(bench, args, env=usual_environ(bench, where), cwd=folder)
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel, used


def build_ours(
    bench: Bench, name: str, *, store: Path | None = None, prove: bool = False
) -> tuple[Path, dict[str, Any]]:
    """`wheelmill build` in a store that has no wheel, unless one is given: the wheel, and what it took by part."""
    folder = bench.work / name
    folder.mkdir()
    if store is None:
        store = folder / "store"
        store.mkdir()
        for kind in READY:
            (store / kind).symlink_to(bench.store.root / kind)
    args = [sys.executable, "-m", "wheelmill", "build", WHEEL, "--matrix", str(ROOT / "matrix.yaml")]
    args += ["--store", str(store), "--out", str(folder / "dist"), "--site", str(folder / "site")]
    args += ["--toolkit", "pypi", "--prove" if prove else "--no-prove"]
    used = measure(bench, args, env=caller_environ(bench), cwd=folder)
    (wheel,) = (folder / "dist").glob("*.whl")
    manifest = json.loads(wheel.with_name(wheel.name + ".manifest.json").read_text())
    parts = {part: times["cpu_seconds"] for part, times in manifest["parts"].items()}
    return wheel, {**used, "parts": parts, "sha256": manifest["sha256"]}


def try_out(bench: Bench, wheel: Path, where: Environment, module: str, *options: str) -> dict[str, Any]:
    """Install a wheel beside its cell's torch and compute with it: usual/check.py's result."""
    folder = bench.work / f"try-{module}-{where.cell.id}"
    site, result = folder / "site", folder / "result.json"
    environ = {**caller_environ(bench), "PYTHONPATH": str(site)}
    pip = [str(where.python), "-m", "pip", "install", "--no-deps", "--no-index", "--target", str(site)]
    proc.run([*pip, str(wheel)], log=bench.log, env=caller_environ(bench))
    # -P: else the source folder beside check.py would be imported in place of the wheel.
    args = [str(where.python), "-P", str(USUAL / "check.py"), module, module, str(result), *options]
    try:
        proc.run(args, log=bench.log, env=environ, cwd=folder)
    except proc.ProcessError:
        if not result.exists():
            raise
    return {"cell": where.cell.id, **json.loads(result.read_text())}


def describe(bench: Bench, wheel: Path) -> dict[str, Any]:
    """A wheel's name, digest, size and GPU targets."""
    libraries = check.libraries(wheel, bench.work / "unpacked" / wheel.parent.parent.name)
    return {
        "file": wheel.name,
        "sha256": file_sha256(wheel),
        "bytes": wheel.stat().st_size,
        "sass": sorted({target for library in libraries for target in library.sass}, key=int),
        "ptx": sorted({target for library in libraries for target in library.ptx}, key=int),
    }


def compare(bench: Bench, environments: list[Environment]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(usual, ours): a build of ours before each of the usual ones, so that both meet the same machine."""
    rows, builds = [], []
    samples = ("--samples", str(ROOT / "pkg" / "fusedops"))
    for where in environments:
        ours, used = build_ours(bench, f"before-{where.cell.id}")
        builds.append(used)
        wheel, used = build_usual(bench, where)
        row = {"cell": where.cell.id, "versions": where.versions, **used, "wheel": describe(bench, wheel)}
        rows.append({**row, "checked": try_out(bench, wheel, where, "usual", *samples)})
        print(f"{where.cell.id}: ours {builds[-1]['cpu_seconds']}, usual {used['cpu_seconds']}", flush=True)
    _, proven = build_ours(bench, "proven", prove=True)
    dearest = max(builds, key=lambda build: build["cpu_seconds"])
    usual = {"cpu_seconds": round(sum(row["cpu_seconds"] for row in rows), 2), "cells": rows}
    return usual, {
        "cpu_seconds": dearest["cpu_seconds"],
        "cpu_seconds_of_parts": round(sum(dearest["parts"][part] for part in PARTS), 2),
        "cpu_seconds_with_proof": proven["cpu_seconds"],
        "builds": builds,
        "build_with_proof": proven,
        "wheel": describe(bench, ours),
        "checked": [try_out(bench, ours, where, "fusedops") for where in environments],
    }


def prepare(store: Store, work: Path, jobs: str) -> tuple[Bench, list[Environment]]:
    """Fetch and make everything that is not to be counted."""
    wanted = matrix.load(ROOT / "matrix.yaml")
    known = facts.load(wanted.facts)
    (step,) = plan.make(wanted, known, (WHEEL,)).steps
    log = store.log("cells")
    cuda = known.cuda[step.wheel.cuda]
    kit = toolkit.pypi(store, cuda, log)
    compiler = toolkit.compiler(cuda.gcc)
    bench = Bench(store=store, work=work, log=log, step=step, kit=kit, compiler=compiler, jobs=jobs)
    print(f"preparing; the log is {log}", flush=True)
    cells = [cell for cell in step.wheel.cells if cell.torch in TORCHES and cell.python in PYTHONS]
    environments = [environment(store, known, cell, log) for cell in cells]
    build_ours(bench, "prepare", store=store.root)
    return bench, environments


def machine(jobs: str) -> dict[str, Any]:
    """The processor, and how many compilers ran at once."""
    models = re.findall(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text())
    return {"cpu": models[0] if models else platform.processor(), "cores": os.cpu_count(), "max_jobs": jobs}


def report(bench: Bench, usual: dict[str, Any], ours: dict[str, Any]) -> dict[str, Any]:
    """The whole report, with the verdict."""
    wheels = [ours["wheel"], *(row["wheel"] for row in usual["cells"])]
    checks = [*ours["checked"], *(row["checked"] for row in usual["cells"])]
    same = all((wheel["sass"], wheel["ptx"]) == (wheels[0]["sass"], wheels[0]["ptx"]) for wheel in wheels)
    right = all(one["error"] is None for one in checks)
    ratio = usual["cpu_seconds"] / ours["cpu_seconds"]
    nvcc = proc.capture([str(bench.kit.nvcc), "--version"])
    return {
        "version": 1,
        "benchmark": "cells",
        "date": dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds"),
        "machine": machine(bench.jobs),
        "versions": {
            "engine": version("wheelmill"),
            "engine_python": platform.python_version(),
            "cuda": bench.kit.version,
            "nvcc": nvcc.strip().splitlines()[-1],
            "compiler": proc.capture([bench.compiler.cxx, "--version"]).splitlines()[0],
        },
        "sm": list(bench.step.wheel.sm),
        "counted": "user and system CPU-seconds of the whole process tree of `pip wheel` and of `wheelmill build "
        "--no-prove`; of the latter's runs the dearest",
        "usual": usual,
        "ours": ours,
        "limit": LIMIT,
        "ratio": round(ratio, 1),
        "ratio_of_parts": round(usual["cpu_seconds"] / ours["cpu_seconds_of_parts"], 1),
        "ratio_with_proof": round(usual["cpu_seconds"] / ours["cpu_seconds_with_proof"], 1),
        "same_targets": same,
        "values_right": right,
        "fine": same and right and ratio >= LIMIT,
    }


def table(made: dict[str, Any]) -> str:
    """The report in a few lines."""
    usual, ours = made["usual"], made["ours"]
    lines = [f"{'CPU-seconds':>38}"]
    lines += [f"{row['cell']:26} {row['cpu_seconds']:11.1f}" for row in usual["cells"]]
    lines.append(f"{'the usual way, 4 wheels':26} {usual['cpu_seconds']:11.1f}")
    parts = ", ".join(f"{part} {max(b['parts'][part] for b in ours['builds']):.1f}" for part in PARTS)
    lines.append(f"{WHEEL + ', 1 wheel':26} {ours['cpu_seconds']:11.1f}  ({parts})")
    lines.append(f"{'ratio':26} {made['ratio']:11.1f}  (with the proof {made['ratio_with_proof']})")
    wrong = [one["error"] for one in (*ours["checked"], *(row["checked"] for row in usual["cells"]))]
    lines += [f"wrong: {error}" for error in wrong if error]
    if not made["same_targets"]:
        lines.append("the wheels hold different GPU targets, so the work was not the same")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="where the JSON report goes")
    parser.add_argument("--store", type=Path, default=ROOT / ".wheelmill", help="keeps what was fetched")
    options = parser.parse_args()
    store = Store(options.store)
    jobs = str(len(os.sched_getaffinity(0)))
    with store.work("cells") as work:
        bench, environments = prepare(store, work, jobs)
        made = report(bench, *compare(bench, environments))
    write_json(options.out, made)
    print(table(made))
    return 0 if made["fine"] else 1


if __name__ == "__main__":
    sys.exit(main())
