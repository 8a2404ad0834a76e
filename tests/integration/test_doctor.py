"""`wheelmill doctor` on this machine, made to lack or hold what the tests say: programs, torch's libraries, sense."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .conftest import PROJECTS, command, environment

if TYPE_CHECKING:
    from collections.abc import Callable

TORCH = "2.11.0"
NVCC = "Cuda compilation tools, release {release}, V{release}.1"
# As long as the doctor waits for a program, and some.
LONGEST = 60.0


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with torch for CUDA and without the libraries that it needs."""
    folder = tmp_path_factory.mktemp("doctor") / "env"
    subprocess.run(["uv", "venv", "-q", "--python", sys.executable, folder], check=True)
    wanted = [f"torch=={TORCH}", "typing_extensions", "setuptools<82"]
    subprocess.run(["uv", "pip", "install", "-q", "--no-deps", "--python", folder, *wanted], check=True)
    return folder


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment in which torch imports and builds."""
    folder = tmp_path_factory.mktemp("doctor") / "env"
    subprocess.run(["uv", "venv", "-q", "--python", sys.executable, folder], check=True)
    wanted = [f"torch=={TORCH}", "numpy", "ninja", "setuptools<82"]
    subprocess.run(["uv", "pip", "install", "-q", "--python", folder, *wanted], check=True)
    return folder


def stub(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True, parents=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def running(mark: str) -> list[str]:
    """The processes whose command line holds that word, the one that a shell runs and not the shell."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if mark.encode() in words:
                found.append(path.parent.name)
    return found


def only(folder: Path, *names: str) -> str:
    """A PATH with those programs of this machine and no other."""
    folder.mkdir(exist_ok=True)
    for name in names:
        found = shutil.which(name)
        assert found
        (folder / name).symlink_to(found)
    return str(folder)


@pytest.fixture
def ask(mill: Callable[..., subprocess.CompletedProcess[str]]) -> Callable[..., Any]:
    """The doctor's JSON; it answers, with a status that fits, and never with a traceback."""

    def run(*arguments: str | Path, **changes: str | None) -> Any:
        unset = dict.fromkeys(("CUDA_HOME", "CUDA_PATH", "CXX", "CC", "TORCH_CUDA_ARCH_LIST", "MAX_JOBS"))
        done = mill("doctor", "--json", *arguments, **{**unset, **changes})
        assert "Traceback" not in done.stderr, done.stderr
        told = json.loads(done.stdout)
        assert done.returncode == (1 if any(one["severity"] == "error" for one in told["findings"]) else 0)
        return {**told, "found": {one["id"]: one for one in told["findings"]}}

    return run


def test_torch_without_its_cuda_libraries(ask: Callable[..., Any], bare: Path) -> None:
    """What is told of it is what the loader says when it is imported after all."""
    found = ask("--python", bare)["found"]["torch-libraries"]
    done = subprocess.run([bare / "bin" / "python", "-c", "import torch"], text=True, capture_output=True, check=False)
    said = done.stderr.strip().splitlines()[-1]
    assert said.startswith("ImportError: lib")
    assert said.partition(": No such file")[0] in found["will"]
    assert f"torch=={TORCH}" in found["mend"]


def test_torch_is_read_without_being_imported(ask: Callable[..., Any], bare: Path) -> None:
    told = ask("--python", bare / "bin" / "python")
    assert told["environment"]["torch"] == {
        "version": f"{TORCH}+cu130",
        "cuda": "13.0",
        "cxx11_abi": True,
        "origin": "pytorch",
    }
    assert told["torch"]["source"] == "PyPI"
    assert {"75", "80", "90", "100", "120"} <= set(told["torch"]["sass"])
    assert told["torch"]["standard"] == told["torch"]["demanded"] == 17


