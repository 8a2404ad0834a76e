"""The Debian image keeps the contract that builds rely on. Needs a container engine, and root where no base is here."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from wheelmill import engine, images

from .conftest import ROOT, build_image

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Shell = Callable[[str], str]

SCRIPT = ROOT / "docker" / "bootstrap-debian"


@pytest.fixture
def shell(image: str) -> Shell:
    """Runs a line in a fresh container of the image, as a build runs: no network, no capability."""

    def run(line: str) -> str:
        client = engine.connect()
        output: bytes = client.containers.run(
            image,
            ["bash", "-euc", line],
            network_mode="none",
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            remove=True,
        )
        return output.decode().strip()

    return run


def test_an_unchanged_image_is_not_built_again(image: str) -> None:
    done = build_image()
    assert done.returncode == 0, done.stderr
    assert f"{image}: unchanged" in done.stderr


def test_python_is_where_manylinux_has_it(shell: Shell) -> None:
    said = shell(
        "for p in /opt/python/cp*-cp*/bin/python; do"
        ' $p -c "import sys, build, setuptools, pip; print(sys.version_info >= (3, 11), setuptools.__version__)"; done'
        "; ls -d /opt/python/cp39-cp39/bin"
    )
    *versions, tool = said.splitlines()
    assert tool == "/opt/python/cp39-cp39/bin"
    assert all(line.startswith("True ") and int(line.split()[1].split(".")[0]) >= 77 for line in versions)


def test_tools_are_on_path(shell: Shell) -> None:
    shell("for tool in auditwheel cmake ninja patchelf uv git gcc g++; do $tool --version; done")


def test_the_compiler_compiles(shell: Shell) -> None:
    python = "$(/opt/python/cp39-cp39/bin/python -c 'import sysconfig; print(sysconfig.get_path(\"include\"))')"
    shell(f"cd /project; echo '#include <Python.h>' > a.cpp; $CXX -shared -fPIC -I{python} a.cpp -o a.so")
    assert shell("for one in $CXX g++ c++; do $one -dumpversion; done | sort -u") == "12"


def test_builds_run_as_a_user_who_may_write_where_they_must(shell: Shell) -> None:
    wrote = (
        "touch /project/a /output/b ~/c; echo > /cibuildwheel-ca-bundle.pem; echo > /constraints.txt; touch /project"
    )
    assert shell(f"id -un; id -u; {wrote}; pwd") == "builder\n1000\n/project"


def test_labels_say_what_is_inside(image: str) -> None:
    labels = engine.connect().images.get(image).labels
    assert labels["org.wheelmill.cuda"] == "cu130"
    assert labels["org.wheelmill.toolkit"] == "none"
    assert labels["org.wheelmill.gcc"] == "12"
    assert labels["org.opencontainers.image.title"] == image
    assert len(labels[images.CONTENT]) == 64


def test_no_static_cuda_library_and_no_driver_is_inside(image: str, shell: Shell) -> None:
    found = shell(
        "find / -xdev '(' -name 'libcu*.a' -o -name 'libn[pv]*.a' -o -name 'libcuda.so.*' ')' 2>/dev/null || :"
    )
    assert found == ""
    assert engine.connect().images.get(image).attrs["Size"] < 4_000_000_000


def fake_tools(folder: Path) -> dict[str, str]:
    """A debootstrap that never ends and an engine that answers, first on PATH."""
    (folder / "bin").mkdir()
    (folder / "tmp").mkdir()
    for name, line in (("debootstrap", 'mkdir -p "${@: -2:1}"; sleep 60'), ("docker", "true"), ("id", "echo 0")):
        (folder / "bin" / name).write_text(f"#!/bin/bash\n{line}\n")
        (folder / "bin" / name).chmod(0o755)
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "TMPDIR": str(folder / "tmp"), "KEYRING": __file__}


@pytest.mark.parametrize(("signum", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_bootstrap_that_is_stopped_leaves_nothing(tmp_path: Path, signum: signal.Signals, status: int) -> None:
    process = subprocess.Popen(
        [SCRIPT, "bookworm", "test/none:none", "http://mirror.example"],
        env=fake_tools(tmp_path),
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 20
    while not list((tmp_path / "tmp").glob("*/root")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signum)
    assert process.wait(timeout=20) == status
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_bootstrap_without_a_keyring_trusts_nothing(tmp_path: Path) -> None:
    env = {**fake_tools(tmp_path), "KEYRING": str(tmp_path / "absent.gpg")}
    done = subprocess.run([SCRIPT, "bookworm", "test/none:none"], env=env, text=True, capture_output=True, check=False)
    assert done.returncode == 3
    assert "nothing fetched could be trusted" in done.stderr
    assert "what to do:" in done.stderr


def test_bootstrap_usage() -> None:
    assert subprocess.run([SCRIPT, "bookworm"], capture_output=True, check=False).returncode == 2
