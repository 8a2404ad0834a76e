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
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .conftest import PROJECTS, command, environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
    # Every build imports torch, whose bytecode is kept here once, whatever this process's environment says.
    first = [folder / "bin" / "python", "-c", "import torch.utils.cpp_extension"]
    subprocess.run(first, env=environment(PYTHONDONTWRITEBYTECODE=None), check=True)
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


def question(folder: Path, *arguments: str | Path, **changes: str | None) -> Any:
    """The doctor's JSON; it answers, with a status that fits, and never with a traceback."""
    unset = dict.fromkeys(("CUDA_HOME", "CUDA_PATH", "CXX", "CC", "TORCH_CUDA_ARCH_LIST", "MAX_JOBS"))
    done = subprocess.run(
        command("doctor", "--json", *arguments),
        cwd=folder,
        env=environment(**{**unset, **changes}),
        text=True,
        capture_output=True,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    told = json.loads(done.stdout)
    assert done.returncode == (1 if any(one["severity"] == "error" for one in told["findings"]) else 0)
    return {**told, "found": {one["id"]: one for one in told["findings"]}}


@pytest.fixture
def ask(tmp_path: Path) -> Callable[..., Any]:
    """The answer to a question that is asked in an empty folder; keyword arguments change its environment."""
    return partial(question, tmp_path)


HANGING = {
    "smi": ("nvidia-smi", "exec sleep {}"),
    "smi-with-child": ("nvidia-smi", "sleep {} & wait"),
    "smi-deaf": ("nvidia-smi", "trap '' TERM; sleep {}; sleep {}"),
    "nvcc": ("nvcc", "exec sleep {}"),
    "all": ("nvcc g++ g++-4 g++-5 g++-6 ninja nvidia-smi", "exec sleep {}"),
}


@pytest.fixture(scope="module", autouse=True)
def hung(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Any]]:
    """What is told beside programs that hang: all are asked at the start, for each takes as long as it may."""
    folder = tmp_path_factory.mktemp("hangs")

    def run(name: str) -> Any:
        programs, text = HANGING[name]
        path = folder / name / "bin"
        for program in programs.split():
            stub(path, program, text.replace("{}", mark(name)))
        start = time.monotonic()
        told = question(path, PATH=f"{path}:{os.environ['PATH']}")
        return {**told, "seconds": time.monotonic() - start}

    with ThreadPoolExecutor(len(HANGING)) as pool:
        asked = {name: pool.submit(run, name) for name in HANGING}
        yield lambda name: asked[name].result()


def mark(name: str) -> str:
    """An argument of `sleep` by which the processes of one question are known."""
    return f"60{list(HANGING).index(name)}.{os.getpid()}"


def test_torch_is_read_without_being_imported(ask: Callable[..., Any], bare: Path) -> None:
    """What is told of one that lacks its libraries is what the loader says when it is imported after all."""
    told = ask("--python", bare / "bin" / "python")
    done = subprocess.run([bare / "bin" / "python", "-c", "import torch"], text=True, capture_output=True, check=False)
    said = done.stderr.strip().splitlines()[-1]
    assert said.startswith("ImportError: lib")
    found = told["found"]["torch-libraries"]
    assert said.partition(": No such file")[0] in found["will"]
    assert f"torch=={TORCH}" in found["mend"]
    assert told["environment"]["torch"] == {
        "version": f"{TORCH}+cu130",
        "cuda": "13.0",
        "cxx11_abi": True,
        "origin": "pytorch",
    }
    assert told["torch"]["source"] == "PyPI"
    assert {"75", "80", "90", "100", "120"} <= set(told["torch"]["sass"])
    assert told["torch"]["standard"] == told["torch"]["demanded"] == 17
    # uv's environments have no pip.
    assert found["mend"].startswith(f"uv pip install --python {bare}/bin/python ")


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """The site-packages of an environment with a torch of two files."""
    subprocess.run(["uv", "venv", "-q", "--python", sys.executable, tmp_path / "env"], check=True)
    (site,) = tmp_path.glob("env/lib/python*/site-packages")
    for name, text in (
        ("torch/__init__.py", ""),
        ("torch/version.py", "__version__ = '2.11.0+cu130'\ncuda: Optional[str] = '13.0'\n"),
        (
            "torch-2.11.0.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: torch\nVersion: 2.11.0\nRequires-Dist: odd\n",
        ),
    ):
        (site / name).parent.mkdir(exist_ok=True)
        (site / name).write_text(text, encoding="utf-8")
    return site


