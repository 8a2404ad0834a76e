"""How a project's build back end is called: what it sees of the environment, and its PEP 517 hooks."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from packaging.requirements import Requirement
from pyproject_hooks import BackendUnavailable, BuildBackendHookCaller, HookMissing

from wheelmill import proc, project
from wheelmill.errors import BuildError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from wheelmill.inputs import Inputs
    from wheelmill.model import Step
    from wheelmill.project import Project

# Of the caller's environment a build sees these alone; the flags among them are part of the content key.
KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")
FLAGS = ("CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "SOURCE_DATE_EPOCH")
VERSION = "SETUPTOOLS_SCM_PRETEND_VERSION"  # the copy that is built has no history to read a version from
EPOCH = "315532800"
BYTES_A_JOB = 2 << 30
# How GCC, nvcc, ninja's shell and Python's subprocesses report a child that the kernel killed.
KILLED = re.compile(
    r"Killed signal terminated program|died due to signal 9|fatal error: Killed|virtual memory exhausted"
    r"|signal 9 \(Killed|^Killed$|std::bad_alloc|out of memory allocating",
    re.MULTILINE,
)
T = TypeVar("T")


def cmake_architectures(sm: Sequence[str]) -> str:
    """TORCH_CUDA_ARCH_LIST's words in CMake's: `("8.0", "9.0+PTX")` → `80-real;90-real;90-virtual`."""
    out = []
    for word in sm:
        number = word.removesuffix("+PTX").replace(".", "")
        out.append(f"{number}-real")
        if word.endswith("+PTX"):
            out.append(f"{number}-virtual")
    return ";".join(out)


def free_memory() -> int:
    """Bytes that this machine, or the control group that confines it, has left."""
    rows = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    free = int(rows["MemAvailable"].split()[0]) * 1024
    with contextlib.suppress(OSError, ValueError):  # no control groups of version 2, or no limit ("max")
        group = Path("/sys/fs/cgroup")
        free = min(free, int((group / "memory.max").read_text()) - int((group / "memory.current").read_text()))
    return free


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """How many compilers run at once, and in how many threads each nvcc compiles its targets."""

    jobs: int
    threads: int = 1

    def halved(self) -> Load:
        """Half as many compilers, or one with half the threads; one of one thread stays."""
        if self.jobs > 1:
            return replace(self, jobs=self.jobs // 2)
        return replace(self, threads=max(1, self.threads // 2))


def fitting(*, memory: int | None = None, cores: int | None = None) -> int:
    """How many compilers cores and memory allow, at least one; `memory` (bytes) and `cores` as `load` takes them."""
    free = free_memory() if memory is None else min(memory, free_memory())
    return max(1, min(cores or len(os.sched_getaffinity(0)), free // BYTES_A_JOB))


def load(sources: int, targets: int, *, memory: int | None = None, cores: int | None = None) -> Load:
    """As many compilers as cores and memory allow: each takes up to about 2 GiB with torch's headers.

    What fewer sources than that leave over, nvcc's threads use, up to one a target. The caller's MAX_JOBS and
    NVCC_THREADS go first. `sources` is 0 where the build makes its own; `memory` (bytes) and `cores` are this
    machine's unless given.
    """
    most = fitting(memory=memory, cores=cores)
    jobs = _stated("MAX_JOBS") or min(most, sources or most)
    return Load(jobs=jobs, threads=_stated("NVCC_THREADS") or max(1, min(most // jobs, targets)))


def _stated(name: str) -> int | None:
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() and int(text) > 0 else None


ONE = Load(jobs=1)


def starved(output: str) -> bool:
    """Whether a build's output says that a compiler was killed for memory."""
    return bool(KILLED.search(output))


def with_memory(run: Callable[[Load], T], first: Load, tell: Callable[[str], None]) -> T:
    """Run a build under that load, and once more under half of it where a compiler was killed for memory."""
    fewer = first.halved()
    for tried in dict.fromkeys((first, fewer)):
        try:
            return run(tried)
        except proc.ProcessError as error:
            if not starved(error.output):
                raise
            threads = f", each nvcc in {tried.threads} threads" if tried.threads > 1 else ""
            tell(f"note: a compiler was killed for lack of memory with {tried.jobs} jobs at once{threads}")
            last = error
    raise BuildError(
        f"a compiler was killed for lack of memory, with {fewer.jobs} jobs at once too\n{last}",
        remedy="give the build more memory or swap, or set MAX_JOBS to 1",
    ) from last


def flags() -> dict[str, str]:
    """What of the caller's environment changes the wheel."""
    return {name: value for name, value in os.environ.items() if name in FLAGS or name.startswith(VERSION)}


