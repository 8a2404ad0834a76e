"""What the doctor's checks find in facts of many machines, projects and packages; and that its table is whole."""

from __future__ import annotations

import string
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from wheelmill import doctor, doctor_findings, doctor_view
from wheelmill.doctor_case import Case
from wheelmill.doctor_extension import Tables
from wheelmill.doctor_facts import (
    Architectures,
    Compiler,
    Disk,
    Engine,
    Interpreter,
    Machine,
    Named,
    Nvcc,
    Package,
    PackageLibrary,
    Program,
    Project,
    Standard,
    Stated,
    System,
    Toolkits,
    TorchFiles,
)
from wheelmill.which_env import Driver, Environment, Gpu, Libc, Python, Torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from wheelmill.doctor_findings import Finding
    from wheelmill.facts import Facts

DOCS = Path(__file__).parents[2] / "docs" / "doctor.md"
CUDA = "/usr/local/cuda-13.0"
NVCC = Nvcc(path=f"{CUDA}/bin/nvcc", origin="PATH", home=CUDA, release="13.0", gcc=15)
OLD = Nvcc(path="/usr/bin/nvcc", origin="PATH", home="/usr", release="11.8", gcc=11)
H200 = Gpu(name="NVIDIA H200", capability="9.0")
TORCH = Torch(version="2.11.0+cu130", cuda="13.0", cxx11_abi=True, origin="pytorch")
ENV = Environment(
    python=Python(version="3.12.3", abi="cp312"),
    system="linux",
    machine="x86_64",
    libc=Libc(kind="glibc", version="2.36"),
    torch=TORCH,
    driver=Driver(version="580.65.06", cuda="13.0"),
    gpus=(H200,),
)
NODES: dict[str, str | None] = {"/dev/nvidia-uvm": None, "/dev/nvidia0": None, "/dev/nvidiactl": None}
FILES = TorchFiles(
    root="/env/torch",
    source="PyPI",
    standard=17,
    demanded=17,
    setuptools="setuptools<82",
    sass=("75", "80", "90"),
    tables=Tables(
        arches=("8.0", "8.6", "9.0", "9.0a", "7.0", "12.0"), names={"Ampere": "8.0;8.6+PTX", "Hopper": "9.0+PTX"}
    ),
)
SOUND = Machine(
    env=ENV,
    python=Interpreter(
        executable="/env/bin/python", include="/inc", headers=True, tools={"pip": "26.0", "setuptools": "81.0.0"}
    ),
    torch=FILES,
    smi=Program(path="/usr/bin/nvidia-smi", answer="works", status=0),
    toolkits=Toolkits(nvccs=(NVCC,), home=CUDA, origin="PATH", chosen=NVCC),
    compiler=Compiler(path="/usr/bin/g++", kind="gcc", version="12.2.0"),
    ninja=Program(path="/usr/bin/ninja", answer="works", status=0, said="1.11"),
    system=System(
        installer="apt-get",
        cores=8,
        memory=64 << 30,
        jobs=8,
        glibcxx="3.4.30",
        nodes=NODES,
        linux_driver="/usr/lib/x86_64-linux-gnu/libcuda.so.1",
    ),
    engine=Engine(state="answers"),
)
PROJECT = Project(root="/src", files=("setup.py", "pyproject.toml"), setup=True, cuda=True, unstable="csrc/op.cpp")
LIBRARY = PackageLibrary(path="/env/op.so", sass=("80",), ptx=("80",), isa=(9, 0))


BOUND = replace(FILES, tables=replace(FILES.tables, gcc={"13.0": 13}, clang={"13.0": 18}))
GET = "apt-get install -y g++"
MUTE = Driver(version="580.65.06")


def failing(how: str) -> Driver:
    return Driver(version="580.65.06", cuda="13.0", fails=how)


def naming(variable: str, value: str, program: str, launcher: str | None = None, path: str | None = None) -> Any:
    """A machine whose environment names a compiler."""
    one = Named(variable=variable, value=value, program=program, launcher=launcher, path=path)
    return {"compiler": {"named": (one,)}}


def machine(**parts: Any) -> Machine:
    """The sound machine with some of its parts changed; `env` and others given as a dict change single facts."""
    changed: dict[str, Any] = {}
    for name, value in parts.items():
        now = getattr(SOUND, name)
        if isinstance(value, dict):
            value = now.model_copy(update=value) if name == "env" else replace(now, **value)  # noqa: PLW2901
        changed[name] = value
    return replace(SOUND, **changed)


@pytest.fixture
def judged(known: Facts) -> Callable[..., dict[str, Finding]]:
    def judge(project: Project | None = None, package: Package | None = None, **parts: Any) -> dict[str, Finding]:
        case = Case(machine=machine(**parts), known=known, project=project, package=package)
        return {one.id: one for one in doctor.judge(case)}

    return judge


def test_nothing_stands_in_the_way_of_a_sound_machine(judged: Callable[..., dict[str, Finding]]) -> None:
    assert judged() == {}
    package = Package(name="op", version="1", libraries=(replace(LIBRARY, sass=("90",)),))
    assert judged(package=package) == {}
    sound = replace(PROJECT, requires=("setuptools", "torch==2.11.*", "ninja"), imports_torch=True)
    assert judged(project=sound) == {}


