"""One try of a wheel: pip installs it into a clean environment of a cell, which imports it and computes with it."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from packaging.requirements import Requirement

from wheelmill import fetch, interpreters, proc, recording, writer
from wheelmill.errors import MissingError
from wheelmill.storage import Folder
from wheelmill.store import digest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelmill.claims import Claim, Place
    from wheelmill.index import File
    from wheelmill.store import Store

Verdict = Literal["pass", "fail", "not-available"]
Told = tuple[Verdict, "str | None", "dict[str, Any] | None"]
SMOKE = Path(__file__).with_name("smoke.py")
TIMEOUT = 300.0
# What pip prints when it could not talk to an index.
SILENT = (
    "NewConnectionError",
    "NameResolutionError",
    "ConnectTimeoutError",
    "ReadTimeoutError",
    "ProxyError",
    "SSLError",
)
STEERING = ("PIP_", "PYTHON", "VIRTUAL_ENV", "CONDA_PREFIX")
PIP_KEPT = (
    "PIP_EXTRA_INDEX_URL",
    "PIP_TRUSTED_HOST",
    "PIP_CERT",
    "PIP_CLIENT_CERT",
    "PIP_PROXY",
    "PIP_DEFAULT_TIMEOUT",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """The wheel that is tried, and what is asked of it. A wheel of ours comes from its index page, as users get it."""

    file: File
    claim: Claim
    ours: bool
    namespace: str | None = None
    samples: str | None = None
    timeout: float = TIMEOUT

    @property
    def smoke(self) -> str:
        """Names what is asked of the wheel in each cell."""
        return digest([self.namespace, self.samples, self.ours, self.timeout, SMOKE.read_text()])


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What became of one cell. `error` is the exact words of a failure, or why the cell is not available here.

    `found` is what the smoke call told: releases, modules, operators and how many values were right.
    """

    cell: str
    cuda: str
    torch: str
    python: str
    unclaimed: str | None
    result: Verdict
    error: str | None
    seconds: float
    found: dict[str, Any] | None
    smoke: str


def key(subject: Subject, place: Place) -> str:
    """Names everything that the result of a cell depends on."""
    return digest([subject.file.sha256, place.cell.id, place.release, place.unclaimed, subject.smoke])


def recorded(store: Store, subject: Subject, place: Place) -> Result | None:
    """The result of these bytes in that cell that an earlier run recorded."""
    known = store.record("trials", key(subject, place))
    try:
        result = Result(**known)
    except TypeError:
        return None
    return result if result.cell == place.cell.id else None


def run(store: Store, subject: Subject, place: Place, log: Path, *, lean: Path | None = None) -> Result:
    """Try a wheel in a cell, unless that was done before. What is not available is asked for again the next time.

    With `lean`, what uv's cache lacks is fetched into that folder.
    """
    known = recorded(store, subject, place)
    if known is not None:
        return known
    began = time.monotonic()
    try:
        verdict, error, found = _try(store, subject, place, lean, log)
    except MissingError as missing:
        verdict, error, found = "not-available", f"{str(missing).splitlines()[0]}{_last(missing)}", None
    result = Result(
        cell=place.cell.id,
        cuda=place.cell.cuda,
        torch=place.cell.torch,
        python=place.cell.python,
        unclaimed=place.unclaimed,
        result=verdict,
        error=error,
        seconds=round(time.monotonic() - began, 1),
        found=found,
        smoke=subject.smoke,
    )
    if verdict != "not-available":
        store.put_record("trials", key(subject, place), asdict(result))
    return result


def _try(store: Store, subject: Subject, place: Place, lean: Path | None, log: Path) -> Told:
    """Raises MissingError where the environment cannot be had."""
    if place.absent is not None:
        return "not-available", place.absent, None
    with store.work("trial") as work:
        python = fetch.venv(work / "env", python=interpreters.find(place.cell.python), log=log)
        try:
            prepare(store, subject, place, python, work=work, log=log, lean=lean)
        except proc.ProcessError as error:
            if any(sign in error.output for sign in SILENT):
                return "not-available", "the package index cannot be reached for what else the wheel needs", None
            return "fail", pip_said(error), None
        return _smoke(subject, place, python, work, log)


def prepare(
    store: Store, subject: Subject, place: Place, python: Path, *, work: Path, log: Path, lean: Path | None = None
) -> None:
    """Fill a clean environment: the cell's torch, then pip's own install of the wheel.

    Raises MissingError where torch cannot be had, ProcessError where pip refuses the wheel.
    """
    if not subject.claim.fits(place.cell.python):  # pip will say so, and no torch need be fetched for that
        _force(subject, python, work, log)
    _torch(store, place, python, lean, log)
    _install(subject, place, python, work, log)


def _last(error: Exception) -> str:
    """The index's own words, where a message has more than one line."""
    lines = str(error).splitlines()
    return f": {lines[-1].strip()}" if len(lines) > 1 else ""


def _torch(store: Store, place: Place, python: Path, lean: Path | None, log: Path) -> None:
    """Install the cell's torch. Raises MissingError where it cannot be had."""
    last = MissingError(f"{place.cell.id} has no index to get its torch from")
    for source in place.sources:
        try:
            wanted = [f"torch=={place.release}", "numpy"]
            pins = fetch.resolve(store, wanted, python=place.cell.python, log=log, backend=source)
            fetch.install(store, pins, into=python, backend=source, log=log, lean=lean)
        except fetch.UnreachableError:
            where = f"torch's {source} index" if source else "the package index"
            last = MissingError(f"{where} cannot be reached")
        except MissingError as error:
            last = error
        except proc.ProcessError as error:
            last = MissingError(str(error), remedy=error.remedy)
        else:
            return
    raise last


