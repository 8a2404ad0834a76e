"""Measures fusedops on one GPU beside eager torch and a device copy, and writes a JSON report.

    python gpu_pointwise.py --out report.json [--wheel WHEEL] [--tests tests/ops]

Needs the installed wheel and torch. Large calls are timed with CUDA events, one call a time, all
candidates in turn so that they share the card's clock and heat; small calls by the wall clock over
many, which is the host's cost. With --tests it runs those first and reports their counts.
"""

import argparse
import hashlib
import json
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import torch
from torch import Tensor

import fusedops
from fusedops import reference

Call = Callable[[], object]

SCALARS: dict[str, tuple[float, ...]] = {
    "clip_add": (-0.6, 0.7, 0.3),
    "scale_clamp_add": (1.7, -0.6, 0.7, 0.3),
    "affine": (-1.3, 0.6),
    "vector_add": (),
}
# float32 words an element: inputs read and output written.
FORWARD_WORDS = {"clip_add": 2, "scale_clamp_add": 2, "affine": 2, "vector_add": 3}
BACKWARD_WORDS = {"clip_add": 3, "scale_clamp_add": 3, "affine": 2}


def spread(values: list[float]) -> dict[str, float]:
    """Median and quartiles."""
    q1, median, q3 = statistics.quantiles(values, n=4)
    return {"median": median, "q1": q1, "q3": q3, "count": len(values)}