def test_the_wrong_nvcc_first_on_path(ask: Callable[..., Any], bare: Path, tmp_path: Path) -> None:
    wrong = stub(tmp_path / "stubs" / "bin", "nvcc", f"echo '{NVCC.format(release='11.8')}'")
    told = ask("--python", bare, PATH=f"{wrong.parent}:{os.environ['PATH']}")
    assert told["toolkits"]["chosen"]["path"] == str(wrong)
    found = told["found"]["nvcc-major"]
    assert "mismatches the version that was used to compile PyTorch (13.0)" in found["will"]
    assert found["severity"] == "error"


def test_a_cuda_home_that_is_stated_goes_before_path(ask: Callable[..., Any], bare: Path, tmp_path: Path) -> None:
    for release, name in (("13.0", "home"), ("11.8", "path")):
        stub(tmp_path / name / "bin", "nvcc", f"echo '{NVCC.format(release=release)}'")
    path = f"{tmp_path}/path/bin:{os.environ['PATH']}"
    told = ask("--python", bare, PATH=path, CUDA_HOME=str(tmp_path / "home"))
    assert told["toolkits"]["chosen"]["release"] == "13.0"
    assert "nvcc-major" not in told["found"]
    assert "CUDA 11.8 (first on PATH)" in told["found"]["nvcc-several"]["so"]
    # CUDA_HOME holds no headers: it is a stub alone.
    assert "cuda-home-headers" in told["found"]


def test_without_an_nvcc_on_path(ask: Callable[..., Any], tmp_path: Path) -> None:
    told = ask(PATH=only(tmp_path / "bin", "python3", "g++", "ninja"))
    assert not [one for one in told["toolkits"]["nvccs"] if one["origin"] == "PATH"]
    if Path("/usr/local/cuda/bin/nvcc").exists():
        assert told["toolkits"]["chosen"]["path"] == "/usr/local/cuda/bin/nvcc"
    else:
        assert told["found"]["nvcc-absent"]["severity"] == "error"


@pytest.mark.parametrize(
    ("text", "words"),
    [("exit 3", "does not say"), ("echo hello", "does not say"), ("exec sleep 600", "did not answer")],
)
def test_an_nvcc_that_does_not_work(ask: Callable[..., Any], tmp_path: Path, text: str, words: str) -> None:
    broken = stub(tmp_path / "stubs" / "bin", "nvcc", text)
    told = ask(PATH=f"{broken.parent}:{os.environ['PATH']}")
    assert words in told["found"]["nvcc-broken"]["so"]


def test_without_a_compiler(ask: Callable[..., Any], tmp_path: Path) -> None:
    told = ask(PATH=only(tmp_path / "bin", "python3", "ninja"))
    assert told["found"]["compiler-absent"]["severity"] == "error"
    told = ask(CXX="g++-nonexistent")
    assert "CXX names one that is not there" in told["found"]["compiler-absent"]["so"]


@pytest.mark.parametrize("text", ["exec sleep {}", "sleep {} & wait", "trap '' TERM; sleep {}; sleep {}"])
def test_an_nvidia_smi_that_hangs_is_a_finding(ask: Callable[..., Any], tmp_path: Path, text: str) -> None:
    mark = f"600.{os.getpid()}"
    folder = stub(tmp_path / "stubs", "nvidia-smi", text.replace("{}", mark)).parent
    start = time.monotonic()
    told = ask(PATH=f"{folder}:{os.environ['PATH']}")
    assert time.monotonic() - start < LONGEST
    assert told["found"]["driver-hangs"]["severity"] == "error"
    assert told["smi"]["answer"] == "hangs"
    assert running(mark) == []


def test_a_stop_is_heard_while_the_driver_hangs(tmp_path: Path) -> None:
    mark = f"601.{os.getpid()}"
    folder = stub(tmp_path / "stubs", "nvidia-smi", f"sleep {mark}").parent
    env = environment(PATH=f"{folder}:{os.environ['PATH']}")
    with subprocess.Popen(command("doctor"), cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True) as process:
        while len(running(mark)) < 2:  # its own and the probe's
            time.sleep(0.1)
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=10)
    assert process.returncode == 130
    assert "interrupted" in said
    assert running(mark) == []