def test_packages_whose_files_are_not_utf8_end_no_answer(ask: Callable[..., Any], odd: Path, tmp_path: Path) -> None:
    (odd / "odd-1.0.egg-info").mkdir()
    (odd / "odd-1.0.egg-info" / "PKG-INFO").write_bytes(b"Name: odd\nVersion: 1.0\nAuthor: Jos\xe9\n")
    with (odd / "torch" / "version.py").open("ab") as file:
        file.write(b"# Jos\xe9\n")
    told = ask("--python", tmp_path / "env")
    assert told["environment"]["torch"]["version"] == "2.11.0+cu130"
    assert "torch-requirements" not in told["found"]  # torch requires `odd`
    with (odd / "torch-2.11.0.dist-info" / "METADATA").open("ab") as file:
        file.write(b"Author: Jos\xe9\n")
    (odd / "torch" / "version.py").write_bytes(b"\xff\xfe")
    assert ask("--python", tmp_path / "env")["torch"]["root"] == str(odd / "torch")


def test_a_torch_that_lacks_files_of_its_own(ask: Callable[..., Any], bare: Path, odd: Path, tmp_path: Path) -> None:
    """What is told of each is what its import says; one without __init__.py imports, and is empty."""

    def said() -> str:
        load = [odd.parents[2] / "bin" / "python", "-c", "import torch._C"]
        return subprocess.run(load, text=True, capture_output=True, check=False).stderr.strip().splitlines()[-1]

    (whole,) = bare.glob("lib/python*/site-packages/torch/_C.*.so")
    shutil.copy(whole, odd / "torch" / "_C.cpython-27-x86_64-linux-gnu.so")
    found = ask("--python", tmp_path / "env")["found"]["torch-files"]
    assert f"{odd}/torch/{whole.name} of torch 2.11.0+cu130 is not there (_C.cpython-27" in found["so"]
    assert said() == "ModuleNotFoundError: No module named 'torch._C'"
    shutil.copy(whole, odd / "torch" / whole.name)
    found = ask("--python", tmp_path / "env")["found"]["torch-libraries"]
    assert said().partition(": No such file")[0] in found["will"]
    assert said().startswith("ImportError: libtorch_python.so")
    (odd / "torch" / "__init__.py").unlink()
    found = ask("--python", tmp_path / "env")["found"]
    assert f"{odd}/torch/__init__.py" in found["torch-files"]["so"]


def test_libraries_of_nvidias_wheels_in_another_folder(
    ask: Callable[..., Any], bare: Path, odd: Path, tmp_path: Path
) -> None:
    """As torch itself does it: by every folder of sys.path."""
    (own,) = bare.glob("lib/python*/site-packages")
    shutil.rmtree(odd / "torch")
    (odd / "torch").symlink_to(own / "torch")
    first = next(iter(ask("--python", tmp_path / "env")["torch"]["lacking"]))
    (tmp_path / "others" / "nvidia" / "any" / "lib").mkdir(parents=True)
    (tmp_path / "others" / "nvidia" / "any" / "lib" / first).touch()
    path = f"{tmp_path}/others:{os.environ.get('PYTHONPATH', '')}"
    assert first not in ask("--python", tmp_path / "env", PYTHONPATH=path)["torch"]["lacking"]
    (odd / "more.pth").write_text(f"{tmp_path}/others\n", encoding="utf-8")
    assert first not in ask("--python", tmp_path / "env")["torch"]["lacking"]