@pytest.mark.parametrize(
    ("parts", "check", "severity", "words"),
    [
        ({"python": {"headers": False}}, "python-headers", "error", "apt-get install -y python3.12-dev"),
        (
            {"env": {"torch": Torch(version=None), "python": Python(version="3.7.1", abi="cp37m")}},
            "python-no-torch",
            "warning",
            "uv venv --python 3.1",
        ),
        ({"env": {"torch": None}}, "torch-unknown", "warning", "which torch"),
        ({"env": {"torch": Torch(version=None)}}, "torch-absent", "warning", "pip install torch"),
        (
            {"torch": replace(FILES, lacking={"libcudart.so.13": "libtorch_cuda.so"})},
            "torch-libraries",
            "error",
            "'ImportError: libcudart.so.13",
        ),
        ({"torch": replace(FILES, absent=("triton",))}, "torch-requirements", "warning", "pip install 'torch==2.11.0'"),
        ({"torch": replace(FILES, absent=("typing-extensions",))}, "torch-requirements", "error", "typing-extensions"),
        ({"torch": replace(FILES, damaged=("a.so", "cannot be read: cut"))}, "torch-files", "error", "a.so of torch"),
        (
            {"env": {"torch": Torch(version="2.11.0+cpu", cuda="cpu", origin="pytorch")}},
            "torch-cpu",
            "warning",
            "/cu130",
        ),
        (
            {"env": {"torch": Torch(version="2.11.0a0+git1", cuda="13.0", origin="other")}},
            "torch-origin",
            "info",
            "undefined symbol",
        ),
        ({"python": {"tools": {}}}, "setuptools-absent", "error", "setuptools<82"),
        ({"python": {"tools": {"setuptools": "84.0"}}}, "setuptools-refused", "error", "requires setuptools<82"),
        (
            {"torch": replace(FILES, setuptools=None, pkg_resources=True)},
            "setuptools-pkg-resources",
            "error",
            "setuptools<70",
        ),
        ({"ninja": None}, "ninja-absent", "warning", "pip install ninja"),
        (
            {"env": {"driver": Driver(version=None), "gpus": ()}, "smi": None},
            "driver-absent",
            "info",
            "no NVIDIA driver",
        ),
        (
            {"env": {"driver": Driver(version=None), "gpus": ()}, "smi": None, "system": {"pci": ("0000:01:00.0",)}},
            "driver-unloaded",
            "warning",
            "0000:01:00.0",
        ),
        ({"smi": Program(path="nvidia-smi", answer="hangs")}, "driver-hangs", "error", "hang"),
        (
            {"smi": Program(path="smi", answer="fails", status=18, said="Driver/library version mismatch")},
            "driver-fails",
            "error",
            "restart the machine",
        ),
        ({"env": {"gpus": None}}, "driver-mute", "error", "580.65.06"),
        (
            {"env": {"driver": failing("CUDA_ERROR_SYSTEM_NOT_READY (802)")}},
            "driver-cuda",
            "error",
            "nvidia-fabricmanager",
        ),
        ({"env": {"gpus": None}, "system": {"nodes": {}, "container": True}}, "gpu-not-given", "warning", "--gpus all"),
        ({"env": {"gpus": ()}, "system": {"nodes": {"/dev/nvidia0": "video"}}}, "gpu-refused", "error", "-aG video"),
        (
            {"env": {"driver": MUTE, "gpus": None}, "system": {"linux_driver": None}},
            "driver-files",
            "error",
            "libnvidia-compute-580",
        ),
        (
            {"env": {"gpus": ()}, "system": {"nodes": {"/dev/nvidia0": None}}},
            "driver-nodes",
            "error",
            "nvidia-modprobe",
        ),
        (
            {"env": {"driver": failing("CUDA_ERROR_UNKNOWN (999)")}, "system": {"nodes": {"/dev/nvidia0": None}}},
            "driver-uvm",
            "error",
            "nvidia-modprobe",
        ),
        ({"env": {"driver": Driver(version="550.54", cuda="12.4")}}, "driver-old", "error", "driver 580 or later"),
        ({"env": {"gpus": ()}, "system": {"visible": ""}}, "gpu-none", "warning", "unset CUDA_VISIBLE_DEVICES"),
        ({"env": {"gpus": (Gpu(name="Oddity"),)}}, "gpu-unknown", "warning", "Oddity"),
        ({"env": {"gpus": (Gpu(capability="7.0"),)}}, "torch-no-code", "error", "torch==2.10.*' --index-url"),
        (
            {"torch": replace(FILES, sass=("75",), ptx=("80",), isa=(9, 3))},
            "torch-ptx",
            "error",
            "needs a driver of CUDA 13.3",
        ),
        ({"toolkits": Toolkits()}, "nvcc-absent", "error", "wheelmill build"),
        ({"toolkits": {"chosen": replace(NVCC, release=None)}}, "nvcc-broken", "error", "does not say"),
        ({"toolkits": Toolkits(home="/nowhere", origin="CUDA_HOME")}, "cuda-home-wrong", "error", "unset CUDA_HOME"),
        (
            {
                "toolkits": Toolkits(
                    nvccs=(replace(NVCC, path="/usr/local/bin/nvcc", home="/usr/local", headers=False), NVCC),
                    home="/usr/local",
                    origin="PATH",
                    chosen=replace(NVCC, path="/usr/local/bin/nvcc", home="/usr/local", headers=False),
                )
            },
            "cuda-home-guessed",
            "error",
            f"export CUDA_HOME={CUDA} ",
        ),
        (
            {"toolkits": Toolkits(nvccs=(replace(NVCC, path="/x/y/nvcc", home="/x"), NVCC), home="/x", origin="PATH")},
            "cuda-home-guessed",
            "error",
            "/x/y/nvcc is first on PATH, so torch takes /x for CUDA_HOME, which has no bin/nvcc",
        ),
        (
            {"toolkits": {"chosen": replace(NVCC, headers=False), "origin": "CUDA_HOME"}},
            "cuda-home-headers",
            "error",
            "cuda_runtime.h",
        ),
        (
            {"toolkits": Toolkits(nvccs=(OLD, NVCC), home="/usr", origin="PATH", chosen=OLD)},
            "nvcc-major",
            "error",
            f"export CUDA_HOME={CUDA} ",
        ),
        ({"toolkits": {"chosen": replace(NVCC, release="13.2")}}, "nvcc-minor", "info", "with a warning"),
        (
            {"toolkits": Toolkits(nvccs=(OLD, NVCC), home=CUDA, origin="CUDA_HOME", chosen=NVCC)},
            "nvcc-several",
            "warning",
            "first on PATH",
        ),
        ({"env": {"gpus": (Gpu(capability="7.0"),)}}, "nvcc-gpu", "error", "compute_70"),
        ({"toolkits": {"arch_list": "banana"}}, "arch-list-wrong", "error", "'9.0'"),
        ({"toolkits": {"arch_list": ";"}}, "arch-list-wrong", "error", "Unknown CUDA arch () or"),
        ({"toolkits": {"arch_list": "8.0  9.0"}}, "arch-list-wrong", "error", "one part is empty"),
        ({"toolkits": {"arch_list": "9.0 "}}, "arch-list-wrong", "error", "is '9.0 ', and"),
        ({"toolkits": {"arch_list": "8.0\n9.0"}}, "arch-list-wrong", "error", "is no target"),
        ({"toolkits": {"arch_list": "9.0f 9.0"}}, "arch-list-wrong", "error", "9.0f is no target that torch 2.11.0"),
        ({"toolkits": {"arch_list": "8.0;9.0 9.0a+PTX"}}, "arch-list-wrong", None, ""),
        ({"toolkits": {"arch_list": "Hopper+Tegra"}}, "arch-list-wrong", "error", "9.0+PTX+Tegra is no target."),
        ({"toolkits": {"arch_list": "7.0 9.0"}}, "arch-list-toolkit", "error", "7.5 to 12.1"),
        ({"toolkits": {"arch_list": "Ampere;12.0"}}, "arch-list-gpu", None, ""),
        ({"toolkits": {"arch_list": "12.0"}}, "arch-list-gpu", "error", "'12.0 9.0'"),
        ({"env": {"gpus": ()}}, "arch-list-unset", "warning", "12.0"),
        ({"env": {"gpus": ()}, "toolkits": {"arch_list": "native"}}, "arch-list-unset", "warning", "is 'native'"),
        ({"compiler": Compiler(path=None)}, "compiler-absent", "error", "apt-get install -y g++"),
        ({"compiler": Compiler(path="g++", answer="fails")}, "compiler-broken", "error", "does not run"),
        ({"compiler": {"version": "16.1"}}, "compiler-new", "error", "g++-15"),
        (
            {"compiler": {"kind": "clang", "version": "22.1.0"}, "toolkits": {"chosen": replace(NVCC, clang=21)}},
            "compiler-new",
            "error",
            "must be less than 22",
        ),
        (
            {"compiler": {"kind": "clang", "version": "21.0"}, "toolkits": {"chosen": replace(NVCC, clang=21)}},
            "compiler-new",
            None,
            "",
        ),
        ({"compiler": {"version": "8.5.0"}}, "compiler-old", "error", "needs GCC 9"),
        ({"compiler": {"version": "15.1.0"}}, "compiler-new", None, ""),
        (
            {"torch": BOUND, "compiler": {"version": "14.2.0"}},
            "compiler-new",
            "error",
            "g++ (14.2.0) is greater than the maximum required version by CUDA 13.0'",
        ),
        ({"torch": BOUND, "compiler": {"version": "14.2.0", "checked": False}}, "compiler-new", None, ""),
        (
            {"torch": BOUND, "compiler": {"version": "16.1"}},
            "compiler-new",
            "error",
            "torch 2.11.0+cu130 takes GCC 13 at",
        ),
        (
            {"torch": BOUND, "compiler": {"version": "16.1", "checked": False}},
            "compiler-new",
            "error",
            "than 15 are not",
        ),
        (
            {"torch": BOUND, "compiler": {"kind": "clang", "version": "19.1"}},
            "compiler-new",
            "error",
            "torch 2.11.0+cu130 takes clang 18 at most with CUDA 13.0",
        ),
        (naming("CC", "/nothing/gcc", "/nothing/gcc"), "compiler-variable", "error", "mend: unset CC"),
        (naming("CC", "ccache gcc", "gcc", "ccache"), "compiler-variable", "error", "mend: export CC=gcc"),
        (naming("CC", "", ""), "compiler-variable", "error", "CC is '', which nvcc is given"),
        (naming("CC", "gcc", "gcc", path="/usr/bin/gcc"), "compiler-variable", None, ""),
        (naming("NVCC_CCBIN", "/nothing", "/nothing"), "compiler-variable", "error", "host compiler properties"),
        (naming("PYTORCH_NVCC", "ccache /x/nvcc", "/x/nvcc"), "compiler-variable", "error", "'/x/nvcc: not found'"),
        (naming("CUDAHOSTCXX", "/nothing", "/nothing"), "compiler-variable", "warning", "CMake stops"),
        (naming("CXX", "ccache g++", "g++", "ccache", "/usr/bin/g++"), "compiler-variable", None, ""),
        (
            {"torch": BOUND} | naming("CXX", "ccache g++", "g++", "ccache", "/usr/bin/g++"),
            "compiler-variable",
            "error",
            "version of ccache (0.0.0) is less than the minimum required version by CUDA 13.0",
        ),
        ({"env": {"libc": Libc(kind="musl", version="1.2")}}, "libc-musl", "error", "musl"),
        (
            {"env": {"torch": Torch(version=None), "libc": Libc(kind="glibc", version="2.17")}},
            "glibc-old",
            "warning",
            "torch 2.7 and later",
        ),
        (
            {"system": {"conda_glibcxx": "3.4.26", "conda_libstdcxx": "/conda/lib/libstdc++.so.6"}},
            "libstdcxx-conda",
            "warning",
            "GLIBCXX_3.4.30",
        ),
        ({"system": {"memory": 4 << 30, "jobs": 2}}, "memory-jobs", "warning", "export MAX_JOBS=2"),
        ({"system": {"memory": 4 << 30, "jobs": 2, "stated_jobs": 2}}, "memory-jobs", None, ""),
        ({"system": {"memory": 4 << 30, "jobs": 2, "stated_jobs": 64}}, "memory-jobs", "warning", "MAX_JOBS is 64"),
        ({"system": {"stated_jobs": 1000}}, "memory-jobs", "warning", "export MAX_JOBS=8"),
        ({"system": {"stated_jobs": 32}}, "memory-jobs", None, ""),
        ({"system": {"stated_jobs": 0}}, "memory-jobs", "warning", "no limit"),
        ({"system": {"disks": (Disk(what="the build", folder="/x", free=1 << 20),)}}, "disk-full", "warning", "/x"),
        ({"env": {"wsl": True}}, "wsl-driver", "error", "wsl --update"),
        (
            {"env": {"wsl": True}, "system": {"wsl_driver": True, "linux_driver": "/usr/lib/libcuda.so.1"}},
            "wsl-driver",
            "error",
            "apt-get purge",
        ),
        (
            {"env": {"wsl": True}, "toolkits": {"home": "/mnt/c/CUDA", "origin": "CUDA_PATH"}},
            "wsl-toolkit",
            "error",
            "unset CUDA_PATH",
        ),
        ({"engine": Engine(state="absent", said="none", remedy="start one")}, "engine-absent", "info", "start one"),
        ({"engine": Engine(state="refuses", said="no", remedy="join")}, "engine-refused", "warning", "join"),
        ({"engine": Engine(state="answers", gpu=("no way", "install it"))}, "engine-gpu", "warning", "install it"),
    ],
)
def test_machines(
    judged: Callable[..., dict[str, Finding]], parts: dict[str, Any], check: str, severity: str | None, words: str
) -> None:
    found = judged(**parts)
    if severity is None:
        assert check not in found
        return
    one = found[check]
    assert one.severity == severity
    assert words in f"{one.so}. {one.will}. mend: {one.mend}"


