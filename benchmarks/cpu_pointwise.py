"""Measures fusedops' pointwise operators on the CPU beside eager torch, and writes a JSON report.

    python cpu_pointwise.py --out report.json [--threads 2] [--quick]

Needs the installed wheel and torch. Both are called in turn in one process, so that what else the machine
does falls on both; a ratio is the median of the ratios of neighbouring calls, which is steadier than that
of two medians. Each result is compared with the reference in float64 before anything is timed.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import fusedops
from fusedops import reference
from fusedops.testing import DTYPES, TOLERANCES

Call = Callable[[], Any]

# Bounds and scale are exact in every dtype, so that the reference in float64 clamps the same elements.
SCALARS: dict[str, tuple[float, ...]] = {
    "clip_add": (-0.625, 0.75, 0.3),
    "scale_clamp_add": (2.0, -0.625, 0.75, 0.3),
    "affine": (-1.3, 0.6),
    "vector_add": (),
}
WITH_BACKWARD = ("clip_add", "scale_clamp_add", "affine")
SIZES = (2**12 + 1, 2**14, 2**16, 2**18, 2**20, 2**22, 2**24)


def batch_of(call: Call, seconds: float) -> int:
    """How often `call` is made between two looks at the clock, so that they are about `seconds` apart."""
    call()
    start = time.perf_counter()
    call()
    return max(1, int(seconds / (time.perf_counter() - start)))


def in_turn(calls: dict[str, Call], rounds: int) -> dict[str, list[float]]:
    """Microseconds of one call of each, by name, one value a round."""
    batches = {name: batch_of(call, 2e-3) for name, call in calls.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds + 1):  # the first warms up
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(batches[name]):
                call()
            times[name].append((time.perf_counter() - start) / batches[name] * 1e6)
    return {name: values[1:] for name, values in times.items()}


def spread(values: list[float]) -> dict[str, float]:
    """Median and quartiles."""
    q1, median, q3 = statistics.quantiles(values, n=4)
    return {"median": median, "q1": q1, "q3": q3}


def candidates(name: str, direction: str, elements: int, dtype: torch.dtype) -> Iterator[tuple[str, Call, Call]]:
    """By label, the call to time and the same call of the reference in float64."""
    count = 2 if name == "vector_add" else 1
    backward = direction == "backward"
    inputs = [torch.randn(elements).to(dtype).requires_grad_(backward) for _ in range(count)]
    wide = [tensor.detach().double().requires_grad_(backward) for tensor in inputs]
    seed = torch.randn(elements).to(dtype)
    expected_function = getattr(reference, name)
    for label, module in (("fusedops", fusedops), ("eager", reference)):
        function, scalars = getattr(module, name), SCALARS[name]
        if backward:
            output, expected = function(*inputs, *scalars), expected_function(*wide, *scalars)
            yield (
                label,
                lambda o=output: torch.autograd.grad(o, inputs, seed, retain_graph=True)[0],
                lambda e=expected: torch.autograd.grad(e, wide, seed.double(), retain_graph=True)[0],
            )
        else:
            yield (
                label,
                lambda f=function, s=scalars: f(*inputs, *s),
                lambda s=scalars: expected_function(*wide, *s),
            )


def poison(like: Tensor) -> None:
    """Fills memory that the next result may take with NaN."""
    torch.full_like(like, float("nan"))


def measure(name: str, direction: str, elements: int, dtype: torch.dtype, rounds: int) -> dict[str, Any]:
    """One row of the report."""
    calls = {}
    for label, call, expected in candidates(name, direction, elements, dtype):
        calls[label] = call
        if label == "fusedops":
            rtol, atol = TOLERANCES[dtype]
            poison(call())
            torch.testing.assert_close(call().double(), expected(), rtol=rtol, atol=atol)
    times = in_turn(calls, rounds)
    ratios = [eager / ours for ours, eager in zip(times["fusedops"], times["eager"], strict=True)]
    return {
        "operator": name,
        "direction": direction,
        "elements": elements,
        "dtype": str(dtype).removeprefix("torch."),
        "microseconds": {label: spread(values) for label, values in times.items()},
        "times_faster_than_eager": spread(ratios),
    }


def rows(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Every row, printed as it is measured."""
    names = {str(dtype).removeprefix("torch."): dtype for dtype in DTYPES}
    for dtype in options.dtypes:
        for elements in options.elements:
            for name in options.operators:
                for direction in ("forward", "backward") if name in WITH_BACKWARD else ("forward",):
                    row = measure(name, direction, elements, names[dtype], options.rounds)
                    print(line(row), flush=True)
                    yield row


def line(row: dict[str, Any]) -> str:
    """A row for people."""
    ours, eager = (row["microseconds"][label]["median"] for label in ("fusedops", "eager"))
    ratio = row["times_faster_than_eager"]
    label = f"{row['operator']} {row['direction']}"
    return (
        f"{label:24} {row['dtype']:8} {row['elements']:>9} {ours:10.1f} µs {eager:10.1f} µs"
        f"  {ratio['median']:5.2f} ({ratio['q1']:.2f} to {ratio['q3']:.2f})"
    )


def processor() -> str:
    """The processor's name, where Linux tells it."""
    told = Path("/proc/cpuinfo")
    names = [line for line in told.read_text().splitlines() if line.startswith("model name")] if told.exists() else []
    return names[0].split(":", 1)[1].strip() if names else platform.machine()


def main() -> int:
    """Measures, prints and writes; 1 if an operator was slower than eager torch."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="where the JSON report goes")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=31, help="timed rounds of each row")
    parser.add_argument("--elements", type=int, nargs="+", default=SIZES)
    parser.add_argument("--operators", nargs="+", default=list(SCALARS), choices=list(SCALARS))
    parser.add_argument("--dtypes", nargs="+", default=[str(dtype).removeprefix("torch.") for dtype in DTYPES])
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    report = {
        "version": 1,
        "benchmark": "cpu_pointwise",
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "environment": {
            "processor": processor(),
            "cores": os.cpu_count(),
            "torch": torch.__version__,
            "capability": torch.backends.cpu.get_cpu_capability(),
            "python": platform.python_version(),
            "fusedops": version("fusedops"),
        },
        "threads": options.threads,
        "rows": list(rows(options)),
    }
    unfinished = options.out.with_name(options.out.name + ".unfinished")
    unfinished.write_text(json.dumps(report, indent=2) + "\n")
    unfinished.replace(options.out)
    slower = [row for row in report["rows"] if row["times_faster_than_eager"]["median"] < 1]
    print(f"{len(slower)} of {len(report['rows'])} rows slower than eager torch")
    return int(bool(slower))


if __name__ == "__main__":
    sys.exit(main())
