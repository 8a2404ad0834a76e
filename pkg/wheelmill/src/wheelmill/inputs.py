"""What a step is made of: its inputs, pinned to hashes, and the targets that the toolkit at hand compiles for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from wheelmill import elf, fetch, project, rules_cuda
from wheelmill.errors import InputError, MissingError
from wheelmill.store import digest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from wheelmill.elf import Library
    from wheelmill.findings import Finding
    from wheelmill.model import Step
    from wheelmill.steps import Site
    from wheelmill.toolkit import Compiler, Toolkit


@dataclass(frozen=True, kw_only=True, slots=True)
class Inputs:
    """A step's pinned inputs, whose digest is its content key. `executor` and `image` are no part of the key."""

    executor: str
    toolkit: Toolkit | None
    compiler: Compiler
    python: str
    tools: str
    torch: str
    torch_python: str
    torch_backend: str | None
    image: str | None = None


def torch_backend(step: Step, site: Site) -> str | None:
    """The torch variant's own index, where the default index's build will not do.

    A build that imports torch needs the cell's own CUDA. Headers and libraries to link against are the same in
    every variant of a release, unless it was compiled with the other C++11 ABI.
    """
    torch, cuda = site.facts.torch[step.wheel.torch], step.wheel.cuda
    if torch.pypi is None or cuda == torch.pypi:
        return None
    if site.project.imports_torch:
        return None if cuda == "cpu" else cuda
    return None if torch.cxx11(cuda) == torch.cxx11(torch.pypi) else cuda


def serves_any_python(step: Step, site: Site) -> bool:
    """Whether any Python may build it: only a Python extension, or a back end that imports torch, cares."""
    return step.wheel.python_abi == "none" and not site.project.imports_torch


def pinned(
    step: Step, site: Site, log: Path, *, executor: str, kit: Toolkit | None, compiler: Compiler, python: str
) -> Inputs:
    """The inputs with build tools and torch resolved to hashes."""
    tools = fetch.resolve(site.store, project.build_requirements(site.project), python=python, log=log)
    variant = torch_backend(step, site)
    # Torch may have no wheel for this machine's Python, and its headers do not depend on it.
    torch_python = python if site.project.imports_torch else step.python
    torch = fetch.resolve(site.store, [f"torch=={step.torch_release}"], python=torch_python, log=log, backend=variant)
    return Inputs(
        executor=executor,
        toolkit=kit,
        compiler=compiler,
        python=python,
        tools=tools,
        torch=torch,
        torch_python=torch_python,
        torch_backend=variant,
    )


def extended(inputs: Inputs, site: Site, more: Sequence[str], log: Path) -> Inputs:
    """The inputs with the tools that the back end itself asks for."""
    if not more:
        return inputs
    stated = [*project.build_requirements(site.project), *more]
    return replace(inputs, tools=fetch.resolve(site.store, stated, python=inputs.python, log=log))


def fitted(step: Step, site: Site, found: Toolkit | None) -> Step:
    """The step with the targets that the toolkit at hand compiles for, PTX of the newest that is left.

    Raises InputError where the toolkit of another minor knows fewer and the matrix does not accept that.
    """
    if found is None or found.version == step.toolkit:
        return step
    row = next((row for row in site.facts.cuda.values() if row.minor == found.version), None)
    known = row.names if row is not None else frozenset[str]()
    kept = [word for word in step.wheel.sm if word.removesuffix("+PTX") in known]
    dropped = [word for word in step.wheel.sm if word not in kept]
    if not dropped:
        return step
    if not site.matrix.toolkit_dropped or not kept:
        raise InputError(
            f"{step.wheel.id} is for SM {', '.join(dropped)} too, which the CUDA {found.version} at hand does not "
            "compile for: users of those GPUs would get 'no kernel image is available'",
            remedy=f"install CUDA {step.toolkit}, or accept it: toolkit: {{minor: same-major, dropped: accept}}",
        )
    if not kept[-1].endswith("+PTX"):
        kept[-1] += "+PTX"
    site.reporter.note(f"note: {step.wheel.id}: CUDA {found.version} does not know SM {', '.join(dropped)}: left out")
    return replace(step, wheel=replace(step.wheel, sm=tuple(kept)))


def runtime_findings(
    step: Step, site: Site, inputs: Inputs, libraries: tuple[Library, ...], log: Path
) -> list[Finding]:
    """What a toolkit of another minor brought in that the cell's own CUDA runtime does not have."""
    if inputs.toolkit is None or inputs.toolkit.version == step.toolkit:
        return []
    runtime = site.facts.cuda[step.wheel.cuda].runtime
    if runtime is None:
        raise MissingError(
            f"{step.wheel.id} was built with CUDA {inputs.toolkit.version}, and no package of CUDA {step.toolkit}'s "
            "runtime is known to hold it against",
            remedy=f"build it with CUDA {step.toolkit} itself",
        )
    pins = fetch.resolve(site.store, [runtime], python="3.12", log=log)

    def make(folder: Path) -> None:
        fetch.install(site.store, pins, into=folder, python="3.12", log=log)

    (path,) = site.store.entry("runtimes", digest(pins), make).rglob("libcudart.so.*")
    offered = elf.exported(path)
    return list(rules_cuda.unoffered(libraries, offered, step.toolkit or ""))


def torch_headers(site: Site, inputs: Inputs, release: str, log: Path) -> Path:
    """A folder that holds torch's wheel, unpacked: headers and libraries, and nothing that it would bring to run."""
    lines = inputs.torch[inputs.torch.index("torch==") :].splitlines()
    end = next((i for i, line in enumerate(lines) if i and not line.startswith(" ")), len(lines))

    def make(folder: Path) -> None:
        fetch.install(site.store, "\n".join(lines[:end]), into=folder, python=inputs.torch_python, log=log)

    return site.store.entry("torch", f"{release}-{digest(lines[:end])}", make)
