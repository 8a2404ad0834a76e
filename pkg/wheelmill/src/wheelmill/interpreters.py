"""Where a Python of a given minor is: the engine's own, pyenv's, PATH's, else what uv has or may get."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from wheelmill import fetch, proc
from wheelmill.errors import MissingError
from wheelmill.names import version_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wheelmill.store import Store

ENGINE_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


def find(python: str) -> str:
    """An interpreter's path, or the bare version, which uv finds among its own, or fetches where its settings let it.

    pyenv's shims on PATH are passed over: one of a version that is not switched on there ends with an error.
    """
    if python == ENGINE_PYTHON:
        return sys.executable
    number, threaded = python.removesuffix("t"), "t" if python.endswith("t") else ""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    for folder in sorted(root.glob(f"versions/{number}.*"), key=lambda one: _patch(one.name), reverse=True):
        program = folder / "bin" / f"python{number}{threaded}"
        if folder.name.endswith("t") == bool(threaded) and os.access(program, os.X_OK):
            return str(program)
    folders = [one for one in os.get_exec_path() if "shims" not in Path(one).parts]
    return shutil.which(f"python{number}{threaded}", path=os.pathsep.join(folders)) or python


def probe(store: Store, pythons: Iterable[str], log: Path) -> dict[str, str]:
    """Why each of these Pythons that is not here is not."""
    missing = {}
    for python in pythons:
        with store.work("python") as work:
            try:
                fetch.venv(work / "env", python=find(python), log=log)
            except fetch.UnreachableError:
                missing[python] = f"no Python {python} is here, and uv cannot fetch it"
            except (MissingError, proc.ProcessError):
                missing[python] = f"no Python {python} is here"
    return missing


def _patch(name: str) -> tuple[int, ...]:
    """Sort key of pyenv's folder names; one that is no plain version (`3.13-dev`) comes first."""
    try:
        return version_key(name)
    except ValueError:
        return ()
