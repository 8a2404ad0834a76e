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
SMOKE = Path(__file__).with_name("smoke.py")
NOT_MODULES = (".dist-info", ".data", ".libs")
STEERING = ("PIP_", "PYTHON", "VIRTUAL_ENV", "CONDA_PREFIX")
PIP_KEPT = (
    "PIP_EXTRA_INDEX_URL",
    "PIP_TRUSTED_HOST",
    "PIP_CERT",
    "PIP_CLIENT_CERT",
    "PIP_PROXY",
    "PIP_DEFAULT_TIMEOUT",
)


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
    code = [name for name in names if name.endswith((".py", ".so"))]
    tops = {name.split("/")[0].split(".")[0] for name in code if not name.split("/")[0].endswith(NOT_MODULES)}
    if not tops:
        raise GateError(
            f"{path.name} holds no module, so there is nothing to import and nothing is proven",
            remedy="let the build put the extension or its Python package into the wheel",
        )
    return sorted(tops)


def _pip_environ() -> dict[str, str]:
    """What pip sees of this process's environment: how to reach an index, and nothing that steers an install."""
    index = next(
        (os.environ[n] for n in ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL") if n in os.environ), None
    )
    kept = {name: value for name, value in os.environ.items() if name in PIP_KEPT or not name.startswith(STEERING)}
    ours = {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_RETRIES": "1",
        "PIP_NO_INPUT": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    return {**kept, **ours, **({"PIP_INDEX_URL": index} if index else {})}


def _job(file: File, where: Environment, matrix: Matrix) -> dict[str, Any]:
    """What smoke.py is told."""
    return {
        "distribution": file.project,
        "version": str(parse_wheel_filename(file.path.name)[1]),
        "torch": where.torch,
        "modules": _modules(file.path),
        **_asked(matrix),
    }


def _asked(matrix: Matrix) -> dict[str, str | None]:
    return {
        "namespace": matrix.operators.namespace if matrix.operators else None,
        "samples": matrix.operators.samples if matrix.operators else None,
    }


def _environment(store: Store, where: Environment, folder: Path, log: Path) -> Path:
    """A clean environment that holds torch; its interpreter."""
    python = sys.executable if where.cell.python == ENGINE_PYTHON else where.cell.python
    try:
        interpreter = fetch.venv(folder, python=python, log=log)
        fetch.install(store, where.pins, into=interpreter, backend=where.backend, log=log)
    except fetch.UnreachableError as error:
        raise NoEnvironmentError(f"{where.cell.id} cannot be had here: {error}", remedy=error.remedy) from error
    return interpreter


def _install_and_run(store: Store, file: File, where: Environment, matrix: Matrix, log: Path) -> dict[str, Any]:
    with store.work("prove") as work:
        page = index.write([file], work / "site")[where.cell.environment]
        python = _environment(store, where, work / "env", log)
        job = _job(file, where, matrix)
        (work / "job.json").write_text(json.dumps(job))
        pip = [sys.executable, "-I", "-m", "pip", "--python", str(python), "install"]
        run = [str(python), "-I", str(SMOKE), str(work / "job.json"), str(work / "result.json")]
        try:
            proc.run([*pip, file.project, "--find-links", str(page)], log=log, env=_pip_environ(), cwd=work)
            proc.run(run, log=log, cwd=work)
        except proc.ProcessError as error:
            result = work / "result.json"
            said = json.loads(result.read_text())["error"] if result.exists() else str(error)
            raise GateError(
                f"{file.path.name} does not work in {where.cell.id}: {said}",
                remedy=f"the whole output is in {log}; the wheel is not put in the index",
            ) from error
        return json.loads((work / "result.json").read_text())  # type: ignore[no-any-return]


def _key(file: File, wheel: Wheel, matrix: Matrix) -> str:
    return digest([file.sha256, wheel.id, _asked(matrix), SMOKE.read_text()])


def recorded(store: Store, file: File, wheel: Wheel, matrix: Matrix) -> dict[str, Any] | None:
    """The proof of these bytes that an earlier run recorded, if its cell is still one of the wheel's."""
    known = store.record("proofs", _key(file, wheel, matrix))
    cells = {cell.id for cell in wheel.cells}
    if isinstance(known, dict) and known.get("sha256") == file.sha256 and known.get("cell") in cells:
        return known
    return None


def prove(store: Store, file: File, wheel: Wheel, *, facts: Facts, matrix: Matrix, log: Path) -> dict[str, Any]:
    """The proof record: where the wheel was installed and what it did there. Made once for the same bytes.

    Raises GateError when the wheel does not work, NoEnvironmentError when no environment can be had.
    """
    known = recorded(store, file, wheel, matrix)
    if known is not None:
        return known
    where = environment(store, wheel, facts, log)
    result = _install_and_run(store, file, where, matrix, log)
    proof = {**result, "sha256": file.sha256, "cell": where.cell.id}
    store.put_record("proofs", _key(file, wheel, matrix), proof)
    return proof