PINNED = Standard(text="-std=c++17", file="setup.py", line=3, value=17)
OF_CMAKE = replace(PINNED, text="CMAKE_CXX_STANDARD 17", file="CMakeLists.txt")
ARCHS = Architectures(text="arch=compute_80,code=sm_80", file="setup.py", line=4, sass=("80",))
LOOKS = Stated(text="find_package(Torch)", file="CMakeLists.txt", line=3)
IN_CMAKE = replace(ARCHS, file="CMakeLists.txt", variable="CMAKE_CUDA_ARCHITECTURES")


@pytest.mark.parametrize(
    ("change", "check", "severity", "words"),
    [
        ({"files": ()}, "project-empty", "error", "/src"),
        ({"broken": (("setup.py", "setup.py:1 is not Python", "stops"),)}, "project-unreadable", "error", "setup.py:1"),
        ({"unread": ("too large",)}, "project-unread", "warning", "too large"),
        ({"collisions": (("a/op.cpp", "a/op.cu"),)}, "sources-collide", "error", "git mv a/op.cu a/op_cuda.cu"),
        ({"collisions": (("a.cpp", "a.cu"),), "guessed": True}, "sources-collide", "warning", "if they are of one"),
        ({"standards": (replace(PINNED, value=14),)}, "standard-pinned", "error", "needs C++17"),
        ({"standards": (PINNED,)}, "standard-ageing", "info", "C++20"),
        ({"standards": (PINNED, replace(PINNED, line=9))}, "standard-ageing", "info", "setup.py (lines 3, 9) pins"),
        ({"standards": (replace(PINNED, value=14, sure=False),)}, "standard-pinned", "warning", "under a condition"),
        (
            {"standards": (replace(OF_CMAKE, value=14),)},
            "standard-pinned",
            "error",
            "ask for C++17 in CMakeLists.txt:3",
        ),
        ({"standards": (replace(OF_CMAKE, value=14, aside=True),)}, "standard-pinned", "info", "CMakeLists.txt:3"),
        ({"standards": (replace(OF_CMAKE, aside=True),)}, "standard-ageing", None, ""),
        ({"architectures": (replace(ARCHS, sass=("90",)),)}, "architectures-pinned", "warning", "setup.py:4"),
        ({"architectures": (ARCHS,)}, "architectures-gpu", "error", "H200"),
        ({"architectures": (ARCHS, replace(ARCHS, line=5, sass=("90",)))}, "architectures-gpu", None, ""),
        ({"architectures": (replace(ARCHS, sass=("70",)),)}, "architectures-toolkit", "error", "(70)"),
        ({"architectures": (replace(ARCHS, sass=("70",), sure=False),)}, "architectures-toolkit", None, ""),
        (
            {"architectures": (ARCHS, replace(ARCHS, line=6, text="b"))},
            "architectures-gpu",
            "error",
            "these flags from",
        ),
        ({"architectures": (replace(ARCHS, aside=True),)}, "architectures-gpu", "info", "H200"),
        ({"architectures": (IN_CMAKE,)}, "architectures-gpu", "error", "export CUDAARCHS='90-real'"),
        ({"imports_torch": True}, "requires-torch", "error", "--no-build-isolation /src"),
        ({"imports_torch": True, "requires": ("setuptools",)}, "requires-torch", "error", "No module named 'torch'"),
        ({"requires": ("wheel",)}, "requires-setuptools", "error", "setuptools.build_meta"),
        ({"requires": ("wheel",), "backend": "hatchling.build"}, "requires-setuptools", None, ""),
        ({"imports_torch": None}, "requires-torch", "warning", "where a condition holds"),
        ({"files": ("setup.py",), "imports_torch": True}, "requires-torch", "error", "no pyproject.toml"),
        ({"imports_torch": True}, "requires-torch", "error", "printf '%s\\n' '' '[build-system]' 'requires = ["),
        ({"ninja": True, "requires": ("setuptools", "torch")}, "requires-ninja", None, ""),  # the one on PATH stays
        ({"modules": ("packaging",), "requires": ("setuptools",)}, "requires-module", "error", "add packaging to"),
        ({"modules": ("packaging",), "requires": ("setuptools", "packaging")}, "requires-module", None, ""),
        ({"modules": ("packaging",), "imports_torch": True, "requires": ()}, "requires-torch", "error", '"packaging"'),
        ({"imports_torch": True, "requires": (), "dynamic": True}, "requires-torch", None, ""),
        ({"imports_torch": True, "requires": ("torch; sys_platform == 'win32'",)}, "requires-torch", "error", "torch"),
        ({"collisions": (("a.cpp", "a.cpp"),)}, "sources-twice", "error", "a.cpp is among the sources"),
        ({"needs_torch": LOOKS, "backend": "scikit_build_core.build"}, "requires-torch", "error", "CMakeLists.txt:3"),
        ({"needs_torch": LOOKS, "backend": "hatchling.build"}, "requires-torch", None, ""),
        ({"architectures": (IN_CMAKE,), "needs_torch": LOOKS}, "architectures-gpu", "error", "TORCH_CUDA_ARCH_LIST="),
        ({"dependencies": (Stated(text="torch~=2.4", file="a", line=1),)}, "torch-unpinned", "warning", "torch~=2.4"),
        ({"dependencies": (Stated(text="torch~=2.4.1", file="a", line=1),)}, "torch-unpinned", None, ""),
        ({"dependencies": (Stated(text="torch>=2.11,<2.12", file="a", line=1),)}, "torch-unpinned", None, ""),
        ({"dependencies": (Stated(text="torch; os_name == 'nt'", file="a", line=1),)}, "torch-unpinned", None, ""),
        ({"imports_torch": True, "requires": ("setuptools", "torch")}, "requires-ninja", None, ""),
        ({"requires": ("setuptools", "torch>=2.4")}, "isolation-torch", "warning", "torch==2.11.0"),
        ({"requires": ("setuptools", "torch==2.11.0")}, "isolation-torch", None, ""),
        ({"requires": ("setuptools", "torch==2.6.*")}, "isolation-torch", "warning", "pip install 'torch==2.6.*'"),
        ({"dependencies": (Stated(text="torch>=2", file="a", line=1),)}, "torch-unpinned", "warning", "torch==2.11.*"),
        (
            {"dependencies": (Stated(text="torch>=2", file="a", line=1),), "stable": "csrc/stable.h"},
            "torch-unpinned",
            "info",
            "where its build does not take csrc/stable.h",
        ),
        ({"dependencies": (Stated(text="torch", file="a", line=1),), "unstable": None}, "torch-unpinned", None, ""),
        ({"dependencies": (Stated(text="not a / requirement", file="a", line=1),)}, "torch-unpinned", None, ""),
    ],
)
def test_projects(
    judged: Callable[..., dict[str, Finding]], change: dict[str, Any], check: str, severity: str | None, words: str
) -> None:
    found = judged(project=replace(PROJECT, **change))
    assert (found[check].severity if check in found else None) == severity
    if severity is not None:
        assert words in f"{found[check].so} {found[check].will} {found[check].mend}"