def event_times(calls: dict[str, Call], repeats: int) -> dict[str, dict[str, float]]:
    """Milliseconds on the device of each call, by name, taken in turn."""
    for call in calls.values():
        for _ in range(5):
            call()
    pairs: dict[str, list[tuple[torch.cuda.Event, torch.cuda.Event]]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            call()
            end.record()
            pairs[name].append((start, end))
    torch.cuda.synchronize()
    return {name: spread([a.elapsed_time(b) for a, b in both]) for name, both in pairs.items()}


def wall_times(calls: dict[str, Call], repeats: int, batch: int = 1000) -> dict[str, dict[str, float]]:
    """Microseconds on the host of one call of each, by name, as means over `batch` calls."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats + 1):  # the first round warms up
        for name, call in calls.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(batch):
                call()
            torch.cuda.synchronize()
            seconds[name].append((time.perf_counter() - start) / batch * 1e6)
    return {name: spread(values[1:]) for name, values in seconds.items()}


def tensors(name: str, elements: int, *, requires_grad: bool) -> list[Tensor]:
    """The operator's inputs on the GPU."""
    count = 2 if name == "vector_add" else 1
    return [torch.randn(elements, device="cuda", requires_grad=requires_grad) for _ in range(count)]


def backward_call(function: Callable[..., Tensor], inputs: list[Tensor], *scalars: float) -> Call:
    """A call of the gradient alone; the forward pass is done here, once."""
    output = function(*inputs, *scalars)
    seed = torch.randn_like(output)
    return lambda: torch.autograd.grad(output, inputs, seed, retain_graph=True)


def measure_large(elements: int, repeats: int) -> list[dict[str, Any]]:
    """Forward and backward of each operator at `elements` float32, one row each."""
    rows = []
    for name, scalars in SCALARS.items():
        ours, eager = getattr(fusedops, name), getattr(reference, name)
        for direction, words in (("forward", FORWARD_WORDS), ("backward", BACKWARD_WORDS)):
            if name not in words:
                continue
            torch.cuda.empty_cache()
            source = torch.randn(elements, device="cuda")
            target = torch.empty_like(source)
            calls: dict[str, Call] = {"copy": lambda t=target, s=source: t.copy_(s)}  # type: ignore[misc]
            inputs = tensors(name, elements, requires_grad=direction == "backward")
            for label, function in (("fusedops", ours), ("eager", eager)):
                if direction == "forward":
                    calls[label] = lambda f=function, i=inputs, s=scalars: f(*i, *s)  # type: ignore[misc]
                else:
                    calls[label] = backward_call(function, inputs, *scalars)
            times = event_times(calls, repeats)
            rate = {
                "fusedops": words[name] * 4 * elements / times["fusedops"]["median"] / 1e9,
                "copy": 2 * 4 * elements / times["copy"]["median"] / 1e9,
            }
            rows.append(
                {
                    "operator": name,
                    "direction": direction,
                    "milliseconds": times,
                    "terabytes_per_second": rate,
                    "of_copy_bandwidth": rate["fusedops"] / rate["copy"],
                    "times_faster_than_eager": times["eager"]["median"] / times["fusedops"]["median"],
                }
            )
    return rows


def measure_small(elements: int, repeats: int) -> list[dict[str, Any]]:
    """Host time of a forward call at `elements` float32, without and with a gradient to come."""
    rows = []
    for name, scalars in SCALARS.items():
        for requires_grad in (False, True):
            inputs = tensors(name, elements, requires_grad=requires_grad)
            ours, eager = getattr(fusedops, name), getattr(reference, name)
            calls: dict[str, Call] = {
                "fusedops": lambda f=ours, i=inputs, s=scalars: f(*i, *s),  # type: ignore[misc]
                "eager": lambda f=eager, i=inputs, s=scalars: f(*i, *s),  # type: ignore[misc]
            }
            microseconds = wall_times(calls, repeats)
            rows.append({"operator": name, "requires_grad": requires_grad, "microseconds": microseconds})
    return rows


def run_tests(folder: Path) -> dict[str, Any]:
    """Runs pytest on `folder`; its counts, exit status and what did not pass."""
    with tempfile.TemporaryDirectory() as scratch:
        junit = Path(scratch, "junit.xml")
        command = [sys.executable, "-m", "pytest", "-q", str(folder), f"--junitxml={junit}"]
        print("+", *command, flush=True)
        status = subprocess.run([*command, "-p", "no:cacheprovider"], check=False).returncode
        cases = list(ET.parse(junit).iter("testcase")) if junit.exists() else []  # noqa: S314
    outcomes: dict[str, list[str]] = {"passed": [], "failed": [], "skipped": []}
    for case in cases:
        kinds = {child.tag for child in case}
        outcome = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        outcomes[outcome].append(f"{case.get('classname')}::{case.get('name')}")
    return {
        "exit_status": status,
        **{outcome: len(names) for outcome, names in outcomes.items()},
        "names_failed": outcomes["failed"],
        "names_skipped": outcomes["skipped"],
    }


def environment() -> dict[str, Any]:
    """The card and every version that a number depends on."""
    smi = shutil.which("nvidia-smi")
    query = [str(smi), "--query-gpu=driver_version", "--format=csv,noheader"]
    driver = subprocess.run(query, capture_output=True, text=True, check=True).stdout if smi else ""
    return {
        "card": torch.cuda.get_device_name(),
        "capability": "{}.{}".format(*torch.cuda.get_device_capability()),
        "driver": driver.split("\n")[0] or None,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "python": platform.python_version(),
        "fusedops": version("fusedops"),
    }


def table(report: dict[str, Any]) -> str:
    """The report in a few lines."""
    lines = [f"{'':24} {'fusedops':>9} {'eager':>9} {'copy':>9}  of copy's bytes/s"]
    for row in report["large"]:
        medians = [row["milliseconds"][name]["median"] for name in ("fusedops", "eager", "copy")]
        label = f"{row['operator']} {row['direction']}"
        cells = " ".join(f"{median:6.3f} ms" for median in medians)
        lines.append(f"{label:24} {cells}  {row['of_copy_bandwidth']:.2f}")
    for row in report["small"]:
        medians = [row["microseconds"][name]["median"] for name in ("fusedops", "eager")]
        label = f"{row['operator']} small{' +grad' if row['requires_grad'] else ''}"
        lines.append(f"{label:24} " + " ".join(f"{median:6.1f} µs" for median in medians))
    if tests := report["tests"]:
        lines.append(f"tests: {tests['passed']} passed, {tests['failed']} failed, {tests['skipped']} skipped")
    return "\n".join(lines)


def described(wheel: Path) -> dict[str, Any]:
    """The wheel's file and hash, and how it was built where its manifest lies beside it."""
    said = {"file": wheel.name, "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest()}
    manifest = wheel.with_name(f"{wheel.name}.manifest.json")
    if not manifest.exists():
        return said
    built = json.loads(manifest.read_text())
    if built["sha256"] != said["sha256"]:
        raise SystemExit(f"{manifest} describes another file than {wheel}: give the two that were built together")
    return {**said, "built": {name: built[name] for name in ("wheel", "key", "python", "torch", "toolkit", "sm")}}


def main() -> int:
    """Runs everything; 1 if a test failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="where the JSON report goes")
    parser.add_argument("--wheel", type=Path, help="the installed wheel's file, for its SHA-256")
    parser.add_argument("--tests", type=Path, help="a folder of tests to run first")
    parser.add_argument("--elements", type=int, default=2**28, help="of a large call")
    parser.add_argument("--repeats", type=int, default=100, help="timed calls of each candidate")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("torch finds no CUDA device; this measures one")
    tests = run_tests(options.tests) if options.tests else None
    report = {
        "version": 1,
        "benchmark": "gpu_pointwise",
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "environment": environment(),
        "wheel": options.wheel and described(options.wheel),
        "dtype": "float32",
        "large_elements": options.elements,
        "small_elements": 1024,
        "large": measure_large(options.elements, options.repeats),
        "small": measure_small(1024, 20),
        "tests": tests,
    }
    unfinished = options.out.with_name(options.out.name + ".unfinished")
    unfinished.write_text(json.dumps(report, indent=2) + "\n")
    unfinished.replace(options.out)
    print(table(report))
    return int(tests is not None and tests["exit_status"] != 0)


if __name__ == "__main__":
    sys.exit(main())
