"""The one door for subprocesses: argument lists only, output to a log, the whole process group ended on a stop."""

from __future__ import annotations

import contextlib
import contextvars
import os
import re
import resource
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING

from wheelmill.errors import BuildError, MissingError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from typing_extensions import Self

EXCERPT = 25
LONGEST = 1 << 16  # bytes of a line that is followed or shown
# Where a failure's own words begin: a compiler's, linker's or ninja's first complaint; else any line with "error".
CAUSES = (
    re.compile(
        r"(: (fatal )?error\b|\bld: |undefined reference|nvcc fatal|No space left|Error: |Error response from daemon)"
    ),
    re.compile(r"error", re.IGNORECASE),
)
# Every command carries the work folder that it serves in its environment, so that a sweep can find it.
OWNER = "WHEELMILL_WORK"
ORPHANS = 10.0  # seconds
work_folder: contextvars.ContextVar[Path | None] = contextvars.ContextVar("work_folder", default=None)
NO_SPACE = "No space left on device"


class ProcessError(BuildError):
    """A command ended with a status other than 0. `output` holds what this command printed."""

    def __init__(self, args: Sequence[str], status: int, output: str, log: Path) -> None:
        lines = "\n".join("    " + line for line in excerpt(output))
        name = " ".join(Path(word).name for word in args[:3])
        from wheelmill import explain  # only what has failed waits for it

        why, remedy = explain.ending(output)
        super().__init__(f"`{name} …` ended with status {status}:\n{lines}{why}")
        self.remedy = f"{remedy}the whole output is in {log}"
        self.status, self.output = status, output


class TimedOutError(ProcessError):
    """A command did not end within `seconds`, and was ended."""

    def __init__(self, args: Sequence[str], seconds: float, output: str, log: Path) -> None:
        super().__init__(args, -signal.SIGTERM, output, log)
        self.seconds = seconds


def complaint(output: str) -> str | None:
    """The first line in which a compiler, linker or program says what is wrong; None where none does."""
    found = (line.strip() for cause in CAUSES for line in output.splitlines() if cause.search(line))
    return next(found, None)


def excerpt(output: str) -> list[str]:
    """The lines from the first complaint on: what follows it is mostly its echo."""
    lines = [line[:LONGEST] for line in output.splitlines() if line.strip()]
    for cause in CAUSES:
        for number, line in enumerate(lines):
            if cause.search(line):
                return lines[max(number - 1, 0) :][:EXCERPT]
    return lines[-EXCERPT:]