def test_ninja_is_required_where_none_is_on_path(judged: Callable[..., dict[str, Finding]]) -> None:
    found = judged(project=replace(PROJECT, ninja=True, requires=("setuptools", "torch")), ninja=None)
    assert found["requires-ninja"].severity == "warning"


def test_a_setup_py_of_a_newer_python_is_left_out(judged: Callable[..., dict[str, Finding]]) -> None:
    broken = replace(PROJECT, newer=True, broken=(("setup.py", "setup.py:3 is not Python: f-string", "it stops"),))
    same = judged(project=broken, env={"python": Python(version=f"3.{sys.version_info.minor}.0")})
    assert same["project-unreadable"].severity == "error"
    newer = judged(project=broken, env={"python": Python(version=f"3.{sys.version_info.minor + 1}.0")})
    assert "setup.py:3" in newer["project-unread"].so
    assert "project-unreadable" not in newer


def test_an_own_list_of_targets_counts_while_none_is_stated(judged: Callable[..., dict[str, Finding]]) -> None:
    old = Architectures(text="TORCH_CUDA_ARCH_LIST=6.0", file="setup.py", line=4, sass=("60",), default=True)
    project = replace(PROJECT, architectures=(old,))
    without = judged(project=project, toolkits={"arch_list": None})
    assert without["architectures-toolkit"].severity == "error"
    assert "architectures-toolkit" not in judged(project=project, toolkits={"arch_list": "9.0"})


