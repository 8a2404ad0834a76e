"""Runs a unit in a process of its own, with a time limit, and tells what became of it. No torch here."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gates_runner import BEFORE, sibling

if TYPE_CHECKING:
    from gates_driver import Run

RUNNER = Path(__file__).with_name("gates_runner.py")
# What a unit does not inherit: the first are set anew; with the others checks would pass that look at nothing (a launch
# that blocks hides a wrong stream, a compiler that is off compiles nothing), or fail for what is not the wheel's.
REPLACED = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
STEERING = (
    *("PYTORCH_", "TORCH", "PYTEST_", "PYTHONOPTIMIZE", "PYTHONWARNINGS", "NVIDIA_TF32_OVERRIDE"),
    *("CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_INJECTION", "CUDA_ENABLE_COREDUMP"),
)
ROOM = 1 << 20  # bytes that a disk has free unless it is full


def sanitizer(job: dict[str, Any]) -> str | None:
    """NVIDIA's compute-sanitizer: the named one, PATH's, or that of a toolkit in its usual place."""
    places = ("/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer", "/opt/cuda/bin")
    path = os.pathsep.join([os.environ.get("PATH", ""), *places])
    return shutil.which(job["sanitizer"] or "compute-sanitizer", path=path)


def identity(job: dict[str, Any]) -> list[Any]:
    """What tells one compute-sanitizer from another."""
    path = sanitizer(job) if "sanitize" in job["gates"] else None
    if path is None:
        return []
    about = Path(path).resolve().stat()
    return [path, about.st_size, about.st_mtime_ns]


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


def stop_all(run: Run) -> None:
    """End every unit at once, and let none start."""
    run.stopping = True
    for process in list(run.running):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def environment(run: Run, gate: str, *, alone: bool = True) -> dict[str, str]:
    """What a unit sees; caches, bytecode too, go to the run's own folder, for the rest may be read-only."""
    env = {name: value for name, value in os.environ.items() if name not in REPLACED and not name.startswith(STEERING)}
    scratch = str(run.out / "cache")
    paths = [*run.job["paths"], os.environ.get("PYTHONPATH", "")]
    env |= {"PYTHONPATH": os.pathsep.join(path for path in paths if path), "PYTHONPYCACHEPREFIX": f"{scratch}/pyc"}
    env.setdefault("PYTHONUSERBASE", str(Path("~/.local").expanduser()))  # where a torch may be, whatever HOME is
    env |= {"TORCHINDUCTOR_CACHE_DIR": scratch, "TRITON_CACHE_DIR": scratch, "HOME": scratch, "PYTHONUNBUFFERED": "1"}
    # Units side by side share the cores; two threads at least, or what an operator does in parallel is not tried.
    if not alone:
        env.setdefault("OMP_NUM_THREADS", str(max(2, len(os.sched_getaffinity(0)) // run.job["jobs"])))
    if gate == "sanitize":
        env |= {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:False"}
    return env


def command_of(run: Run, text: str, result: Path, seconds: float) -> list[str]:
    """What runs a unit: this Python, and around it the tool of `sanitize`."""
    own = [sys.executable, str(RUNNER), "--unit", str(run.path), text, str(result)]
    gate, _, _, *tool = [*text.split("/"), "", ""]
    if gate != "sanitize":
        return own
    leaks = ["--leak-check", "full"] if tool[0] == "memcheck" else []
    patient = ["--launch-timeout", str(int(seconds) + 1)]  # the time limit here is the one that counts
    tools, jobs = sibling("gates_sanitize"), run.job["jobs"]
    ports = ["--max-connections", str(2 * jobs)] if jobs >= tools.PORTS else []
    options = [*leaks, *tools.OPTIONS, *patient, *ports]
    return [str(sanitizer(run.job)), "--tool", tool[0], *options, *own]


def launch(run: Run, text: str, *, alone: bool = True) -> dict[str, Any]:
    """Run one unit in a process of its own; whatever becomes of it is its row."""
    gate, _, _, *tool = [*text.split("/"), "", ""]
    name = text.replace("/", ".")
    log, result = run.out / "logs" / f"{name}.log", run.out / "logs" / f"{name}.json"
    result.unlink(missing_ok=True)
    work = run.out / "work" / name
    work.mkdir(parents=True, exist_ok=True)
    seconds = run.job["timeouts"].get(gate, run.job["timeouts"]["unit"])
    with log.open("wb") as out:
        try:
            process = subprocess.Popen(  # noqa: S603
                command_of(run, text, result, seconds),
                cwd=work,
                env=environment(run, gate, alone=alone),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        except OSError as error:
            return {"result": "not-run", "reason": f"it cannot be started: {error}", "missing": True, "found": {}}
        hung = waited(run, process, seconds)
    shutil.rmtree(work, ignore_errors=True)
    told = json.loads(result.read_text()) if result.exists() else {"at": "starting", "found": {}, "left_out": []}
    row = ended(told, process.returncode, seconds if hung else None)
    if row["result"] != "pass" and shutil.disk_usage(run.out).free < ROOM:
        return {**row, "result": "not-run", "reason": f"the disk that holds {run.out} is full", "missing": True}
    if gate != "sanitize":
        return row
    judged: dict[str, Any] = sibling("gates_sanitize").judge(tool[0], log.read_text(errors="replace"), run.job, row)
    return judged


def waited(run: Run, process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait for a unit and end what is left of it. Whether it took longer than it may."""
    run.running.add(process)
    if run.stopping:
        seconds = 0
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return True
    finally:
        stop(process)
        run.running.discard(process)
    return False


def ended(told: dict[str, Any], status: int, hung: float | None) -> dict[str, Any]:
    """What a process told, else how it died and at what. Before the operator is called that is no fault of it."""
    row = {"missing": told.get("missing", False), "found": told.get("found", {}), "left_out": told.get("left_out", [])}
    if told.get("result"):
        return {**row, "result": told["result"], "reason": told["reason"]}
    at = told["at"]
    if hung is not None:
        row |= {"result": "hang", "reason": f"it hung while {at}: stopped after {hung:.0f} s"}
    elif status < 0:
        row |= {"result": "crash", "reason": f"killed by {_signal(-status)} while {at}"}
    else:
        row |= {"result": "crash", "reason": f"the process ended with status {status} while {at}"}
    if at in BEFORE:
        row |= {"result": "not-run", "missing": True}
    return row


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
