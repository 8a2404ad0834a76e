"""Integration tests run the real command line. They need a host compiler, and a package index the first time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
PROJECTS = ROOT / "tests" / "projects"
STORE = ROOT / ".wheelmill"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.integration)


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "wheelmill", *map(str, arguments)]


def environment(**changes: str | None) -> dict[str, str]:
    """This process's environment with variables set, or removed where the value is None."""
    merged = {**os.environ, **changes}
    return {name: value for name, value in merged.items() if value is not None}


@pytest.fixture(autouse=True)
def _no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a container build pinned in the repository answers for no index here."""
    monkeypatch.setenv("WHEELMILL_LOCK", str(tmp_path / "absent.lock"))


@pytest.fixture
def mill(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a verb in an empty folder; keyword arguments change its environment."""

    def run(*arguments: str | Path, **changes: str | None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command(*arguments), cwd=tmp_path, env=environment(**changes), text=True, capture_output=True, check=False
        )

    return run