def test_the_standard_of_the_torch_that_the_build_requires_counts(judged: Callable[..., dict[str, Finding]]) -> None:
    pinned = replace(PINNED, text="-std=c++14", value=14)
    project = replace(PROJECT, standards=(pinned,), requires=("setuptools", "torch==2.11.0", "ninja"))
    found = judged(project=project, torch=None, env={"torch": None})
    assert "torch 2.11, which the build requires, needs C++17" in found["standard-pinned"].so


def test_a_pin_that_the_torch_here_refuses_is_in_the_way(judged: Callable[..., dict[str, Finding]]) -> None:
    pinned = replace(PROJECT, standards=(PINNED,))
    found = judged(project=pinned, torch=replace(FILES, standard=20, demanded=20))
    assert "needs C++20" in found["standard-pinned"].so
    assert "-std=c++17" in found["standard-pinned"].mend
    assert judged(project=pinned, torch=replace(FILES, standard=20))["standard-ageing"].severity == "warning"


@pytest.mark.parametrize(
    ("change", "check", "words"),
    [
        ({"sass": ("70",), "ptx": ()}, "package-no-code", "no code for NVIDIA H200 (9.0)"),
        ({"isa": (9, 3)}, "package-ptx", "unsupported toolchain"),
        ({"lacking": ("libfoo.so.1",)}, "package-libraries", "libfoo.so.1"),
        ({"cuda": ("libcudart.so.12", "12"), "lacking": ("libcudart.so.12",)}, "package-cuda", "CUDA 12's runtime"),
        ({"missing": ("_ZN2at3fooE",)}, "package-symbols", "undefined symbol: _ZN2at3fooE"),
        ({"glibc": "2.38"}, "package-system", "GLIBC_2.38"),
        ({"glibcxx": "3.4.32"}, "package-system", "GLIBCXX_3.4.32"),
    ],
)
def test_packages(judged: Callable[..., dict[str, Finding]], change: dict[str, Any], check: str, words: str) -> None:
    package = Package(name="op", version="1", libraries=(replace(LIBRARY, **change),))
    found = judged(package=package)
    assert list(found) == [check]
    assert found[check].severity == "error"
    assert words in f"{found[check].so} {found[check].will}"
    apart = replace(package, alternatives=frozenset({LIBRARY.path}))
    assert judged(package=apart)[check].severity == "info"


