"""What Nsight Compute counts of the kernels in a call: why a row has the time that it has. Needs torch and `ncu`.

    python -m benchmarks.operators --profile profile.json --from report.json

The rows of the report that missed a target on the GPU: the kernels of fusedops, and of what it was held against.
"""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from .rows import OURS, every

if TYPE_CHECKING:
    from collections.abc import Iterator

COUNTED = {
    "gpu__time_duration.sum": "time",
    "dram__bytes_read.sum": "read",
    "dram__bytes_write.sum": "written",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "dram, % of its peak",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "multiprocessors, % of their peak",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "warps, % of the most",
    "launch__registers_per_thread": "registers a thread",
}
WARM = 3
LIMIT = 300  # seconds of one call's profile


def missed(report: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Row and candidate, of rows on the GPU whose time is the device's."""
    for row in report["rows"]:
        against = [target["against"] for target in row["targets"] if target["met"] is False]
        if against and row["device"] == "cuda" and row["unit"] == "ms":
            yield from ((row["name"], candidate) for candidate in (OURS, *against))


def call_once(name: str, candidate: str) -> None:
    """The call that ncu looks at, after some that warm up what compiles and caches."""
    import torch

    from .__main__ import prepared

    (row,) = (row for row in every() if row.name == name)
    call = prepared(row).calls[candidate]
    for _ in range(WARM):
        call()
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    call()
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()


def kernels(name: str, candidate: str) -> list[dict[str, str]]:
    """Each kernel of the call with what was counted, units included. Raises RuntimeError with ncu's last words."""
    ncu = shutil.which("ncu")
    if ncu is None:
        raise RuntimeError("ncu is not on PATH; it comes with the CUDA toolkit, and with Nsight Compute")
    told = ["--csv", "--profile-from-start", "off", "--clock-control", "none", "--target-processes", "all"]
    asked = [ncu, *told, "--metrics", ",".join(COUNTED)]
    own = [sys.executable, "-m", "benchmarks.operators", "--profiled", name, candidate]
    done = subprocess.run([*asked, *own], capture_output=True, text=True, check=False, timeout=LIMIT)
    found: dict[str, dict[str, str]] = {}
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    for row in csv.DictReader(io.StringIO("\n".join(lines))):
        kernel = found.setdefault(row["ID"], {"kernel": row["Kernel Name"][:120]})
        kernel[COUNTED[row["Metric Name"]]] = f"{row['Metric Value']} {row['Metric Unit']}".removesuffix(" %").strip()
    if done.returncode or not found:
        words = " ".join((done.stdout + done.stderr).split())[-300:]
        raise RuntimeError(f"ncu ended with {done.returncode} and counted {len(found)} kernels: {words}")
    return list(found.values())


def profiled(report: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What is known after each call: every missed row's kernels; a candidate that cannot be profiled says why."""
    rows: dict[str, dict[str, Any]] = {}
    for name, candidate in dict.fromkeys(missed(report)):
        try:
            told: Any = kernels(name, candidate)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            told = str(error)
        rows.setdefault(name, {})[candidate] = told
        print(f"{name}, {candidate}: {told}", file=sys.stderr, flush=True)
        yield {"of": {key: report[key] for key in ("date", "machine", "wheel")}, "rows": rows}
