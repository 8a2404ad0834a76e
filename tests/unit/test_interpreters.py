"""Where interpreters are looked for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from wheelmill import interpreters

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True)
    path.touch()
    path.chmod(0o755)
    return path


def test_the_newest_patch_release_of_pyenv_and_no_shim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    shim = program(tmp_path / "shims" / "python3.77")
    monkeypatch.setenv("PATH", str(shim.parent))
    assert interpreters.find("3.77") == "3.77"
    for version in ("3.77.9", "3.77-dev", "3.77.10"):
        program(tmp_path / "versions" / version / "bin" / "python3.77")
    program(tmp_path / "versions" / "3.77.11t" / "bin" / "python3.77t")
    assert interpreters.find("3.77") == str(tmp_path / "versions" / "3.77.10" / "bin" / "python3.77")
    assert interpreters.find("3.77t") == str(tmp_path / "versions" / "3.77.11t" / "bin" / "python3.77t")


def test_the_path_comes_next_and_the_engines_own_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "none"))
    found = program(tmp_path / "bin" / "python3.78")
    monkeypatch.setenv("PATH", str(found.parent))
    assert interpreters.find("3.78") == str(found)
    assert interpreters.find(interpreters.ENGINE_PYTHON) == sys.executable