def test_a_package_that_is_not_there(judged: Callable[..., dict[str, Finding]]) -> None:
    assert judged(package=Package(name="op"))["package-absent"].severity == "error"
    assert judged(package=Package(name="op", version="1"))["package-no-library"].severity == "info"
    other = judged(package=Package(name="op", version="1", requires=("torch==2.10.*", "numpy"), libraries=(LIBRARY,)))
    assert "'torch==2.10.*'" in other["package-requires"].mend
    broken = Package(name="op", version="1", unreadable={"a.so": "cut"})
    assert judged(package=broken)["package-unreadable"].severity == "error"


def test_what_a_finding_weighs_depends_on_what_is_asked(judged: Callable[..., dict[str, Finding]]) -> None:
    none = {"toolkits": Toolkits(), "compiler": Compiler(path=None)}
    assert judged(**none)["nvcc-absent"].severity == "error"
    assert judged(package=Package(name="op", version="1"), **none)["nvcc-absent"].severity == "warning"
    assert judged(package=Package(name="op", version="1"), **none)["compiler-absent"].severity == "warning"
    assert judged(project=replace(PROJECT, cuda=False), **none)["nvcc-absent"].severity == "info"
    cpu = {"torch": Torch(version="2.11.0+cpu", cuda="cpu", origin="pytorch"), "gpus": ()}
    assert judged(env=cpu, **none)["nvcc-absent"].severity == "info"
    assert judged(project=PROJECT, env=cpu)["torch-cpu"].severity == "error"
    none = {"env": {"torch": Torch(version=None)}}
    numpy = Package(name="numpy", version="2", libraries=(LIBRARY,), requires=("torch-like",))
    assert judged(package=numpy, **none)["torch-absent"].severity == "warning"
    assert judged(package=replace(numpy, requires=("torch>=2",)), **none)["torch-absent"].severity == "error"
    loads = replace(numpy, libraries=(replace(LIBRARY, lacking=("libc10.so",)),))
    assert judged(package=loads, **none)["torch-absent"].severity == "error"