def _pip_environ() -> dict[str, str]:
    """What pip sees of this process's environment: how to reach an index, and nothing that steers an install."""
    address = next(
        (os.environ[n] for n in ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL") if n in os.environ), None
    )
    kept = {name: value for name, value in os.environ.items() if name in PIP_KEPT or not name.startswith(STEERING)}
    ours = {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_RETRIES": "1",
        "PIP_NO_INPUT": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    return {**kept, **ours, **({"PIP_INDEX_URL": address} if address else {})}


def _install(subject: Subject, place: Place, python: Path, work: Path, log: Path) -> None:
    """Pip's own install. Outside the claim its refusal is overridden, and what else the wheel needs comes after."""
    if place.unclaimed is None:
        _pip(python, _wanted(subject, place, work), work, log)
        return
    _force(subject, python, work, log)
    others = list(_others(subject, place.cell.python))
    if others:
        _pip(python, [*others, f"torch=={place.release}"], work, log)


def _force(subject: Subject, python: Path, work: Path, log: Path) -> None:
    _pip(python, ["--no-deps", "--ignore-requires-python", str(subject.file.path.resolve())], work, log)


def _pip(python: Path, wanted: list[str], work: Path, log: Path) -> None:
    command = [sys.executable, "-I", "-m", "pip", "--python", str(python), "install", *wanted]
    proc.run(command, log=log, env=_pip_environ(), cwd=work)


def _wanted(subject: Subject, place: Place, work: Path) -> list[str]:
    if not subject.ours:
        return [str(subject.file.path.resolve())]
    file = replace(subject.file, environments=(place.cell.environment,))
    site = Folder(work / "site")
    writer.update(site, [recording.plain(file)], {file.path.name: recording.source(file)})
    return [subject.file.project, "--find-links", str(site.root / f"{place.cell.environment}.html")]


def _others(subject: Subject, python: str) -> Iterator[str]:
    """The requirements beside torch that hold for that Python."""
    number = python.removesuffix("t")
    for text in subject.claim.others:
        one = Requirement(text)
        environ = {"python_version": number, "python_full_version": f"{number}.0", "extra": ""}
        if one.marker is None or one.marker.evaluate(environ):
            one.marker = None
            yield str(one)


def pip_said(error: proc.ProcessError) -> str:
    """Pip's own complaint."""
    lines = [line.strip() for line in error.output.splitlines()]
    said = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return "pip: " + (said[0] if said else lines[-1] if lines else str(error))


def _smoke(subject: Subject, place: Place, python: Path, work: Path, log: Path) -> Told:
    job = {
        "distribution": subject.file.project,
        "version": subject.claim.version,
        "torch": place.release,
        "modules": list(subject.claim.modules),
        "namespace": subject.namespace,
        "samples": subject.samples,
    }
    (work / "job.json").write_text(json.dumps(job))
    result = work / "result.json"
    ended: proc.ProcessError | None = None
    env = {name: value for name, value in os.environ.items() if not name.startswith("LD_")}
    try:
        command = [*_loader(python), str(python), "-I", str(SMOKE), str(work / "job.json"), str(result)]
        proc.run(command, log=log, cwd=work, env=env, timeout=subject.timeout)
    except proc.ProcessError as error:
        ended = error
    told: dict[str, Any] = json.loads(result.read_text()) if result.exists() else {"at": "start"}
    at, said, trace = told.pop("at"), told.pop("error", None), told.pop("trace", None)
    if at == "the end" and said is None and ended is None:
        return "pass", None, told
    with log.open("a") as out:
        out.write(f"{trace or ''}\n")
    said = _placeless(said, work) if said else _died(ended, at)
    if at in ("start", "importing torch"):
        return "not-available", f"torch {place.release} itself does not import here: {said}", None
    return "fail", said, None


def _loader(python: Path) -> list[str]:
    """Runs a program without the loader's cache: a toolkit of this machine is none that a user has."""
    try:
        with python.resolve().open("rb") as file:
            found = next(part for part in ELFFile(file).iter_segments() if part["p_type"] == "PT_INTERP")
            return [found.get_interp_name(), "--inhibit-cache"]
    except (ELFError, StopIteration):
        return []  # a script that stands in for the interpreter


def _placeless(error: str, work: Path) -> str:
    """An error without the folder that it happened in, so that it reads the same wherever it is met."""
    folder = re.compile(re.escape(str(work)) + r"/(env/lib/python[\w.]+/site-packages/)?")
    return folder.sub("", error)


def _died(error: proc.ProcessError | None, at: str) -> str:
    """How a process ended that had no chance to say why."""
    if error is None:
        return f"the process ended with status 0 while {at}"
    if isinstance(error, proc.TimedOutError):
        return f"it hung while {at}: nothing for {error.seconds:.0f} s"
    if error.status < 0:
        return f"the process was killed by {signal.Signals(-error.status).name} while {at}"
    return f"the process ended with status {error.status} while {at}"
