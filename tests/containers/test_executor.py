"""The docker executor: the same bytes as a local build, no way out, and nothing left behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import threading
from pathlib import Path
from zipfile import ZipFile

import pytest
from tests.matrices import checkout

from wheelmill import engine, sandbox

from .conftest import PROJECTS, STORE, command

DOCKER = ("--executor", "docker", "--base", "debian", "--no-prove", "--json")
WHEEL = "cu130-stable2.10"


def run(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command("build", *arguments), cwd=folder, text=True, capture_output=True, check=False)


def containers(store: Path) -> list[str]:
    listed = engine.connect().containers.list(all=True, filters={"label": f"{sandbox.STORE}={store}"})
    return [found.name for found in listed]


def test_a_container_builds_the_bytes_that_a_local_build_makes(image: str, tmp_path: Path) -> None:
    """The same g++ and the same toolkit from the package index: no path, time or user of either gets in."""
    sources = checkout(tmp_path / "checkout")
    wheels = []
    for executor in (DOCKER, ("--executor", "local", "--no-prove", "--json")):
        out = tmp_path / executor[1]
        done = run(sources, *executor, "--store", STORE, "--out", out, WHEEL)
        assert done.returncode == 0, done.stderr
        (row,) = json.loads(done.stdout)["wheels"]
        manifest = json.loads(Path(row["file"] + ".manifest.json").read_text())
        assert manifest["executor"] == executor[1]
        wheels.append(Path(row["file"]).read_bytes())
    assert wheels[0] == wheels[1]
    assert containers(STORE) == []


def caller(folder: Path, address: str) -> Path:
    project = shutil.copytree(PROJECTS / "caller", folder / "caller")
    (project / "address").write_text(address)
    return project


def answer(server: socket.socket) -> None:
    server.accept()[0].close()


def test_a_build_that_opens_a_connection_fails_in_its_container_alone(image: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=answer, args=(server,), daemon=True)
        thread.start()
        outside = caller(tmp_path, f"127.0.0.1 {server.getsockname()[1]}")
        done = run(outside, "--executor", "local", "--no-prove", "--store", STORE)
        assert done.returncode == 0, done.stderr
        inside = run(outside, *DOCKER, "--store", STORE)
    assert inside.returncode == 4
    assert "ConnectionRefusedError" in inside.stderr  # its loopback is its own
    (outside / "address").write_text("192.0.2.1 80")
    done = run(outside, *DOCKER, "--store", STORE)
    assert done.returncode == 4
    assert "Network is unreachable" in done.stderr
    assert containers(STORE) == []


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_run_leaves_no_container(image: str, tmp_path: Path, signum: signal.Signals) -> None:
    project = shutil.copytree(PROJECTS / "slow", tmp_path / "slow")
    (project / "seconds").write_text("60\n")
    store = project / ".wheelmill"
    started = subprocess.Popen(command("build", *DOCKER), cwd=project, stderr=subprocess.PIPE, text=True)
    assert started.stderr is not None
    for line in started.stderr:
        if ": compile" in line:
            break
    for _ in range(200):
        if containers(store):
            break
        threading.Event().wait(0.1)
    assert containers(store)
    os.kill(started.pid, signum)
    started.communicate(timeout=60)
    if signum == signal.SIGINT:
        assert containers(store) == []
    (project / "seconds").write_text("0\n")
    done = run(project, "--executor", "local", "--no-prove", "--json", "cpu-torch2.14")
    assert done.returncode == 0, done.stderr
    assert containers(store) == []
    done = run(project, *DOCKER, "cpu-torch2.13")
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (store / "tmp").iterdir()] == []
    assert len(list((store / "wheels").glob("*/*.whl"))) == 2


def test_what_a_container_costs_beside_the_compiler_is_small(image: str, tmp_path: Path) -> None:
    project = shutil.copytree(PROJECTS / "slow", tmp_path / "slow")
    (project / "seconds").write_text("0\n")
    done = run(project, *DOCKER, "--store", STORE, "cpu-torch2.14")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["wheels"]
    parts = json.loads((project / f"{row['file']}.manifest.json").read_text())["parts"]
    print(f"a wheel of one function, start of the container to wheel on the host: {parts['compile']['seconds']} s")
    assert parts["compile"]["seconds"] < 20  # other tests run beside it


def test_an_image_whose_base_cannot_be_had(tmp_path: Path) -> None:
    args = command("images", "build", "cu130", "--base-image", "127.0.0.1:9/none:none", "--store", tmp_path / "store")
    done = subprocess.run(args, text=True, capture_output=True, check=False)
    assert done.returncode == 3
    assert "is not here and cannot be pulled: its registry cannot be reached" in done.stderr


def hungry(folder: Path, memory: str) -> subprocess.CompletedProcess[str]:
    """Builds with two compilers at once, who want about 300 MB each, in a container of that memory."""
    project = shutil.copytree(PROJECTS / "hungry", folder / "hungry")
    (project / "LICENSE").write_text(str(folder))  # other sources than last time, or the store has the wheel
    args = command("build", *DOCKER, "--store", STORE, "--memory", memory)
    env = {**os.environ, "MAX_JOBS": "2"}
    return subprocess.run(args, cwd=project, text=True, capture_output=True, check=False, env=env)


def test_a_compiler_killed_for_memory_is_tried_again_with_half_the_jobs(image: str, tmp_path: Path) -> None:
    """The container's limit lets the kernel kill one of two compilers, and is enough for one after the other."""
    done = hungry(tmp_path, "450m")
    assert done.returncode == 0, done.stderr
    assert "a compiler was killed for lack of memory with 2 jobs at once" in done.stderr
    assert "1 jobs" not in done.stderr