def test_an_nvidia_smi_that_fails(ask: Callable[..., Any], tmp_path: Path) -> None:
    said = "Failed to initialize NVML: Driver/library version mismatch"
    folder = stub(tmp_path / "stubs", "nvidia-smi", f"echo '{said}'; exit 18").parent
    found = ask(PATH=f"{folder}:{os.environ['PATH']}")["found"]["driver-fails"]
    assert said in found["so"]
    assert "restart the machine" in found["mend"]


@pytest.mark.parametrize(
    ("release", "changes", "check", "words"),
    [
        ("13.0", {}, "arch-list-unset", "IndexError: list index out of range"),
        (
            "13.0",
            {"TORCH_CUDA_ARCH_LIST": "banana"},
            "arch-list-wrong",
            "Unknown CUDA arch (banana) or GPU not supported",
        ),
        ("13.0", {"TORCH_CUDA_ARCH_LIST": "9.0"}, "cuda-home-guessed", "fatal error: cuda_runtime.h: No such file"),
        (
            "11.8",
            {"TORCH_CUDA_ARCH_LIST": "9.0"},
            "nvcc-major",
            "mismatches the version that was used to compile",
        ),
        ("13.0", {"CUDA_HOME": "/nonexistent"}, "cuda-home-wrong", "nvcc not found at '/nonexistent/bin/nvcc'"),
    ],
)
def test_what_is_said_to_happen_happens(
    ask: Callable[..., Any],
    whole: Path,
    tmp_path: Path,
    release: str,
    changes: dict[str, str],
    check: str,
    words: str,
) -> None:
    """A build fails with the words that the doctor said beforehand."""
    project = shutil.copytree(PROJECTS / "stranger", tmp_path / "project")
    folder = stub(tmp_path / "stubs" / "bin", "nvcc", f"echo '{NVCC.format(release=release)}'").parent
    env = {"PATH": f"{folder}:{os.environ['PATH']}", "FORCE_CUDA": "1", "CUDA_VISIBLE_DEVICES": "", **changes}
    told = ask("--python", whole, project, **env)
    assert words in told["found"][check]["will"]
    gone = {} if "CUDA_HOME" in changes else {"CUDA_HOME": None}
    done = subprocess.run(
        [whole / "bin" / "python", "setup.py", "build_ext"],
        cwd=project,
        env=environment(**{"TORCH_CUDA_ARCH_LIST": None, "CUDA_PATH": None, "CXX": None, **gone, **env}),
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode != 0
    assert words in done.stdout + done.stderr


SETUP = """
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension, CUDAExtension

setup(name="op", py_modules=[], cmdclass={"build_ext": BuildExtension}, ext_modules=[%s])
"""
HOST = "#include <torch/extension.h>\n"


@pytest.mark.parametrize(
    ("extension", "check", "words"),
    [
        ("CUDAExtension('op', ['op.cpp', 'op.cu'])", "sources-collide", "multiple rules generate"),
        (
            "CppExtension('op', ['op.cpp'], extra_compile_args=['-std=c++14', '-Wfatal-errors'])",
            "standard-pinned",
            "C++17 or later compatible compiler is required",
        ),
        ("CppExtension('op', ['op.cpp'])", "requires-torch", "ModuleNotFoundError: No module named 'torch'"),
    ],
)
def test_projects_fail_as_is_said(
    ask: Callable[..., Any], whole: Path, tmp_path: Path, extension: str, check: str, words: str
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "setup.py").write_text(SETUP % extension, encoding="utf-8")
    for name in ("op.cpp", "op.cu"):
        (project / name).write_text(HOST, encoding="utf-8")
    folder = stub(tmp_path / "cuda" / "bin", "nvcc", f"echo '{NVCC.format(release='13.0')}'; test $# = 1").parent
    env = {"PATH": f"{folder}:{os.environ['PATH']}", "TORCH_CUDA_ARCH_LIST": "9.0"}
    told = ask("--python", whole, project, **env)
    assert words in told["found"][check]["will"]
    isolated = ["uv", "build", "--wheel", "--python", whole / "bin" / "python"]
    done = subprocess.run(
        isolated if check == "requires-torch" else [whole / "bin" / "python", "setup.py", "build_ext"],
        cwd=project,
        env=environment(**{"CUDA_HOME": None, "CUDA_PATH": None, "CXX": None, **env}),
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode != 0
    assert words in done.stdout + done.stderr


def test_an_installed_package(ask: Callable[..., Any], bare: Path) -> None:
    found = ask("--python", bare, "--package", "torch")["found"]
    assert "libcudnn" in found["package-libraries"]["so"]
    assert ask("--python", bare, "--package", "no-such-package")["found"]["package-absent"]["severity"] == "error"
    told = ask("--python", bare, "--package", "typing_extensions")
    assert told["package"]["libraries"] == []
    assert told["found"]["package-no-library"]["severity"] == "info"


def test_projects_of_strangers(ask: Callable[..., Any], bare: Path) -> None:
    found = ask("--python", bare, PROJECTS / "stranger")["found"]
    assert found["requires-torch"]["severity"] == "error"
    assert found["torch-unpinned"]["severity"] == "warning"
    assert not [one for one in ask("--python", bare, PROJECTS / "faultops")["findings"] if one["area"] == "project"]


def test_odd_places_and_variables(ask: Callable[..., Any], tmp_path: Path) -> None:
    assert ask(HOME=None, USER=None)["version"] == 1
    assert ask(PATH="")["found"]["compiler-absent"]
    assert ask(PATH=None)["version"] == 1
    assert ask(CUDA_HOME="/nonexistent\n\x1b[2J")["found"]["cuda-home-wrong"]
    assert ask(TORCH_CUDA_ARCH_LIST="banana;+PTX")["version"] == 1
    assert ask(MAX_JOBS="many", CUDA_VISIBLE_DEVICES="nonsense", DOCKER_HOST="tcp://127.0.0.1:1")["version"] == 1
    assert ask(DOCKER_HOST="nonsense")["found"]["engine-absent"]
    assert ask(LD_LIBRARY_PATH=":::/nonexistent")["version"] == 1
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert ask(CUDA_HOME=str(loop), CXX=str(loop), PATH=f"{loop}:{os.environ['PATH']}")["version"] == 1
    folder = tmp_path / "empty"
    folder.mkdir()
    assert ask(folder)["found"]["project-empty"]["severity"] == "error"


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["/nonexistent"], 2, "is no folder"),
        (["x" * 5000], 2, "is no folder"),
        (["--python", "/nonexistent"], 2, "there is no such program"),
        (["--python", "/bin/true"], 3, "is no Python"),
        (["--python", "/bin/false"], 3, "did not say what it is"),
        ([".", "--package", "torch"], 2, "exclude one another"),
        (["--package", ""], 2, "names no package"),
    ],
)
def test_questions_that_have_no_answer(
    mill: Callable[..., subprocess.CompletedProcess[str]], arguments: list[str], status: int, words: str
) -> None:
    done = mill("doctor", *arguments)
    assert done.returncode == status, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = "import os, sys; os.rmdir(os.getcwd()); os.execv(sys.argv[1], sys.argv[1:])"
    args = [sys.executable, "-c", script, *command("doctor")]
    done = subprocess.run(args, cwd=gone, env=environment(), text=True, capture_output=True, check=False)
    assert "wheelmill/" not in done.stderr  # Python itself has words on it
    assert done.returncode in {0, 1, 3}


def test_the_report_for_people(mill: Callable[..., subprocess.CompletedProcess[str]], bare: Path) -> None:
    done = mill("doctor", "--python", bare, COLUMNS="80")
    assert "Something stands in the way: " in done.stdout
    assert "    → " in done.stdout
    assert f"torch         {TORCH}+cu130" in done.stdout