@pytest.mark.parametrize(
    ("version", "others", "variable", "command"),
    [
        ("8.5.0", {"/usr/bin/g++": "12.2.0"}, "CXX", "unset CXX CC"),
        ("16.1.0", {"/usr/bin/g++": "12.2.0"}, "CXX", "unset CXX CC"),
        (
            "16.1.0",
            {"/usr/bin/g++": "8.5.0", "/usr/bin/g++-12": "12.2.0"},
            "CXX",
            "CXX=/usr/bin/g++-12 CC=/usr/bin/gcc-12",
        ),
        ("8.5.0", {"/opt/bin/g++": "12.2.0"}, "CXX", "export CXX=/opt/bin/g++ CC=/opt/bin/gcc"),
        ("8.5.0", {"/usr/bin/g++-12": "12.2.0"}, None, "export CXX=/usr/bin/g++-12 CC=/usr/bin/gcc-12"),
        ("8.5.0", {"/usr/bin/g++-16": "16.1.0"}, None, "install -y g++-9; export CXX=g++-9 CC=gcc-9 "),
        ("8.5.0", {}, None, "(the distribution may have another number: GCC 9 to 15 will do)"),
        ("16.1.0", {}, None, "install -y g++-15; export CXX=g++-15 CC=gcc-15 "),
    ],
)
def test_a_compiler_that_does_not_fit_is_mended_by_one_that_does(
    judged: Callable[..., dict[str, Finding]],
    version: str,
    others: dict[str, str],
    variable: str | None,
    command: str,
) -> None:
    beside = tuple(Compiler(path=path, kind="gcc", version=its) for path, its in others.items())
    default = {"default": "/usr/bin/g++"}
    found = judged(compiler={"version": version, "variable": variable, "others": beside, **default})
    (one,) = (one for name, one in found.items() if name in ("compiler-old", "compiler-new"))
    assert command in one.mend
    broken = {"answer": "fails", "variable": variable, "others": beside, **default}
    assert judged(compiler=broken)["compiler-broken"].mend == (
        one.mend if "=/" in command or "unset" in command else GET
    )


def test_what_names_compilers_hinders_what_reads_it(judged: Callable[..., dict[str, Finding]]) -> None:
    cmake = replace(PROJECT, setup=False)
    for variable, torchs, cmakes in (
        ("CC", "error", None),
        ("CUDACXX", "warning", "error"),
        ("NVCC_CCBIN", "error", "error"),
    ):
        named = naming(variable, "/nothing", "/nothing")
        own = judged(project=replace(PROJECT, ninja=True), **named)["compiler-variable"]
        other = judged(project=cmake, **named).get("compiler-variable")
        assert (own.severity, other and other.severity) == (torchs, cmakes)
        assert judged(project=replace(PROJECT, cuda=False), **named)["compiler-variable"].severity == "info"
    bound: dict[str, Any] = {"torch": BOUND, "compiler": {"version": "14.2.0"}}
    assert "compiler-new" not in judged(project=cmake, **bound)
    assert judged(project=replace(PROJECT, cuda=False), **bound)["compiler-new"].severity == "info"


def test_cmake_reads_a_list_of_targets_less_strictly(judged: Callable[..., dict[str, Finding]]) -> None:
    listed: dict[str, Any] = {"toolkits": {"arch_list": " 9.0; 9.0f"}}
    assert judged(project=PROJECT, **listed)["arch-list-wrong"].severity == "error"
    assert "arch-list-wrong" not in judged(project=replace(PROJECT, setup=False), **listed)


def test_cuda_code_without_a_gpu_in_sight(judged: Callable[..., dict[str, Finding]]) -> None:
    hidden: dict[str, Any] = {"env": {"gpus": ()}}
    assert judged(project=PROJECT, **hidden)["arch-list-unset"].severity == "warning"
    sure = replace(PROJECT, certain=True)
    assert judged(project=sure, **hidden)["arch-list-unset"].severity == "error"
    assert judged(project=replace(sure, architectures=(ARCHS,)), **hidden)["arch-list-unset"].severity == "warning"
    asking = replace(sure, conditional="FORCE_CUDA")
    assert judged(project=asking, **hidden)["arch-list-unset"].severity == "warning"
    assert judged(project=asking, **hidden)["cuda-conditional"].mend == "export FORCE_CUDA=1"
    assert "cuda-conditional" not in judged(project=asking)
    assert "cuda-conditional" not in judged(project=asking, system={"forced": True}, **hidden)
    deaf = judged(project=replace(asking, conditional="torch.cuda.is_available()"), system={"forced": True}, **hidden)
    assert "build where a GPU is seen" in deaf["cuda-conditional"].mend


def test_commands_can_be_pasted(judged: Callable[..., dict[str, Finding]]) -> None:
    spaced: dict[str, Any] = {"python": {"executable": "/my env/bin/python", "tools": {"pip": "26.0"}}}
    assert judged(**spaced)["setuptools-absent"].mend.startswith("'/my env/bin/python' -m pip")
    project = replace(PROJECT, root="/a b", imports_torch=True)
    assert "--no-build-isolation '/a b'," in judged(project=project)["requires-torch"].mend
    kits = {"nvccs": (replace(NVCC, home="/cuda 13"),), "chosen": replace(NVCC, release="12.8")}
    assert judged(toolkits=kits)["nvcc-major"].mend == "export CUDA_HOME='/cuda 13' PATH='/cuda 13/bin':$PATH"


