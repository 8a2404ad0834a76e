"""Drives the units of a job, each by `gates_process`, with a log and a line in rows.jsonl. No torch here."""

from __future__ import annotations

import contextlib
import hashlib
import json
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path


def sibling(name: str) -> Any:
    """Another script beside this one, by the runner's own loader, which is there once this runs."""
    return sys.modules["gates_runner"].sibling(name)


TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
ON_BOTH, ON_GPU = ("ops", "gradcheck", "robust"), ("sanitize", "bench")
ALONE = ("bench",)  # what else runs would be in its times
# What is said of memory that other units may have taken.
CROWDED = ("out of memory", "ALLOC_FAILED", "bad_alloc", "SIGKILL")
VERSION = 1


@dataclass(kw_only=True)
class Run:
    """One run of a job in the folder `out`."""

    job: dict[str, Any]
    path: Path
    out: Path
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    running: set[subprocess.Popen[bytes]] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)
    total: int = 0
    stopping: bool = False


def units(job: dict[str, Any], operators: dict[str, Any]) -> Iterator[str]:
    """Every unit of a job in its order."""
    for gate in job["gates"]:
        if gate == "pytest":
            yield "pytest/-/all"
            continue
        for name in operators:
            if job["operators"] and name not in job["operators"]:
                continue
            for device in job["devices"] if gate in ON_BOTH else ("cuda",):
                if gate == "sanitize":
                    yield from (f"{gate}/{name}/{device}/{tool}" for tool in TOOLS)
                else:
                    yield f"{gate}/{name}/{device}"


def skipped(run: Run, text: str, found: dict[str, Any]) -> dict[str, Any] | None:
    """The row of a unit that is not run: what is missing for it, or why it has no meaning. Else None."""
    gate, name, device, *_ = text.split("/")
    if gate == "ops" and not found["operators"][name]["sampled"]:
        reason = f"it is registered and {run.job['samples'] or 'nothing'} gives no samples of it"
        return {"result": "fail", "reason": reason, "missing": False}
    first = next(_hindrances(run, gate, name, device, found), None)
    return None if first is None else {"result": "not-run", "reason": first[0], "missing": first[1]}


def _hindrances(run: Run, gate: str, name: str, device: str, found: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """(what keeps a unit from being run, whether it is something missing here), the weightiest first."""
    job = run.job
    if gate == "pytest":
        if not job["tests"]:
            yield "no tests were named (--tests)", True
        return
    operator = found["operators"][name]
    if not operator["sampled"]:
        yield "there are no samples of it", True
    if gate == "gradcheck" and not operator["differentiable"]:
        yield "it is stated not to be differentiable", False
    if device not in job["wheel_devices"]:
        yield "the wheel holds no device code", False
    if device not in job["devices"]:
        yield f"it was asked for {' and '.join(job['devices'])} alone", True
    if operator["devices"] and device not in operator["devices"]:
        yield f"it has no {device.upper()} kernel", False
    if device == "cuda" and not found["gpu"]["usable"]:
        yield found["gpu"]["reason"], True
    if gate == "sanitize" and sibling("gates_process").sanitizer(job) is None:
        yield "compute-sanitizer is not here: install the CUDA toolkit's, or name it (--sanitizer)", True


def crowded(run: Run, row: dict[str, Any]) -> bool:
    """Whether a unit may have lacked what others took, which ran beside it."""
    bad = row["result"] != "pass" and any(sign in (row["reason"] or "") for sign in CROWDED)
    return bad and run.job["jobs"] > 1


def step(run: Run, text: str, found: dict[str, Any], *, alone: bool) -> None:
    """Run a unit and keep its row; of one that may have lacked memory beside others, until it was run alone."""
    if run.stopping:
        return
    began = time.monotonic()
    row = skipped(run, text, found) or sibling("gates_process").launch(run, text, alone=alone)
    if run.stopping:
        return  # it was stopped with the run, which says nothing of it
    gate, name, device, *tool = text.split("/")
    row = {"found": {}, "left_out": [], **row, "unit": text, "gate": gate, "operator": name, "device": device}
    row |= {"tool": tool[0] if tool else None, "seconds": round(time.monotonic() - began, 1)}
    with run.lock:
        run.rows[text] = row
        if alone or not crowded(run, row):
            with (run.out / "rows.jsonl").open("a") as out:
                out.write(json.dumps(row) + "\n")
        said = f": {row['reason']}" if row["reason"] else ""
        line = f"[{len(run.rows)}/{run.total}] {text}: {row['result']} in {row['seconds']} s{said}"
        print(line[:300], file=sys.stderr, flush=True)


def resume(run: Run, found: dict[str, Any], *, fresh: bool) -> None:
    """Take up the rows of an earlier run of the same job in the same environment, but for what was missing then."""
    known = (
        {**run.job, "jobs": 0},
        found.get("python"),
        found.get("torch"),
        found.get("gpu"),
        sibling("gates_process").identity(run.job),
    )
    name = hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()
    kept, ledger = [], run.out / "rows.jsonl"
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        first, *lines = ledger.read_text().splitlines()
        if not fresh and json.loads(first) == {"job": name}:
            for line in lines:  # a last line that is not whole ends it
                row = json.loads(line)
                if not row["missing"]:
                    kept.append(row)
    run.rows = {row["unit"]: row for row in kept}
    beside = ledger.with_suffix(".new")
    beside.write_text("".join(json.dumps(row) + "\n" for row in [{"job": name}, *run.rows.values()]))
    beside.replace(ledger)


def main(path: Path, out: Path, *, fresh: bool) -> int:
    """Run a job. 0 once result.json is written, whatever the gates say; 130 when interrupted."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    process, out = sibling("gates_process"), out.resolve()
    for folder in ("logs", "work", "cache"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    run = Run(job=json.loads(path.read_text()), path=path.resolve(), out=out)
    began = time.monotonic()
    try:
        probed = process.launch(run, "probe")
        found, rows = probed["found"], []
        if probed["result"] == "pass":
            found["gpu"] = sibling("gates_gpu").judge(found["gpu"], run.job["targets"], run.job["no_gpu"])
            resume(run, found, fresh=fresh)
            known = set(run.job["operators"]) <= set(found["operators"])  # or the answer is an error, at once
            if known and (found["gpu"]["usable"] or not run.job["require_gpu"]):
                rows = _all(run, found)
    except KeyboardInterrupt:
        process.stop_all(run)
        return 130
    told = {"version": VERSION, "probe": probed, "rows": rows, "seconds": round(time.monotonic() - began, 1)}
    beside = out / "result.json.new"
    beside.write_text(json.dumps(told, indent=1))
    beside.replace(out / "result.json")
    return 0


def _all(run: Run, found: dict[str, Any]) -> list[dict[str, Any]]:
    every = list(units(run.job, found["operators"]))
    run.total = len(every)
    left = [text for text in every if text not in run.rows]
    together = [text for text in left if text.split("/")[0] not in ALONE]
    pool = ThreadPoolExecutor(max_workers=run.job["jobs"])
    try:
        list(pool.map(lambda text: step(run, text, found, alone=False), together))
        for text in left:
            if text not in together or crowded(run, run.rows[text]):
                step(run, text, found, alone=True)
    except BaseException:
        sibling("gates_process").stop_all(run)
        pool.shutdown(wait=True, cancel_futures=True)
        raise
    pool.shutdown()
    return [run.rows[text] for text in every]
