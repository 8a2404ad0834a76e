"""The proof of a wheel: installed by pip from its index page into a clean environment, imported, computed with."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

from packaging.utils import parse_wheel_filename

from wheelmill import fetch, index, proc
from wheelmill.errors import GateError, MissingError
from wheelmill.store import digest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelmill.facts import Facts
    from wheelmill.index import File
    from wheelmill.matrix import Matrix
    from wheelmill.model import Cell, Wheel
    from wheelmill.store import Store

ENGINE_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


class NoEnvironmentError(MissingError):
    """None of the environments that a wheel serves can be had here."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Environment:
    """A cell with the pinned torch that makes it real. `backend` is the torch variant's own index, if needed."""

    cell: Cell
    pins: str
    backend: str | None
    torch: str


def _candidates(wheel: Wheel, facts: Facts) -> Iterator[tuple[Cell, str | None]]:
    """(cell, backend) in the order to try: torches of the default index first, newest first, one a torch.

    A cpu wheel is served by any torch, so the default index's build stands in where the cpu index is silent.
    """
    newest_first = sorted(
        {cell.torch for cell in wheel.cells}, key=lambda t: tuple(map(int, t.split("."))), reverse=True
    )
    chosen = []
    for torch in newest_first:
        pythons = [c for c in wheel.cells if c.torch == torch and not c.python.endswith("t")]
        pythons.sort(key=lambda c: c.python != ENGINE_PYTHON)
        chosen += pythons[:1]
    default = [c for c in chosen if c.cuda == facts.torch[c.torch].pypi]
    for cell in default:
        yield cell, None
    for cell in chosen:
        if cell not in default:
            yield cell, cell.cuda
        if cell.cuda == "cpu":
            yield cell, None


def environment(store: Store, wheel: Wheel, facts: Facts, log: Path) -> Environment:
    """The first environment of the wheel whose torch can be had. Raises NoEnvironmentError when there is none."""
    failures = []
    silent: set[str | None] = set()
    for cell, backend in _candidates(wheel, facts):
        if backend in silent:
            continue
        release = facts.torch[cell.torch].release
        try:
            pins = fetch.resolve(store, [f"torch=={release}", "numpy"], python=cell.python, log=log, backend=backend)
        except fetch.UnreachableError as error:
            silent.add(backend)
            failures.append(str(error).splitlines()[0])
        except fetch.NoReleaseError as error:
            failures.append(str(error).splitlines()[0])
        else:
            return Environment(cell=cell, pins=pins, backend=backend, torch=release)
    raise NoEnvironmentError(
        f"{wheel.id}: no torch of its cells can be had here ({'; '.join(failures) or 'all are free-threaded'}), "
        "so the wheel is not proven to load and is left out of the index",
        remedy="run the same command where torch's own wheel index can be reached",
    )


def _modules(path: Path) -> list[str]:
    """The importable top-level names of a wheel."""
    with ZipFile(path) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names if name.endswith("/__init__.py") and name.count("/") == 1}
    singles = {name.removesuffix(".py") for name in names if name.count("/") == 0 and name.endswith(".py")}
    bare = {name.split(".")[0] for name in names if name.count("/") == 0 and name.endswith(".so")}
    return sorted(tops | singles | bare)


def _install_and_run(store: Store, file: File, where: Environment, matrix: Matrix, log: Path) -> dict[str, Any]:
    with store.work("prove") as work:
        page = index.write([file], work / "site")[where.cell.environment]
        python = fetch.venv(
            work / "env", python=sys.executable if where.cell.python == ENGINE_PYTHON else where.cell.python, log=log
        )
        fetch.install(store, where.pins, into=python, backend=where.backend, log=log)
        name = file.project
        # One try is enough where the index is unreachable: torch is there, and the wheel is on the page.
        # A constraint of this machine's pip would have it move torch, which is not the wheel's doing.
        env = {"PIP_RETRIES": "1", "PIP_NO_INPUT": "1", **os.environ, "PIP_CONSTRAINT": os.devnull}
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install", name, "--find-links", str(page)]
        proc.run(pip, log=log, env=env, cwd=work)
        job = {
            "distribution": name,
            "version": str(parse_wheel_filename(file.path.name)[1]),
            "torch": where.torch,
            "modules": _modules(file.path),
            "namespace": matrix.operators.namespace if matrix.operators else None,
            "samples": matrix.operators.samples if matrix.operators else None,
        }
        (work / "job.json").write_text(json.dumps(job))
        script = Path(__file__).with_name("smoke.py")
        run = [str(python), "-I", str(script), str(work / "job.json"), str(work / "result.json")]
        try:
            proc.run(run, log=log, cwd=work)
        except proc.ProcessError as error:
            result = work / "result.json"
            said = json.loads(result.read_text())["error"] if result.exists() else str(error)
            raise GateError(
                f"{file.path.name} does not work in {where.cell.id}: {said}",
                remedy=f"the whole output is in {log}; the wheel is not put in the index",
            ) from error
        return json.loads((work / "result.json").read_text())  # type: ignore[no-any-return]


def prove(store: Store, file: File, wheel: Wheel, facts: Facts, matrix: Matrix, log: Path) -> dict[str, Any]:
    """The proof record: where the wheel was installed and what it did there. Made once for the same bytes.

    Raises GateError when the wheel does not work, NoEnvironmentError when no environment can be had.
    """
    known = store.record("proofs", digest([file.sha256, wheel.id]))
    if known is not None and known.get("sha256") == file.sha256:
        return known  # type: ignore[no-any-return]
    where = environment(store, wheel, facts, log)
    result = _install_and_run(store, file, where, matrix, log)
    proof = {**result, "sha256": file.sha256, "cell": where.cell.id}
    store.put_record("proofs", digest([file.sha256, wheel.id]), proof)
    return proof
