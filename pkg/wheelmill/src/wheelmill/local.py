"""The local executor: builds a step on this machine, without a container and without root."""

from __future__ import annotations

import datetime as dt
import os
import resource
import shutil
import sys
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyproject_hooks import BackendUnavailable, BuildBackendHookCaller, HookMissing

from wheelmill import __version__, check, fetch, label, proc, project, repair, toolkit
from wheelmill.errors import BuildError, GateError
from wheelmill.store import digest, file_sha256, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from wheelmill.facts import Facts
    from wheelmill.matrix import Matrix
    from wheelmill.model import Step
    from wheelmill.project import Project
    from wheelmill.report import Reporter
    from wheelmill.store import Store
    from wheelmill.toolkit import Compiler, Provider, Toolkit

# Of the caller's environment a build sees these alone; the flags among them are part of the content key.
KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")
FLAGS = ("CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "SOURCE_DATE_EPOCH")
EPOCH = "315532800"
BYTES_A_JOB = 2 << 30


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """What every build of one run shares."""

    store: Store
    facts: Facts
    matrix: Matrix
    project: Project
    provider: Provider
    reporter: Reporter


@dataclass(frozen=True, kw_only=True, slots=True)
class Inputs:
    """A step's pinned inputs, whose digest is its content key."""

    toolkit: Toolkit | None
    compiler: Compiler
    python: str
    tools: str
    torch: str
    torch_python: str
    torch_backend: str | None


@dataclass(slots=True)
class Clock:
    """Seconds and CPU-seconds of each named part of a build."""

    site: Site
    row: str
    parts: dict[str, dict[str, float]] = field(default_factory=dict)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        self.site.reporter.step(self.row, name)
        began, used = time.monotonic(), _cpu_seconds()
        yield
        self.parts[name] = {
            "seconds": round(time.monotonic() - began, 2),
            "cpu_seconds": round(_cpu_seconds() - used, 2),
        }


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _torch_backend(step: Step, facts: Facts) -> str | None:
    """The torch variant's own index, where the default index serves another variant."""
    served = facts.torch[step.wheel.torch].pypi
    return None if step.wheel.cuda in {served, "cpu"} else step.wheel.cuda


def _pin(step: Step, site: Site, log: Path) -> Inputs:
    facts = site.facts.cuda[step.wheel.cuda] if step.toolkit else None
    compiler = toolkit.compiler(facts.gcc if facts else None)
    kit = toolkit.provide(site.store, facts, site.provider, log) if facts else None
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    # Only a Python extension, or a back end that imports torch, cares which Python builds it.
    free = step.wheel.python_abi == "none" and not site.project.imports_torch
    python = own if free else step.python
    tools = fetch.resolve(site.store, project.build_requirements(site.project), python=python, log=log)
    backend = _torch_backend(step, site.facts) if site.project.imports_torch else None
    # Torch may have no wheel for this machine's Python, and its headers do not depend on it.
    torch_python = python if site.project.imports_torch else step.python
    torch = fetch.resolve(site.store, [f"torch=={step.torch_release}"], python=torch_python, log=log, backend=backend)
    return Inputs(
        toolkit=kit,
        compiler=compiler,
        python=python,
        tools=tools,
        torch=torch,
        torch_python=torch_python,
        torch_backend=backend,
    )


def _key(step: Step, site: Site, inputs: Inputs) -> str:
    wheel = asdict(step.wheel)
    del wheel["cells"]
    # Headers alone come from one wheel; an importable torch brings every package that it pins.
    torch = inputs.torch if site.project.imports_torch else step.torch_release
    return digest(
        {
            "engine": __version__,
            "wheel": wheel,
            "sources": site.project.sha256,
            "toolkit": inputs.toolkit.identity if inputs.toolkit else None,
            "compiler": inputs.compiler.identity,
            "tools": inputs.tools,
            "torch": torch,
            "python": inputs.python,
            "flags": {name: os.environ[name] for name in FLAGS if name in os.environ},
        }
    )


def _interpreter(python: str) -> str:
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    return sys.executable if python == own else python


def _build_environment(site: Site, inputs: Inputs, log: Path) -> Path:
    """The interpreter of the build environment: the back end and its tools, and torch where it is imported."""
    imports = site.project.imports_torch

    def make(folder: Path) -> None:
        python = fetch.venv(folder / "env", python=_interpreter(inputs.python), log=log)
        fetch.install(site.store, inputs.tools, into=python, log=log)
        if imports:
            fetch.install(site.store, inputs.torch, into=python, backend=inputs.torch_backend, log=log)

    key = digest([inputs.python, inputs.tools, inputs.torch if imports else None])
    return site.store.entry("envs", key, make) / "env" / "bin" / "python"


def _torch_root(step: Step, site: Site, inputs: Inputs, python: Path, log: Path) -> Path:
    """The folder of torch's package: `include`, `lib` and `share` lie in it."""
    if site.project.imports_torch:
        (root,) = (python.parent.parent / "lib").glob("python3*/site-packages/torch")
        return root
    # The first pin is torch itself; the packages it would bring are for running, not for compiling.
    own = inputs.torch[inputs.torch.index("torch==") :]
    lines = own.splitlines()
    end = next((i for i, line in enumerate(lines) if i and not line.startswith(" ")), len(lines))

    def make(folder: Path) -> None:
        fetch.install(site.store, "\n".join(lines[:end]), into=folder, python=inputs.torch_python, log=log)

    key = f"{step.torch_release}-{digest(lines[:end])}"
    return site.store.entry("torch", key, make) / "torch"


def cmake_architectures(sm: Sequence[str]) -> str:
    """TORCH_CUDA_ARCH_LIST's words in CMake's: `("8.0", "9.0+PTX")` → `80-real;90-real;90-virtual`."""
    out = []
    for word in sm:
        number = word.removesuffix("+PTX").replace(".", "")
        out.append(f"{number}-real")
        if word.endswith("+PTX"):
            out.append(f"{number}-virtual")
    return ";".join(out)


def _jobs() -> int:
    """As many compilers at once as cores and memory allow: nvcc takes up to about 2 GiB with torch's headers."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min(len(os.sched_getaffinity(0)), memory // BYTES_A_JOB))


def _environ(step: Step, inputs: Inputs, python: Path, torch: Path, work: Path) -> dict[str, str]:
    """What a build sees: what extension projects already read, and nothing else of the caller's."""
    jobs = os.environ.get("MAX_JOBS") or str(_jobs())
    cmake = [f"-DTorch_ROOT={torch}", f"-DTorch_DIR={torch}/share/cmake/Torch"]
    env = {name: os.environ[name] for name in (*KEPT, *FLAGS) if name in os.environ}
    env |= {
        "HOME": str(work),
        "CC": inputs.compiler.cc,
        "CXX": inputs.compiler.cxx,
        "MAX_JOBS": jobs,
        "CMAKE_BUILD_PARALLEL_LEVEL": jobs,
        "CMAKE_GENERATOR": "Ninja",
        "SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH", EPOCH),
        "WHEELMILL_CELL": step.wheel.id,
        "FORCE_CUDA": "0",
        proc.OWNER: str(work),
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
    env["CMAKE_ARGS"] = " ".join(cmake)
    env["PATH"] = os.pathsep.join([*path, env.get("PATH", os.defpath)])
    return env


def _call_backend(site: Site, python: Path, env: Mapping[str, str], work: Path, log: Path) -> Path:
    """Run the project's build back end on a copy of its sources and return the wheel it wrote."""
    source, out = work / "source", work / "built"
    project.copy(site.project, source)
    out.mkdir()

    def runner(cmd: Sequence[str], cwd: str | None = None, extra_environ: Mapping[str, str] | None = None) -> None:
        proc.run(cmd, cwd=Path(cwd or source), env={**env, **(extra_environ or {})}, log=log)

    hooks = BuildBackendHookCaller(
        str(source), site.project.backend, site.project.backend_path, runner, python_executable=str(python)
    )
    try:
        return out / hooks.build_wheel(str(out))
    except (BackendUnavailable, HookMissing) as error:
        raise BuildError(
            f"the build back end {site.project.backend} cannot be used: {error}",
            remedy="name it under build-system.requires in the project's pyproject.toml",
        ) from error


def _releases(step: Step, facts: Facts) -> tuple[str, ...]:
    minors = dict.fromkeys(cell.torch for cell in step.wheel.cells)
    return tuple(facts.torch[minor].release for minor in minors)


def _manifest(step: Step, inputs: Inputs, wheel: Path, key: str, clock: Clock, checked: Any) -> dict[str, Any]:
    libraries, findings = checked
    return {
        "version": 1,
        "wheel": step.wheel.id,
        "file": wheel.name,
        "sha256": file_sha256(wheel),
        "key": key,
        "engine": __version__,
        "built": dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds"),
        "cuda": step.wheel.cuda,
        "toolkit": {"version": inputs.toolkit.version, "provider": inputs.toolkit.provider} if inputs.toolkit else None,
        "torch": step.torch_release,
        "python": inputs.python,
        "compiler": inputs.compiler.cxx,
        "sm": list(step.wheel.sm),
        "environments": sorted({cell.environment for cell in step.wheel.cells}),
        "parts": clock.parts,
        "libraries": [asdict(library) for library in libraries],
        "findings": [asdict(finding) for finding in findings],
    }


def _make(step: Step, site: Site, inputs: Inputs, key: str, folder: Path, log: Path) -> None:
    clock = Clock(site, step.wheel.id)
    work = folder.parent
    policy = site.matrix.policy
    with clock.part("environment"):
        python = _build_environment(site, inputs, log)
    with clock.part("torch"):
        torch = _torch_root(step, site, inputs, python, log)
    with clock.part("compile"):
        env = _environ(step, inputs, python, torch, work)
        built = _call_backend(site, python, env, work, log)
    with clock.part("repair"):
        repaired = repair.repair(built, work / "repaired", log)
        platforms = repair.platforms(repaired)
    with clock.part("label"):
        labelled = label.relabel(repaired, step.wheel, _releases(step, site.facts), platforms, work, log)
    with clock.part("check"):
        checked = check.check(labelled, step.wheel, platforms, work / "checked", glibc=policy.glibc, size=policy.size)
    errors = [finding for finding in checked[1] if finding.severity == "error"]
    if errors:
        raise GateError(
            f"{labelled.name} fails its checks:\n"
            + "\n".join(f"    {f.rule}{f' in {f.library}' if f.library else ''}: {f.message}" for f in errors),
            remedy="; ".join(dict.fromkeys(finding.remedy for finding in errors)),
        )
    shutil.move(labelled, folder / labelled.name)
    write_json(folder / "manifest.json", _manifest(step, inputs, folder / labelled.name, key, clock, checked))


def build(step: Step, site: Site) -> tuple[Path, bool]:
    """Build a step unless the store has it: (its folder in the store, whether it was there already)."""
    log = site.store.log(step.wheel.id)
    row = step.wheel.id
    site.reporter.step(row, "inputs")
    inputs = _pin(step, site, log)
    key = _key(step, site, inputs)
    there = site.store.path("wheels", key).exists()
    folder = site.store.entry(
        "wheels",
        key,
        lambda folder: _make(step, site, inputs, key, folder, log),
        lambda: site.reporter.step(row, "waiting for another run that builds it"),
    )
    return folder, there