def test_a_compiler_that_memory_never_suffices_for(image: str, tmp_path: Path) -> None:
    done = hungry(tmp_path, "200m")
    assert done.returncode == 4
    assert "killed for lack of memory, with 1 jobs at once too" in done.stderr
    assert "give the build more memory" in done.stderr
    assert containers(STORE) == []


def test_what_a_back_end_asks_for_is_there(image: str, tmp_path: Path) -> None:
    """`asking` needs a package that only its back end names, and imports it while it builds."""
    project = shutil.copytree(PROJECTS / "asking", tmp_path / "asking")
    wheels = []
    for executor in ("docker", "local"):
        out = tmp_path / executor
        done = run(project, *DOCKER, "--executor", executor, "--out", out)
        assert done.returncode == 0, done.stderr
        wheels.append(next(out.glob("*.whl")).read_bytes())
    assert wheels[0] == wheels[1]
    (project / "asking_backend.py").write_text("raise RuntimeError('no back end today')\n")
    done = run(project, *DOCKER)
    assert done.returncode == 4
    assert "no back end today" in done.stderr
    assert containers(project / ".wheelmill") == []


def test_flags_reach_the_compiler_as_they_do_locally(
    image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dollars, quotes and spaces are a compiler's to read, and no shell's."""
    project = shutil.copytree(PROJECTS / "slow", tmp_path / "slow")
    (project / "seconds").write_text("0\n")
    monkeypatch.setenv("LDFLAGS", "-Wl,-rpath,$ORIGIN/../lib")
    monkeypatch.setenv("CXXFLAGS", """-DNAME='"a `b` $(c)"'""")
    wheels = []
    for executor in ("docker", "local"):
        out = tmp_path / executor
        done = run(project, *DOCKER, "--executor", executor, "--out", out, "cpu-torch2.13")
        assert done.returncode == 0, done.stderr
        with ZipFile(next(out.glob("*.whl"))) as archive:
            (library,) = [name for name in archive.namelist() if name.endswith(".so")]
            wheels.append(archive.read(library))
    assert all(b"$ORIGIN/../lib" in library for library in wheels)


def test_a_private_umask_and_a_colon_in_the_path(image: str, tmp_path: Path) -> None:
    project = shutil.copytree(PROJECTS / "slow", tmp_path / "a:b, c")
    (project / "seconds").write_text("0\n")
    (project / "answer.cpp").chmod(0o600)
    args = command("build", *DOCKER, "cpu-torch2.13")
    done = subprocess.run(args, cwd=project, text=True, capture_output=True, check=False, umask=0o077)
    assert done.returncode == 0, done.stderr


def test_programs_of_the_build_requirements_run(image: str, tmp_path: Path) -> None:
    """meson-python calls the program `meson`, which a build requirement brings."""
    project = shutil.copytree(PROJECTS / "configured", tmp_path / "configured")
    for executor in ("docker", "local"):
        done = run(project, *DOCKER, "--executor", executor)
        assert done.returncode == 0, done.stderr


def test_what_went_into_a_container_is_pinned_by_hash(image: str, tmp_path: Path) -> None:
    """The lock that a build writes is what a build elsewhere takes, without asking an index."""
    project = shutil.copytree(PROJECTS / "slow", tmp_path / "slow")
    (project / "seconds").write_text("0\n")
    lock = tmp_path / "wheelmill.lock"
    chosen = ("--lock-file", lock, "cpu-torch2.13")
    done = run(project, *DOCKER, *chosen)
    assert done.returncode == 0, done.stderr
    rows = json.loads(lock.read_text())["resolutions"].values()
    asked = {name.split("=")[0].split(">")[0] for row in rows for name in row["requirements"]}
    assert {"setuptools", "torch"} <= asked
    for row in rows:
        pins = [line for line in row["pins"].splitlines() if "==" in line]
        assert row["pins"].count("--hash=sha256:") >= len(pins) > 0
    before = lock.read_bytes()
    lock.write_bytes(before.replace(b"setuptools==", b"setuptools==0."))
    shutil.rmtree(project / ".wheelmill")
    done = run(project, *DOCKER, *chosen)
    assert done.returncode != 0
    assert "setuptools==0." in done.stderr


def test_no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = shutil.copytree(PROJECTS / "slow", tmp_path / "slow")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/absent.sock")
    done = run(project, "--executor", "docker", "--no-prove")
    assert done.returncode == 3
    assert "no container engine answers" in done.stderr
    assert "--executor local" in done.stderr


def test_a_compiler_cache_serves_containers_and_belongs_to_the_caller(image: str, tmp_path: Path) -> None:
    """The container's user is another: what it keeps, anybody who reaches the folder can remove, and one can."""
    project = shutil.copytree(PROJECTS / "cached", tmp_path / "cached")
    cache = tmp_path / "a:b, c" / "cache"
    wheels, found = [], []
    for arguments in ((), ("--compiler-cache", cache), ("--compiler-cache", cache)):
        args = command("build", *DOCKER, "--store", STORE, *arguments)
        done = subprocess.run(args, cwd=project, text=True, capture_output=True, check=False, umask=0o077)
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout)
        wheel = project / said["wheels"][0]["file"]
        wheels.append(wheel.read_bytes())
        found.append(said.get("compiler_cache", {}))
        shutil.rmtree(STORE / "wheels" / json.loads(Path(f"{wheel}.manifest.json").read_text())["key"])
    assert wheels[0] == wheels[1] == wheels[2]
    assert [(one["hits"], one["misses"]) for one in found[1:]] == [(0, 2), (2, 0)]
    kept = cache / "ccache"
    assert kept.stat().st_mode & 0o777 == 0o700
    made = list((kept / "objects").rglob("*"))
    assert {path.stat().st_uid for path in made} == {1000}
    assert all(path.stat().st_mode & 0o777 == (0o777 if path.is_dir() else 0o666) for path in made)
    assert containers(STORE) == []
