"""Tests in containers need an engine (`wheelmill images list` says whether one answers), and fail without it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from wheelmill import images

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PROJECTS = ROOT / "tests" / "projects"
STORE = ROOT / ".wheelmill"
# Of files that run beside test_executor and one another: tests look at what a store's runs leave behind.
OF_WHEELS, OF_GATES = STORE / "beside" / "of-wheels", STORE / "beside" / "of-gates"


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "wheelmill", *map(str, arguments)]


def build_image(tag: str = "cu130") -> subprocess.CompletedProcess[str]:
    """Build an image as a closed site does: on the host's network, with the host's certificates."""
    trusted = os.environ.get("SSL_CERT_FILE")
    site = ["--network", "host", "--store", str(STORE), *(["--ca", trusted] if trusted else [])]
    args = command("images", "build", tag, "--base", "debian", "--bootstrap", *site)
    return subprocess.run(args, text=True, capture_output=True, check=False)


@pytest.fixture(scope="session", autouse=True)
def lock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Every container build of the session pins what it resolves in this file, and none in the repository."""
    path = tmp_path_factory.mktemp("lock") / "wheelmill.lock"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WHEELMILL_LOCK", str(path))
        yield path


@pytest.fixture(scope="session")
def image() -> str:
    done = build_image()
    assert done.returncode == 0, done.stderr
    return images.name_for("cu130", "debian")