def test_the_wrong_nvcc_first_on_path(ask: Callable[..., Any], bare: Path, tmp_path: Path) -> None:
    wrong = stub(tmp_path / "stubs" / "bin", "nvcc", f"echo '{NVCC.format(release='11.8')}'")
    told = ask("--python", bare, PATH=f"{wrong.parent}:{os.environ['PATH']}")
    assert told["toolkits"]["chosen"]["path"] == str(wrong)
    found = told["found"]["nvcc-major"]
    assert "mismatches the version that was used to compile PyTorch (13.0)" in found["will"]
    assert found["severity"] == "error"


HOST_CONFIG = """
#if __GNUC__ > 15
#error -- unsupported GNU version! gcc versions later than 15 are not supported!
#if (__clang_major__ >= 21) || (__clang_major__ < 3)
#error -- unsupported clang version! clang version must be less than 21 and greater than 3.2 .
"""


def test_a_clang_that_the_toolkit_refuses(ask: Callable[..., Any], tmp_path: Path) -> None:
    nvcc = stub(tmp_path / "cuda" / "bin", "nvcc", f"echo '{NVCC.format(release='13.0')}'")
    header = tmp_path / "cuda" / "include" / "crt" / "host_config.h"
    header.parent.mkdir(parents=True)
    header.write_text(HOST_CONFIG)
    clang = stub(
        tmp_path / "bin", "clang++", 'case $1 in --version) echo "clang version 21.1.4";; *) echo 21.1.4;; esac'
    )
    told = ask(CUDA_HOME=str(nvcc.parents[1]), CXX=str(clang))
    assert (told["toolkits"]["chosen"]["gcc"], told["toolkits"]["chosen"]["clang"]) == (15, 20)
    found = told["found"]["compiler-new"]
    assert "takes clang 20 at most" in found["so"]
    assert "clang version must be less than 21" in found["will"]


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


LIBCUDA = """
extern "C" int cuDriverGetVersion(int* version) { *version = 13000; return 0; }
extern "C" int cuInit(unsigned) { return 802; }
extern "C" int cuGetErrorName(int, const char** name) { *name = "CUDA_ERROR_SYSTEM_NOT_READY"; return 0; }
"""


def test_a_driver_whose_library_does_not_start(ask: Callable[..., Any], tmp_path: Path) -> None:
    """nvidia-smi shows the GPU of such a machine, and no CUDA program runs there."""
    library = tmp_path / "lib" / "libcuda.so.1"
    library.parent.mkdir()
    command = ["g++", "-shared", "-fPIC", "-x", "c++", "-", "-o", library]
    subprocess.run(command, input=LIBCUDA, text=True, check=True)
    smi = stub(tmp_path / "stubs", "nvidia-smi", "echo 'NVIDIA H200, 9.0, 580.65.06'")
    told = ask(PATH=f"{smi.parent}:{os.environ['PATH']}", LD_LIBRARY_PATH=str(library.parent))
    assert told["environment"]["driver"] == {
        "version": "580.65.06",
        "cuda": "13.0",
        "fails": "CUDA_ERROR_SYSTEM_NOT_READY (802)",
    }
    assert "CUDA does not start here" in told["environment"]["notes"][0]
    if told["system"]["container"]:  # this one has no GPU, whatever a library says
        assert "gpu-not-given" in told["found"]
    else:
        assert "nvidia-fabricmanager" in told["found"]["driver-cuda"]["mend"]


@pytest.mark.parametrize(
    ("text", "words"),
    [("exit 3", "does not say"), ("echo hello", "does not say")],
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
    told = ask(CUDAHOSTCXX="/nonexistent/g++")  # CMake alone reads it
    assert "compiler-absent" not in told["found"]
    assert told["found"]["compiler-variable"]["severity"] == "warning"


def test_a_compiler_behind_a_launcher(ask: Callable[..., Any], tmp_path: Path) -> None:
    stub(tmp_path / "bin", "ccache", 'exec "$@"')
    own = stub(tmp_path / "bin", "g++-4", "echo Free Software Foundation 4.8.5")
    told = ask(CXX="ccache g++-4 -m64", PATH=f"{tmp_path}/bin:{os.environ['PATH']}")["compiler"]
    assert (told["path"], told["version"], told["kind"]) == (str(own), "4.8.5", "gcc")
    assert [one["path"] for one in told["others"] if one["path"].endswith("/g++")][:1] == [shutil.which("g++")]


def test_a_stop_is_heard_while_the_driver_hangs(tmp_path: Path) -> None:
    own = f"700.{os.getpid()}"
    folder = stub(tmp_path / "stubs", "nvidia-smi", f"sleep {own}").parent
    env = environment(PATH=f"{folder}:{os.environ['PATH']}")
    with subprocess.Popen(command("doctor"), cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True) as process:
        while len(running(own)) < 2:  # its own and the probe's
            time.sleep(0.1)
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=10)
    assert process.returncode == 130
    assert "interrupted" in said
    assert running(own) == []


