"""Drives the units of a job: a process each, with a time limit, a log and a line in rows.jsonl. No torch here."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


def sibling(name: str) -> Any:
    """Another script beside this one, by the runner's own loader, which is there once this runs."""
    return sys.modules["gates_runner"].sibling(name)


RUNNER = Path(__file__).with_name("gates_runner.py")
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
ON_BOTH, ON_GPU = ("ops", "gradcheck", "robust"), ("sanitize", "bench")
ALONE = ("bench",)  # what else runs would be in its times
# Of what a unit would inherit.
REPLACED = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
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
    if gate == "sanitize" and sanitizer(job) is None:
        yield "compute-sanitizer is not here: install the CUDA toolkit's, or name it (--sanitizer)", True


def sanitizer(job: dict[str, Any]) -> str | None:
    """NVIDIA's compute-sanitizer: the named one, PATH's, or that of a toolkit in its usual place."""
    places = ("/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer", "/opt/cuda/bin")
    path = os.pathsep.join([os.environ.get("PATH", ""), *places])
    return shutil.which(job["sanitizer"] or "compute-sanitizer", path=path)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a unit's whole process group."""
    for signum in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signum)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=5)
            break
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def environment(run: Run, gate: str) -> dict[str, str]:
    """What a unit sees; caches, bytecode too, go to the run's own folder, for the rest may be read-only."""
    env = {name: value for name, value in os.environ.items() if name not in REPLACED}
    scratch = str(run.out / "cache")
    paths = [*run.job["paths"], os.environ.get("PYTHONPATH", "")]
    env |= {"PYTHONPATH": os.pathsep.join(path for path in paths if path), "PYTHONPYCACHEPREFIX": f"{scratch}/pyc"}
    env.setdefault("PYTHONUSERBASE", str(Path("~/.local").expanduser()))  # where a torch may be, whatever HOME is
    env |= {"TORCHINDUCTOR_CACHE_DIR": scratch, "TRITON_CACHE_DIR": scratch, "HOME": scratch, "PYTHONUNBUFFERED": "1"}
    if gate == "sanitize":
        env |= {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:False"}
    return env


def launch(run: Run, text: str) -> dict[str, Any]:
    """Run one unit in a process of its own; whatever becomes of it is its row."""
    gate, _, _, *tool = [*text.split("/"), "", ""]
    name = text.replace("/", ".")
    log, result = run.out / "logs" / f"{name}.log", run.out / "logs" / f"{name}.json"
    result.unlink(missing_ok=True)
    work = run.out / "work" / name
    work.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, str(RUNNER), "--unit", str(run.path), text, str(result)]
    seconds = run.job["timeouts"].get(gate, run.job["timeouts"]["unit"])
    if gate == "sanitize":
        patient = ["--launch-timeout", str(int(seconds) + 1)]  # the time limit here is the one that counts
        from_tool = [str(sanitizer(run.job)), "--tool", tool[0], *(["--leak-check", "full"] * (tool[0] == "memcheck"))]
        command = [*from_tool, *sibling("gates_sanitize").OPTIONS, *patient, *command]
    hung = False
    with log.open("wb") as out:
        process = subprocess.Popen(  # noqa: S603
            command,
            cwd=work,
            env=environment(run, gate),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
        run.running.add(process)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            hung = True
        finally:
            stop(process)
            run.running.discard(process)
    shutil.rmtree(work, ignore_errors=True)
    told = json.loads(result.read_text()) if result.exists() else {"at": "starting", "found": {}, "left_out": []}
    row = ended(told, process.returncode, seconds if hung else None)
    if gate != "sanitize":
        return row
    judged: dict[str, Any] = sibling("gates_sanitize").judge(tool[0], log.read_text(errors="replace"), run.job, row)
    return judged


def ended(told: dict[str, Any], status: int, hung: float | None) -> dict[str, Any]:
    """The row of a process: what it told, else how it died and at what."""
    row = {"missing": told.get("missing", False), "found": told.get("found", {}), "left_out": told.get("left_out", [])}
    if told.get("result"):
        return {**row, "result": told["result"], "reason": told["reason"]}
    at = told["at"]
    if hung is not None:
        return {**row, "result": "hang", "reason": f"it hung while {at}: stopped after {hung:.0f} s"}
    if status < 0:
        return {**row, "result": "crash", "reason": f"killed by {signal.Signals(-status).name} while {at}"}
    return {**row, "result": "crash", "reason": f"the process ended with status {status} while {at}"}


def step(run: Run, text: str, found: dict[str, Any]) -> None:
    if run.stopping:
        return
    began = time.monotonic()
    row = skipped(run, text, found) or launch(run, text)
    if run.stopping:
        return  # it was stopped with the run, which says nothing of it
    gate, name, device, *tool = text.split("/")
    row = {"found": {}, "left_out": [], **row, "unit": text, "gate": gate, "operator": name, "device": device}
    row |= {"tool": tool[0] if tool else None, "seconds": round(time.monotonic() - began, 1)}
    with run.lock:
        run.rows[text] = row
        with (run.out / "rows.jsonl").open("a") as out:
            out.write(json.dumps(row) + "\n")
        said = f": {row['reason']}" if row["reason"] else ""
        line = f"[{len(run.rows)}/{run.total}] {text}: {row['result']} in {row['seconds']} s{said}"
        print(line[:300], file=sys.stderr, flush=True)


def resume(run: Run, found: dict[str, Any], *, fresh: bool) -> None:
    """Take up the rows of an earlier run of the same job in the same environment, but for what was missing then."""
    known = {**run.job, "jobs": 0}, found.get("python"), found.get("torch"), found.get("gpu")
    name = hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()
    kept, ledger = [], run.out / "rows.jsonl"
    with contextlib.suppress(OSError, ValueError):
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
    out = out.resolve()
    for folder in ("logs", "work", "cache"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    run = Run(job=json.loads(path.read_text()), path=path.resolve(), out=out)
    began = time.monotonic()
    try:
        probed = launch(run, "probe")
        found, rows = probed["found"], []
        if probed["result"] == "pass":
            found["gpu"] = sibling("gates_gpu").judge(found["gpu"], run.job["targets"], run.job["no_gpu"])
            resume(run, found, fresh=fresh)
            if found["gpu"]["usable"] or not run.job["require_gpu"]:
                rows = _all(run, found)
    except KeyboardInterrupt:
        run.stopping = True
        for process in list(run.running):
            stop(process)
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
        list(pool.map(lambda text: step(run, text, found), together))
        for text in left:
            if text not in together:
                step(run, text, found)
    except BaseException:
        run.stopping = True
        for process in list(run.running):
            stop(process)
        pool.shutdown(wait=True, cancel_futures=True)
        raise
    pool.shutdown()
    return [run.rows[text] for text in every]
