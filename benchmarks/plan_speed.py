"""How long `wheelmill plan --json` takes, as a whole process, on a matrix of 10,000 cells.

Two matrices: one where each cell needs a wheel of its own (the most output), one where the wheels collapse.
The command runs several times on each; its output must be the same bytes every time. Prints JSON and exits 1
when the slowest median is not under the limit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TAGS = ("cu118", "cu121", "cu124", "cu126", "cu128", "cu129", "cu130", "cu131", "cu132")
TORCHES, PYTHONS = 100, 10  # with cpu and the nine tags: 100 * 10 * 10 cells

ABIS = {"a wheel a cell": "per-release, python: per-version", "collapsed": 'stable>=4.50, python: "none"'}


def write(folder: Path, abi: str) -> Path:
    """A matrix of 10,000 cells in `folder`, over private torch releases 4.0 to 4.99."""
    cuda = json.dumps(["cpu", *TAGS])
    python = json.dumps([f"3.{minor}" for minor in range(10, 10 + PYTHONS)])
    rows = [f'[torch."4.{n}"]\nrelease = "4.{n}.0"\ncuda = {cuda}\npython = {python}\n' for n in range(TORCHES)]
    (folder / "extra.toml").write_text("\n".join(rows), encoding="utf-8")
    matrix = folder / "matrix.yaml"
    matrix.write_text(
        f'version: 1\ntorch: ">=4.0"\ncuda: {cuda}\npython: ">=3.10"\nabi: {{torch: {abi}}}\nfacts: extra.toml\n',
        encoding="utf-8",
    )
    return matrix


def measure(matrix: Path, runs: int) -> dict[str, object]:
    """Seconds of each run, how much the plan holds, and whether all outputs were the same."""
    command = [sys.executable, "-m", "wheelmill", "plan", "--json", "--matrix", str(matrix)]
    seconds: list[float] = []
    outputs: set[str] = set()
    output = b""
    for _ in range(runs):
        start = time.perf_counter()
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
        seconds.append(time.perf_counter() - start)
        outputs.add(hashlib.sha256(output).hexdigest())
    made = json.loads(output)
    return {
        "cells": len(made["cells"]),
        "wheels": len(made["wheels"]),
        "seconds": [round(second, 3) for second in seconds],
        "median": round(statistics.median(seconds), 3),
        "identical": len(outputs) == 1,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--limit", type=float, default=1.0, help="seconds that the median may take")
    arguments = parser.parse_args()
    results: dict[str, dict[str, object]] = {}
    for name, abi in ABIS.items():
        with tempfile.TemporaryDirectory() as folder:
            results[name] = measure(write(Path(folder), abi), arguments.runs)
    medians = [float(str(result["median"])) for result in results.values()]
    fine = max(medians) < arguments.limit and all(result["identical"] for result in results.values())
    report = {"version": 1, "python": platform.python_version(), "limit": arguments.limit, "fine": fine}
    print(json.dumps({**report, "matrices": results}))
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