def run(
    args: Sequence[str],
    *,
    log: Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> None:
    """Run a command, appending its output to `log`.

    Raises ProcessError when it fails, TimedOutError when it takes longer than `timeout` seconds, MissingError
    when the program is not there or the disk is full.
    Whatever ends the wait early, Ctrl-C included, ends the command's whole process group.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    environ = {**(os.environ if env is None else env), OWNER: str(work_folder.get() or "")}
    with log.open("ab") as out:
        out.write(f"+ {shlex.join(args)}\n".encode())
        out.flush()
        start = out.tell()
        try:
            process = subprocess.Popen(  # noqa: S603
                args, cwd=cwd, env=environ, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )
        except FileNotFoundError as error:
            raise MissingError(f"{args[0]} is not here", remedy=f"install it, or put it on PATH ({error})") from error
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            _stop(process)
            output = log.read_bytes()[start:].decode(errors="replace")
            raise TimedOutError(args, error.timeout, output, log) from error
        except BaseException:
            _end(process)
            raise
    if status == 0:
        return
    output = log.read_bytes()[start:].decode(errors="replace")
    if NO_SPACE in output:
        raise MissingError(
            f"the disk that holds {log.parent} is full", remedy="free some space and run the same command again"
        )
    raise ProcessError(args, status, output, log)


def follow(args: Sequence[str], *, each: Callable[[str], None], output: Path | None = None) -> int:
    """Run a command, hand each line that it prints to `each` at once, and return its status.

    With `output` its standard output goes into that file, and only the rest is handed on. Raises MissingError when
    the program is not there. Whatever ends the wait early, Ctrl-C included, ends the command's whole process group.
    """
    with contextlib.ExitStack() as stack:
        out = stack.enter_context(output.open("wb")) if output else None
        streams = (out, subprocess.PIPE) if out else (subprocess.PIPE, subprocess.STDOUT)
        try:
            process = subprocess.Popen(  # noqa: S603
                args, stdin=subprocess.DEVNULL, stdout=streams[0], stderr=streams[1], start_new_session=True
            )
        except FileNotFoundError as error:
            raise MissingError(f"{args[0]} is not here", remedy=f"install it, or put it on PATH ({error})") from error
        pipe = process.stderr if out else process.stdout
        try:
            for line in _lines(stack.enter_context(pipe)) if pipe else ():
                each(line.decode(errors="replace").rstrip("\r\n"))
            return process.wait()
        except BaseException:
            _end(process)
            raise


def _lines(pipe: IO[bytes]) -> Iterator[bytes]:
    """Each line, of which no more than LONGEST bytes are held: the rest is left out and said to be."""
    while line := pipe.readline(LONGEST):
        left = 0
        while not line.endswith(b"\n") and (more := pipe.readline(LONGEST)):
            left += len(more)
            if more.endswith(b"\n"):
                break
        yield line + (f" … {left} bytes more in this line".encode() if left else b"")


def capture(args: Sequence[str], *, env: Mapping[str, str] | None = None) -> str:
    """Standard output of a short command. Raises OSError, or CalledProcessError with its `stderr`, when it fails."""
    done = subprocess.run(  # noqa: S603
        args, check=True, capture_output=True, text=True, errors="surrogateescape", stdin=subprocess.DEVNULL, env=env
    )
    return done.stdout


def limited(args: Sequence[str], *, seconds: float, memory: int) -> tuple[int | None, str]:
    """(status, output) of a program that reads a stranger's file; None for one that had to be ended.

    `memory` bounds its address space, in bytes. Raises OSError when it does not start.
    """
    with subprocess.Popen(  # noqa: S603
        args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace", text=True
    ) as process:
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(process.pid, resource.RLIMIT_AS, (memory, memory))
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return None, ""
        return process.returncode, output


class Question:
    """A short command that runs beside its caller, for no longer than `seconds`, and no longer than the block it is of.

    Its answer comes within seconds of that even where the command's own children hold its output, or the kernel holds
    the command itself, as a broken driver makes it do. Raises OSError when it does not start.
    """

    def __init__(self, args: Sequence[str], *, seconds: float, env: Mapping[str, str] | None = None) -> None:
        self._end = time.monotonic() + seconds
        self._out = tempfile.TemporaryFile()  # noqa: SIM115
        try:
            self._process = subprocess.Popen(  # noqa: S603
                args, env=env, stdin=subprocess.DEVNULL, stdout=self._out, stderr=self._out, start_new_session=True
            )
        except BaseException:
            self._out.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            _stop(self._process)
        self._out.close()

    def answer(self) -> tuple[int | None, str]:
        """(status, output); None for one that had to be ended."""
        status = None
        try:
            status = self._process.wait(max(self._end - time.monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            _stop(self._process)
        self._out.seek(0)
        return status, self._out.read(LONGEST).decode(errors="replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    if threading.current_thread() is threading.main_thread():
        for impatient in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(impatient, signal.SIG_IGN)
    _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a command's whole process group."""
    for signum in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signum)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=5)
            return


def end_orphans(work: Path) -> None:
    """Kill what a killed run left running in `work`: every process that carries the folder in its environment.

    They are gone on return, so that none writes to the folder afterwards; what the kernel itself holds is waited for
    no longer than ORPHANS seconds.
    """
    mark = f"{OWNER}={work}".encode()
    end = time.monotonic() + ORPHANS
    while _kill_marked(mark) and time.monotonic() < end:
        time.sleep(0.02)


def _kill_marked(mark: bytes) -> bool:
    """Kill each process with that entry in its environment; whether there was one. What has ended has none."""
    found = False
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                os.kill(int(entry.name), signal.SIGKILL)
                found = True
    return found
