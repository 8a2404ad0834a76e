"""The host executor of the gates: the wheel beside torch in an environment here, whose Python runs the scripts."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wheelmill import gates, proc
from wheelmill.errors import InputError, MissingError
from wheelmill.store import digest, write_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from wheelmill.claims import Place
    from wheelmill.gates import Asked, Subject
    from wheelmill.store import Store


@dataclass(frozen=True, kw_only=True, slots=True)
class Beside:
    """Where the gates run: an interpreter with torch, and the folders that hold the wheel beside it.

    Without folders, the wheel is in the interpreter's own site-packages.
    """

    python: Path
    paths: tuple[Path, ...]


def with_torch(store: Store, one: Subject, python: Path, log: Path) -> Beside:
    """Use an interpreter that has torch as it is: the wheel goes into a folder of the store."""
    program = Path(os.path.abspath(python))  # noqa: PTH100 - a virtual environment is where its link is, not its target

    def make(folder: Path) -> None:
        here = ["--python", str(program)] if program.exists() else []
        args = ["--no-deps", "--no-index", "--no-compile", "--target", str(folder), str(one.path.resolve())]
        command = [sys.executable, "-m", "pip", *here, "--disable-pip-version-check", "install", *args]
        try:
            proc.run(command, log=log)
        except proc.ProcessError as error:
            raise InputError(
                f"pip does not install {one.path.name} for {program}:\n    "
                + "\n    ".join(proc.excerpt(error.output)),
                remedy="name a Python that the wheel's tags admit, with pip",
            ) from error

    return Beside(python=program, paths=(store.entry("gate-wheels", digest([one.sha256, str(program)]), make),))


def clean(store: Store, one: Subject, place: Place, extra: Sequence[str], log: Path) -> Beside:
    """A clean environment in the store with the place's torch, the wheel, and `extra` such as pytest."""
    from wheelmill import cover, fetch, interpreters, trial  # uv is needed here alone

    def make(folder: Path) -> None:
        python = fetch.venv(folder / "env", python=interpreters.find(place.cell.python), log=log)
        subject = cover.subject_of(one.path)
        try:
            with store.work("install") as work:
                trial.prepare(store, subject, place, python, work=work, log=log)
        except proc.ProcessError as error:
            raise MissingError(
                f"{one.path.name} does not install beside torch {place.release}: {trial.pip_said(error)}",
                remedy=f"see {log}; `wheelmill cover` tells where it does",
            ) from error
        if extra:
            fetch.install(store, fetch.resolve(store, extra, python=place.cell.python, log=log), into=python, log=log)

    if place.absent is not None:
        raise MissingError(place.absent, remedy="name another with --torch or --with-python")
    key = digest([one.sha256, place.cell.id, place.release, sorted(extra)])
    return Beside(python=store.entry("gate-envs", key, make) / "env" / "bin" / "python", paths=())


def folder_of(store: Store, job: Mapping[str, Any], executor: str) -> Path:
    """Where a job's rows are kept, so that an interrupted run of it goes on."""
    folder = store.path("gate-runs", digest([executor, job["sha256"], {**job, "jobs": 0}]))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def scripts(folder: Path) -> Path:
    """Copy what runs beside the wheel; returns the runner."""
    folder.mkdir(parents=True, exist_ok=True)
    for script in gates.SCRIPTS:
        shutil.copy2(script, folder / script.name)
    return folder / gates.SCRIPTS[0].name


def run(
    store: Store, one: Subject, asked: Asked, beside: Beside, log: Path, tell: Callable[[str], None], *, fresh: bool
) -> dict[str, Any]:
    """Run a job on this machine and return what the scripts told. Nothing of it is left running.

    What a kill of this process itself leaves is ended by the next run that opens the store.
    """
    tests = None if asked.tests is None else str(asked.tests.resolve())
    job = gates.job(one, asked, paths=[str(path) for path in beside.paths], tests=tests)
    out = folder_of(store, job, f"host {beside.python}")
    with store.lock(f"gates-{out.name}", lambda: tell("waiting: another run tests the same")):
        runner = scripts(out / "scripts")
        write_json(out / "job.json", job)
        command = [str(beside.python), str(runner), "--drive", str(out / "job.json"), str(out)]
        (out / "result.json").unlink(missing_ok=True)
        with store.work("gates") as work, following(log, tell):
            try:
                proc.run([*command, *(["--fresh"] if fresh else [])], log=log, env=_environment(beside), cwd=out)
            except proc.ProcessError as error:
                raise MissingError(
                    f"the gates did not run to their end beside {beside.python}: {error}",
                    remedy=f"see {log}; what was measured is kept, and the same command goes on from there",
                ) from error
            finally:
                proc.end_orphans(work)  # units are sessions of their own
        return result(out)


def _environment(beside: Beside) -> dict[str, str]:
    """A clean environment sees nothing that steers Python or the loader; one that was named, what its user has."""
    if beside.paths:
        return dict(os.environ)
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LD_", "VIRTUAL_ENV"))}


def result(out: Path) -> dict[str, Any]:
    """What a run wrote. Raises InputError for a result that cannot be read, which no Python leaves."""
    try:
        told: dict[str, Any] = json.loads((out / "result.json").read_text())
    except (OSError, ValueError) as error:
        raise InputError(
            f"{out / 'result.json'} cannot be read: {error}",
            remedy="see that --python names a Python, and run it again with --fresh",
        ) from error
    return told


@contextlib.contextmanager
def following(log: Path, tell: Callable[[str], None]) -> Iterator[None]:
    """Tell the progress lines that are written to a log meanwhile."""
    over = threading.Event()

    def follow() -> None:
        with log.open(errors="replace") as file:
            file.seek(0, os.SEEK_END)
            rest = ""
            while True:
                last = over.is_set()
                *lines, rest = (rest + file.read()).split("\n")
                for line in lines:
                    if line.startswith("["):
                        tell(line)
                if last:
                    return
                over.wait(0.3)

    thread = threading.Thread(target=follow, daemon=True)
    log.touch()
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