def environ(step: Step, inputs: Inputs, python: Path, torch: Path, work: Path, load: Load = ONE) -> dict[str, str]:
    """What a build sees: what extension projects already read, and nothing else of the caller's."""
    # Paths of the build are mapped away, so that the same inputs give the same bytes wherever they lie.
    places = {str(work): ".", str(torch): "torch", **({str(inputs.toolkit.home): "cuda"} if inputs.toolkit else {})}
    mapped = [shlex.quote(f"-ffile-prefix-map={path}={name}") for path, name in places.items()]
    cmake = [f"-DTorch_ROOT={torch}", f"-DTorch_DIR={torch}/share/cmake/Torch"]
    env = {name: os.environ[name] for name in KEPT if name in os.environ} | flags()
    env |= {
        "HOME": str(work),
        "CC": inputs.compiler.cc,
        "CXX": inputs.compiler.cxx,
        "MAX_JOBS": str(load.jobs),
        "NVCC_THREADS": str(load.threads),
        "CMAKE_BUILD_PARALLEL_LEVEL": str(load.jobs),
        "CMAKE_GENERATOR": "Ninja",
        "SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH", EPOCH),
        "WHEELMILL_CELL": step.wheel.id,
        "FORCE_CUDA": "0",
    }
    path = [str(python.parent)]
    if inputs.toolkit:
        kit = inputs.toolkit
        path.append(str(kit.home / "bin"))
        env |= {
            "CUDA_HOME": str(kit.home),
            "CUDACXX": str(kit.nvcc),
            "CUDAHOSTCXX": inputs.compiler.cxx,
            "FORCE_CUDA": "1",
            "TORCH_CUDA_ARCH_LIST": ";".join(step.wheel.sm),
        }
        cmake += [
            f"-DCMAKE_CUDA_COMPILER={kit.nvcc}",
            f"-DCMAKE_CUDA_ARCHITECTURES={cmake_architectures(step.wheel.sm)}",
            f"-DCMAKE_CUDA_HOST_COMPILER={inputs.compiler.cxx}",
            f"-DCUDAToolkit_ROOT={kit.home}",
        ]
    for name in ("CFLAGS", "CXXFLAGS"):
        env[name] = " ".join([env.get(name, ""), *mapped]).lstrip()
    threads = f" --threads={load.threads}" if load.threads > 1 else ""
    hosts = " ".join(f"-Xcompiler={option}" for option in mapped)
    env["NVCC_APPEND_FLAGS"] = f"{env.get('NVCC_APPEND_FLAGS', '')} {hosts}{threads}".lstrip()
    env["CMAKE_ARGS"] = shlex.join(cmake)
    env["PATH"] = os.pathsep.join([*path, env.get("PATH", os.defpath)])
    return env


def without_torch(stated: Sequence[str]) -> list[str]:
    """What a back end asks for, less torch, which the cell decides."""
    return [text for text in stated if Requirement(text).name.lower() != "torch"]


class Backend:
    """A project's back end, at work on a copy of its sources in `work`. Raises BuildError where it cannot be used."""

    def __init__(self, source: Project, python: Path, env: Mapping[str, str], work: Path, log: Path) -> None:
        self._name, self._python, self._env, self._work, self._log = source.backend, python, env, work, log
        work.mkdir(exist_ok=True)
        project.copy(source, work / "source")
        try:
            self._hooks = BuildBackendHookCaller(
                str(work / "source"), source.backend, source.backend_path, self._run, python_executable=str(python)
            )
        except ValueError as error:
            raise self._unusable(error) from error

    def _run(self, cmd: Sequence[str], cwd: str | None = None, extra_environ: Mapping[str, str] | None = None) -> None:
        proc.run(cmd, cwd=Path(cwd or self._work), env={**self._env, **(extra_environ or {})}, log=self._log)

    def _unusable(self, error: Exception) -> BuildError:
        return BuildError(
            f"the build back end {self._name} cannot be used: {error}",
            remedy="correct build-system in the project's pyproject.toml, and name the back end under its `requires`",
        )

    def requires(self) -> list[str]:
        """What the build needs beside build-system.requires, less torch, which the cell decides."""
        try:
            stated = self._hooks.get_requires_for_build_wheel()
        except (BackendUnavailable, HookMissing) as error:
            raise self._unusable(error) from error
        return without_torch(stated)

    def wheel(self) -> Path:
        """Build the wheel and return it."""
        out = self._work / "built"
        out.mkdir()
        try:
            return out / self._hooks.build_wheel(str(out))
        except (BackendUnavailable, HookMissing) as error:
            raise self._unusable(error) from error