def test_an_nvidia_smi_that_fails(ask: Callable[..., Any], tmp_path: Path) -> None:
    said = "Failed to initialize NVML: Driver/library version mismatch"
    folder = stub(tmp_path / "stubs", "nvidia-smi", f"echo '{said}'; exit 18").parent
    found = ask(PATH=f"{folder}:{os.environ['PATH']}")["found"]["driver-fails"]
    assert said in found["so"]
    assert "restart the machine" in found["mend"]


@contextlib.contextmanager
def building(args: list[str | Path], project: Path, env: dict[str, str]) -> Iterator[Callable[[], str]]:
    """What a build says that fails, while the doctor is asked."""
    gone = dict.fromkeys(("CUDA_HOME", "CUDA_PATH", "CXX", "TORCH_CUDA_ARCH_LIST"))
    env = environment(**{**gone, **env})
    with subprocess.Popen(
        args, cwd=project, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as build:

        def failure() -> str:
            said, _ = build.communicate()
            assert build.returncode != 0
            return said

        yield failure


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
        (
            "13.0",
            {"TORCH_CUDA_ARCH_LIST": "9.0", "CXX": "env g++"},
            "compiler-variable",
            "The current installed version of env (0.0.0) is less than the minimum required version by CUDA 13.0",
        ),
        ("13.0", {"TORCH_CUDA_ARCH_LIST": "9.0 "}, "arch-list-wrong", "Unknown CUDA arch () or GPU not supported"),
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
    with building([whole / "bin" / "python", "setup.py", "build_ext"], project, env) as failure:
        told = ask("--python", whole, project, **env)
        assert words in told["found"][check]["will"]
        assert words in failure()


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
    isolated: list[str | Path] = ["uv", "build", "--wheel", "--python", whole / "bin" / "python"]
    local = [whole / "bin" / "python", "setup.py", "build_ext"]
    with building(isolated if check == "requires-torch" else local, project, env) as failure:
        told = ask("--python", whole, project, **env)
        assert words in told["found"][check]["will"]
        assert words in failure()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with packages of one library each, which needs another that is gone: `op`, whose RECORD lists it;
    `edited`, which lies elsewhere; `pure`, without a library; and `one`, a module that is a library itself.
    """
    folder = tmp_path_factory.mktemp("installed")
    env = folder / "env"
    subprocess.run(["uv", "venv", "-q", "--python", sys.executable, env], check=True)
    (site,) = env.glob("lib/python*/site-packages")
    (folder / "gone.c").write_text("int gone(void) { return 0; }\n", encoding="utf-8")
    (folder / "op.c").write_text("int gone(void); int op(void) { return gone(); }\n", encoding="utf-8")
    gcc = ["gcc", "-shared", "-fPIC", "-o"]
    subprocess.run([*gcc, "libgone.so", "gone.c"], cwd=folder, check=True)
    subprocess.run([*gcc, "op.so", "op.c", "-L.", "-lgone"], cwd=folder, check=True)
    source = folder / "source"
    for name, library, record in (
        ("op", site / "op" / "op.so", "op/op.so,,\n"),
        ("edited", source / "edited" / "op.so", None),
        ("one", source / "one.so", None),
        ("pure", site / "pure" / "op.py", "pure/op.py,,\n"),
    ):
        library.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / "op.so" if library.suffix == ".so" else __file__, library)
        told = site / f"{name}-1.0.dist-info"
        told.mkdir()
        (told / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
        if record is not None:
            (told / "RECORD").write_text(record, encoding="utf-8")
    (site / "edited.pth").write_text(f"{source}\n", encoding="utf-8")
    return env


@pytest.mark.parametrize("name", ["op", "edited", "one"])
def test_an_installed_package(ask: Callable[..., Any], installed: Path, name: str) -> None:
    told = ask("--python", installed, "--package", name)
    found = told["found"]["package-libraries"]
    ((library,), severity) = ([one["path"] for one in told["package"]["libraries"]], found["severity"])
    load = [installed / "bin" / "python", "-c", f"import ctypes; ctypes.CDLL({library!r})"]
    said = subprocess.run(load, text=True, capture_output=True, check=False).stderr.strip().splitlines()[-1]
    assert severity == "error"
    assert "libgone.so: cannot open shared object file" in said
    assert "libgone.so: cannot open shared object file" in found["will"]


def test_packages_without_a_library(ask: Callable[..., Any], installed: Path) -> None:
    absent = ask("--python", installed, "--package", "no-such-package")["found"]
    assert absent["package-absent"]["severity"] == "error"
    told = ask("--python", installed, "--package", "pure")
    assert told["package"]["libraries"] == []
    assert told["found"]["package-no-library"]["severity"] == "info"


def test_projects_of_strangers(ask: Callable[..., Any], bare: Path) -> None:
    found = ask(PROJECTS / "stranger")["found"]
    assert found["requires-torch"]["severity"] == "error"
    assert found["torch-unpinned"]["severity"] == "warning"
    assert not [one for one in ask("--python", bare, PROJECTS / "faultops")["findings"] if one["area"] == "project"]


def test_odd_places_and_variables(ask: Callable[..., Any], tmp_path: Path) -> None:
    odd = {"HOME": None, "USER": None, "MAX_JOBS": "many", "CUDA_VISIBLE_DEVICES": "nonsense"}
    told = ask(PATH="", TORCH_CUDA_ARCH_LIST="banana;+PTX", LD_LIBRARY_PATH=":::/nonexistent", **odd)
    assert told["found"]["compiler-absent"]
    assert told["found"]["arch-list-wrong"]
    assert ask(PATH=None, DOCKER_HOST="tcp://127.0.0.1:1")["version"] == 1
    told = ask(CUDA_HOME="/nonexistent\n\x1b[2J", DOCKER_HOST="nonsense")
    assert told["found"]["cuda-home-wrong"]
    assert told["found"]["engine-absent"]
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    folder = tmp_path / "empty"
    folder.mkdir()
    long = f"/{'x' * 5000}"
    odd = {"CXX": str(loop), "CC": long, "PATH": f"{loop}:{long}:{os.environ['PATH']}"}
    told = ask(folder, CUDA_HOME=str(loop), PYTHONPATH=f"{os.environ.get('PYTHONPATH', '')}:{long}", **odd)
    assert told["found"]["project-empty"]["severity"] == "error"


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
    assert "flags" not in done.stderr  # `which` has such
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


@pytest.mark.parametrize("name", [name for name in HANGING if name != "nvcc"])
def test_an_nvidia_smi_that_hangs_is_a_finding(hung: Callable[[str], Any], name: str) -> None:
    told = hung(name)
    assert told["seconds"] < LONGEST
    assert told["found"]["driver-hangs"]["severity"] == "error"
    assert told["smi"]["answer"] == "hangs"
    assert running(mark(name)) == []


def test_programs_that_hang_take_the_time_of_one(hung: Callable[[str], Any]) -> None:
    told = hung("all")
    assert told["seconds"] < LONGEST
    assert told["compiler"]["answer"] == told["ninja"]["answer"] == told["smi"]["answer"] == "hangs"
    assert [one["answer"] for one in told["compiler"]["others"][:3]] == ["hangs"] * 3
    assert told["toolkits"]["chosen"]["answer"] == "hangs"
    assert running(mark("all")) == []


def test_an_nvcc_that_hangs_is_a_finding(hung: Callable[[str], Any]) -> None:
    assert "did not answer" in hung("nvcc")["found"]["nvcc-broken"]["so"]
    assert running(mark("nvcc")) == []
