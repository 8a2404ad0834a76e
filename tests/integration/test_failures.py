"""What is wrong with the machine, the network or the project: one message, its remedy, the right exit code."""

from __future__ import annotations

import http.server
import os
import shutil
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest

from .conftest import PROJECTS, ROOT, STORE, command, environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Mill = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def fresh(tmp_path: Path) -> dict[str, str]:
    """An empty store, and an empty cache of downloads."""
    return {"WHEELMILL_STORE": str(tmp_path / "store"), "UV_CACHE_DIR": str(tmp_path / "cache")}


class Nothing(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def empty_index() -> Iterator[str]:
    """A package index on this machine that has nothing."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Nothing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/simple"
    server.shutdown()
    server.server_close()


def only_git(folder: Path) -> Path:
    """A folder for PATH that holds git and nothing else."""
    folder.mkdir()
    git = shutil.which("git")
    assert git is not None
    (folder / "git").symlink_to(git)
    return folder


def fake_compiler(folder: Path, version: int, suffix: str = "") -> Path:
    for name in ("gcc", "g++", "c++"):
        tool = folder / f"{name}{suffix}"
        banner = f"{name} (GCC) {version}.1.0\\nCopyright (C) Free Software Foundation, Inc."
        tool.write_text(f'#!/bin/sh\n[ "$1" = -dumpversion ] && echo {version} || printf "{banner}\\n"\n')
        tool.chmod(0o755)
    return folder


def said(done: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    assert done.returncode == code, done.stderr
    for word in (*words, "what to do:"):
        assert word in done.stderr
    assert "Traceback" not in done.stderr


def root_build(*arguments: str) -> list[str]:
    return ["build", "--matrix", str(ROOT / "matrix.yaml"), *arguments]


def test_no_host_compiler(mill: Mill, tmp_path: Path) -> None:
    done = mill(*root_build("cpu-stable2.10", "--store", str(STORE)), PATH=str(only_git(tmp_path / "bin")), CXX=None)
    said(done, 3, "no host C++ compiler", "apt install g++")


def test_a_compiler_that_does_not_run(mill: Mill) -> None:
    done = mill(*root_build("cpu-stable2.10", "--store", str(STORE)), CXX="/nowhere/g++")
    said(done, 3, "/nowhere/g++, from CXX")


def test_a_compiler_too_new_for_the_toolkit(mill: Mill, tmp_path: Path) -> None:
    path = str(fake_compiler(only_git(tmp_path / "bin"), 99))
    done = mill(*root_build("cu130-stable2.10", "--store", str(STORE)), PATH=path, CXX=None)
    said(done, 3, "is GCC 99", "takes GCC 15 at most", "install g++-15")


def test_an_older_compiler_beside_one_too_new_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wheelmill import toolkit

    folder = fake_compiler(fake_compiler(only_git(tmp_path / "bin"), 99), 12, "-12")
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    assert toolkit.compiler(15).cxx == str(folder / "g++-12")


def test_no_toolkit_of_that_cuda(mill: Mill, tmp_path: Path) -> None:
    """Locally, and where `auto` looks for a container engine in its place and finds none."""
    nowhere = {"CUDA_HOME": None, "CUDA_PATH": None, "DOCKER_HOST": f"unix://{tmp_path}/absent.sock"}
    asked = root_build("cu121-torch2.4", "--store", str(STORE))
    said(mill(*asked, "--executor", "local", **nowhere), 3, "no CUDA 12.1 toolkit on this machine", "CUDA_HOME")
    said(mill(*asked, **nowhere), 3, "no CUDA 12.1 toolkit on this machine", "no container engine answers", "CUDA_HOME")


def test_no_network(mill: Mill, fresh: dict[str, str]) -> None:
    done = mill(
        *root_build("cpu-stable2.10"), UV_DEFAULT_INDEX="http://127.0.0.1:9/simple", UV_HTTP_RETRIES="0", **fresh
    )
    said(done, 3, "the package index cannot be reached", "run the same command again")


def test_an_index_that_lacks_the_release(mill: Mill, fresh: dict[str, str], empty_index: str) -> None:
    done = mill(*root_build("cpu-stable2.10"), UV_DEFAULT_INDEX=empty_index, UV_HTTP_RETRIES="0", **fresh)
    said(done, 3, "the package index has no such release", "scikit-build-core")


def test_code_that_does_not_compile(mill: Mill, tmp_path: Path) -> None:
    project = shutil.copytree(PROJECTS / "broken", tmp_path / "broken")
    done = mill("build", "--matrix", project / "matrix.yaml", "--store", STORE)
    said(done, 4, "broken.cpp:1:", "undeclared_name", "was not declared", ".log")


def test_one_failure_costs_the_others_nothing(tmp_path: Path) -> None:
    """The first wheel of this matrix fails, for its source is broken under that name; the second is built."""
    project = shutil.copytree(PROJECTS / "slow", tmp_path / "slow")
    (project / "setup.py").write_text(
        "import os\n"
        + (project / "setup.py").read_text()
        + "\nassert os.environ['WHEELMILL_CELL'] != 'cpu-torch2.13', 'this one fails'\n"
    )
    done = subprocess.run(
        command("build", "--no-prove", "--store", STORE), cwd=project, text=True, capture_output=True, check=False
    )
    said(done, 4, "1 of 2 wheels failed", "this one fails")
    assert [path.name.split("-")[1] for path in (project / "dist").glob("*.whl")] == ["1.0+cpu.torch2.14"]


def test_a_full_disk(tmp_path: Path) -> None:
    """The store on a file system of 16 MB, in a mount namespace of its own."""
    script = 'mount -t tmpfs -o size=16m none "$0" && exec "$@"'
    (tmp_path / "small").mkdir()
    args = ["unshare", "--map-root-user", "--mount", "sh", "-c", script, str(tmp_path / "small")]
    args += command(*root_build("cpu-stable2.10", "--store", str(tmp_path / "small" / "store")))
    done = subprocess.run(args, cwd=tmp_path, env=environment(), text=True, capture_output=True, check=False)
    said(done, 3, "full", "free some space")
