"""What the doctor knows of a machine, a project and a package. Frozen values; nothing is judged and nothing read here.

A fact that is None is not known, as in `which_env`, whose Environment holds Python, torch, the driver and the GPUs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from wheelmill.doctor_extension import Tables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wheelmill.which_env import Environment

Answer = Literal["works", "fails", "hangs"]

# Back ends that build by CMake.
CMAKES = ("scikit_build_core", "py_build_cmake", "skbuild")


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """A program that was asked something: how that ended, and what it said."""

    path: str
    answer: Answer
    status: int | None = None
    said: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Interpreter:
    """The asked Python's parts. `conda` is the conda environment that it is of; `tools` are versions of packages;
    `managed` is one that the system's installer owns, and pip may not change.
    """

    executable: str
    include: str
    headers: bool
    conda: str | None = None
    managed: bool = False
    tools: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class TorchFiles:
    """What torch's files say.

    `lacking` maps each library that is not found to the one of torch that needs it; `absent` are distributions that it
    requires and that are not there; `setuptools` is what it requires of that one. `standard` is the C++ standard that
    its cpp_extension compiles with, `demanded` the lowest that its headers take. `source` is where it came from: PyPI,
    torch's index, conda, or a build of somebody else's. `damaged` is a file of its own that does not load, and why.
    """

    root: str
    source: str = "unknown"
    standard: int | None = None
    demanded: int | None = None
    setuptools: str | None = None
    pkg_resources: bool = False
    sass: tuple[str, ...] | None = None
    ptx: tuple[str, ...] = ()
    isa: tuple[int, int] | None = None
    lacking: Mapping[str, str] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    damaged: tuple[str, str] | None = None
    tables: Tables = field(default_factory=Tables)


@dataclass(frozen=True, kw_only=True, slots=True)
class Nvcc:
    """An nvcc. `origin` is where it was found; `release` None where it did not say one.

    `gcc` and `clang` are the newest host compilers that its toolkit accepts, where its headers say so.
    """

    path: str
    origin: str
    home: str
    release: str | None = None
    answer: Answer = "works"
    gcc: int | None = None
    clang: int | None = None
    headers: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Toolkits:
    """Every nvcc here, and the CUDA_HOME that torch would take: `home`, as `origin` says; `chosen` is its nvcc."""

    nvccs: tuple[Nvcc, ...] = ()
    home: str | None = None
    origin: str | None = None
    chosen: Nvcc | None = None
    arch_list: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Named:
    """A variable that names a compiler. `program` is its first word that is no `launcher` such as ccache, `path` where
    that is, None where it or its launcher is not there.
    """

    variable: str
    value: str
    program: str = ""
    launcher: str | None = None
    path: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Compiler:
    """The C++ compiler that a build calls. `variable` is CXX where that names it, None for g++ by PATH.

    `default` is PATH's first g++, `others` are those that PATH has beside this compiler, `named` what variables name
    for C, C++ and CUDA. It is not `checked` where TORCH_DONT_CHECK_COMPILER_ABI has torch's build take any version.
    """

    path: str | None
    variable: str | None = None
    kind: Literal["gcc", "clang"] | None = None
    version: str | None = None
    answer: Answer = "works"
    default: str | None = None
    others: tuple[Compiler, ...] = ()
    named: tuple[Named, ...] = ()
    checked: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Engine:
    """A container engine. `gpu` is why it can give no container a GPU, None where it can; both with their remedy."""

    state: Literal["answers", "refuses", "absent"]
    said: str = ""
    remedy: str = ""
    gpu: tuple[str, str] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Disk:
    what: str
    folder: str
    free: int


@dataclass(frozen=True, kw_only=True, slots=True)
class System:
    """The machine around them. `glibcxx` is the newest GLIBCXX of the system's libstdc++, `conda_glibcxx` of conda's.

    `jobs` is how many compilers fit its memory, `stated_jobs` MAX_JOBS. `pci` are the slots of NVIDIA's GPUs, `nodes`
    the driver's device files: None where this process may open one, else the group that may, empty where the file's
    mode would let it. `capabilities` is NVIDIA_DRIVER_CAPABILITIES.
    """

    installer: str | None = None
    cores: int = 1
    memory: int | None = None
    jobs: int | None = None
    stated_jobs: int | None = None
    disks: tuple[Disk, ...] = ()
    pci: tuple[str, ...] = ()
    nodes: Mapping[str, str | None] = field(default_factory=dict)
    capabilities: str | None = None
    glibcxx: str | None = None
    conda_glibcxx: str | None = None
    conda_libstdcxx: str | None = None
    wsl_driver: bool = False
    linux_driver: str | None = None
    visible: str | None = None
    forced: bool = False
    container: bool = False
    apptainer: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    env: Environment
    python: Interpreter
    torch: TorchFiles | None
    smi: Program | None
    toolkits: Toolkits
    compiler: Compiler
    ninja: Program | None
    system: System
    engine: Engine


@dataclass(frozen=True, kw_only=True, slots=True)
class Stated:
    """Something that a file of the project says, and where.

    It is not `sure` where a condition decides whether it counts, and `aside` in a file that no build by pip reads.
    """

    text: str
    file: str
    line: int
    sure: bool = True
    aside: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Standard(Stated):
    value: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Architectures(Stated):
    """Hard-coded targets, as SM numbers; empty where the text names none that can be read. `variable` replaces it.

    A `default` counts only while the environment states none.
    """

    sass: tuple[str, ...] = ()
    ptx: tuple[str, ...] = ()
    variable: str = "TORCH_CUDA_ARCH_LIST"
    default: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Project:
    """What a project's files say. `broken` are (file, what, what will happen), `unread` what was left out.

    `setup` is whether there is a setup.py, `newer` whether it is in no Python that this one reads. `imports_torch` is
    None where a condition decides whether it does, `modules` are others that it surely imports. `certain` is whether
    torch's own build compiles CUDA code in any case, `conditional` what decides it, `listed` whether
    TORCH_CUDA_ARCH_LIST does so too, `ninja` whether torch's own build compiles, and uses ninja where there is one.
    `needs_torch` is where CMake looks for torch, `cuda` whether something is compiled by nvcc.

    `unstable` is a source that includes torch's C++ API, `stable` one that includes its stable library. `collisions`
    are pairs of sources with one object, `guessed` whether they may be of different extensions. `requires` is None
    without a build-system table, `dynamic` whether a back end of the project's own may add to it.
    """

    root: str
    files: tuple[str, ...] = ()
    broken: tuple[tuple[str, str, str], ...] = ()
    unread: tuple[str, ...] = ()
    setup: bool = False
    imports_torch: bool | None = False
    cuda: bool = False
    certain: bool = False
    ninja: bool = False
    conditional: str | None = None
    listed: bool = False
    needs_torch: Stated | None = None
    modules: tuple[str, ...] = ()
    newer: bool = False
    dynamic: bool = False
    unstable: str | None = None
    stable: str | None = None
    backend: str | None = None
    requires: tuple[str, ...] | None = None
    dependencies: tuple[Stated, ...] = ()
    standards: tuple[Standard, ...] = ()
    architectures: tuple[Architectures, ...] = ()
    collisions: tuple[tuple[str, str], ...] = ()
    guessed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class PackageLibrary:
    """A library of an installed package. `missing` are symbols of torch's that no library of torch offers."""

    path: str
    sass: tuple[str, ...] = ()
    ptx: tuple[str, ...] = ()
    isa: tuple[int, int] | None = None
    lacking: tuple[str, ...] = ()
    cuda: tuple[str, str] | None = None
    missing: tuple[str, ...] = ()
    glibc: str | None = None
    glibcxx: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Package:
    """An installed package. `version` is None where it is not there; `unreadable` maps libraries to why."""

    name: str
    version: str | None = None
    requires: tuple[str, ...] = ()
    libraries: tuple[PackageLibrary, ...] = ()
    alternatives: frozenset[str] = frozenset()
    unreadable: Mapping[str, str] = field(default_factory=dict)

    @property
    def of_torch(self) -> bool:
        """Whether it has libraries and needs torch: by its requirements, or by one of them."""
        asks = any(re.match(r"torch\b(?!-)", one) for one in self.requires)
        loads = any(one.startswith(("libtorch", "libc10")) for library in self.libraries for one in library.lacking)
        return bool(self.libraries) and (asks or loads)
