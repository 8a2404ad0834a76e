"""Tests in containers need an engine (`wheelmill images list` says whether one answers), and fail without it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from wheelmill import images

ROOT = Path(__file__).parents[2]
PROJECTS = ROOT / "tests" / "projects"
STORE = ROOT / ".wheelmill"


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "wheelmill", *map(str, arguments)]


def build_image(tag: str = "cu130") -> subprocess.CompletedProcess[str]:
    """Build an image as a closed site does: on the host's network, with the host's certificates."""
    trusted = os.environ.get("SSL_CERT_FILE")
    site = ["--network", "host", "--store", str(STORE), *(["--ca", trusted] if trusted else [])]
    args = command("images", "build", tag, "--base", "debian", "--bootstrap", *site)
    return subprocess.run(args, text=True, capture_output=True, check=False)


@pytest.fixture(scope="session")
def image() -> str:
    done = build_image()
    assert done.returncode == 0, done.stderr
    return images.name_for("cu130", "debian")