def test_commands_are_for_the_installer_that_is_there(judged: Callable[..., dict[str, Finding]]) -> None:
    without = judged(ninja=None, python={"tools": {"pip": None}})
    assert without["ninja-absent"].mend == "uv pip install --python /env/bin/python ninja"
    managed = judged(ninja=None, python={"managed": True})
    assert managed["ninja-absent"].mend == "/env/bin/python -m venv .venv && .venv/bin/python -m pip install ninja"


@pytest.mark.parametrize(
    ("torch", "source", "command"),
    [
        (TORCH, "PyPI", "install --force-reinstall 'torch==2.11.0'"),
        (TORCH, "PyTorch's own index", "'torch==2.11.0' --index-url https://download.pytorch.org/whl/cu130"),
        (
            Torch(version="2.13.0.dev20261001+cu132", cuda="13.2", origin="pytorch"),
            "PyTorch's own index",
            "'torch==2.13.0.dev20261001' --pre --index-url https://download.pytorch.org/whl/nightly/cu132",
        ),
        (Torch(version="2.12.0a0+gitdead", cuda="13.0", origin="other"), "a checkout", "build torch 2.12.0a0+gitdead"),
        (Torch(version="2.11.0", cuda="13.0", origin="conda"), "conda", "conda install"),
        (Torch(version="2.11.0+rocm7.0", cuda="rocm", origin="pytorch"), "PyTorch's own index", "/whl/rocm7.0"),
    ],
)
def test_torch_is_mended_by_the_one_that_is_there(
    judged: Callable[..., dict[str, Finding]], torch: Torch, source: str, command: str
) -> None:
    files = replace(FILES, source=source, lacking={"libfoo.so.1": "libtorch_python.so"})
    assert command in judged(env={"torch": torch}, torch=files)["torch-libraries"].mend


def test_a_package_is_built_again_without_its_torch(judged: Callable[..., dict[str, Finding]]) -> None:
    for change in ({"missing": ("_ZN2at3fooE",)}, {"sass": ("70",), "ptx": ()}):
        package = Package(name="op", version="1", libraries=(replace(LIBRARY, **change),))
        (found,) = judged(package=package).values()
        assert " --no-deps " in found.mend


def test_a_driver_of_an_older_cuda_gets_a_torch_that_it_serves(judged: Callable[..., dict[str, Finding]]) -> None:
    none = Torch(version=None)
    assert judged(env={"torch": none})["torch-absent"].mend == "/env/bin/python -m pip install torch"
    old = judged(env={"torch": none, "driver": Driver(version="550.54", cuda="12.4")})
    assert "--index-url https://download.pytorch.org/whl/cu12" in old["torch-absent"].mend


def test_another_minor_is_mended_by_the_very_minor(judged: Callable[..., dict[str, Finding]]) -> None:
    other = replace(NVCC, release="13.2", home="/usr/local/cuda-13.2")
    kits = {"nvccs": (other, replace(NVCC, release="13.1")), "chosen": other}
    assert "install CUDA 13.0" in judged(toolkits=kits)["nvcc-minor"].mend
    kits["nvccs"] = (other, NVCC)
    assert judged(toolkits=kits)["nvcc-minor"].mend.startswith(f"export CUDA_HOME={CUDA} ")


def test_setuptools_of_a_build_of_its_own(judged: Callable[..., dict[str, Finding]]) -> None:
    without = {"tools": {"pip": "26.0"}}
    assert judged(project=PROJECT, python=without)["setuptools-absent"].severity == "error"
    own = replace(PROJECT, requires=("setuptools", "torch"))
    assert judged(project=own, python=without)["setuptools-absent"].severity == "warning"


def test_a_driver_that_hangs_is_the_only_word_on_it(judged: Callable[..., dict[str, Finding]]) -> None:
    hanging = Program(path="nvidia-smi", answer="hangs")
    found = judged(smi=hanging, env={"driver": None, "gpus": None})
    assert [one for one in found if one.startswith(("driver", "gpu"))] == ["driver-hangs"]


def test_each_check_says_what_is_so_what_will_happen_and_what_mends_it() -> None:
    for check in doctor_findings.checks().values():
        texts = (check.so, check.will, check.mend)
        names = {name for text in texts for _, name, _, _ in string.Formatter().parse(text) if name}
        # {seconds} is the one number with a form of its own.
        one = doctor_findings.found(check.id, **{name: 1 if name == "seconds" else f"<{name}>" for name in names})
        assert all((one.so, one.will, one.mend)), check.id
        assert not one.so.endswith("."), check.id
        assert "{" not in one.so + one.will + one.mend, check.id


def test_every_check_is_tried_here() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    assert [one for one in doctor_findings.checks() if f'"{one}"' not in text] == []


def test_the_page_holds_every_check() -> None:
    assert doctor_findings.markdown() in DOCS.read_text(encoding="utf-8")


def test_the_worst_comes_first_and_strangers_words_are_shown_plainly(known: Facts) -> None:
    evil = Program(path="/bin/\x1b[2Jsmi", answer="fails", status=1, said="\x1b[31mboo")
    case = Case(machine=machine(smi=evil, ninja=None, engine=Engine(state="absent")), known=known)
    findings = doctor.judge(case)
    assert [one.severity for one in findings] == ["error", "warning", "info"]
    assert all("\x1b" not in one.so for one in findings)
    answer = doctor.Answer(case=case, findings=findings)
    assert answer.hindered
    told = doctor_view.to_json(answer)
    assert told["version"] == 1
    assert {"id", "severity", "so", "will", "mend"} <= set(told["findings"][0])
