"""The local executor: builds a step on this machine, without a container and without root."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from wheelmill import backend, fetch, project, repair, toolkit
from wheelmill.steps import Inputs, torch_backend, torch_headers
from wheelmill.store import digest

if TYPE_CHECKING:
    from pathlib import Path

    from wheelmill.model import Step
    from wheelmill.steps import Clock, Site
    from wheelmill.toolkit import Provider


@dataclass(frozen=True, slots=True)
class Local:
    """Builds beside the engine, with a toolkit of that provider."""

    provider: Provider

    def pin(self, step: Step, site: Site, log: Path) -> Inputs:
        facts = site.facts.cuda[step.wheel.cuda] if step.toolkit else None
        compiler = toolkit.compiler(facts.gcc if facts else None)
        kit = toolkit.provide(site.store, facts, self.provider, log, same_major=site.same_major) if facts else None
        own = f"{sys.version_info.major}.{sys.version_info.minor}"
        # Only a Python extension, or a back end that imports torch, cares which Python builds it.
        free = step.wheel.python_abi == "none" and not site.project.imports_torch
        python = own if free else step.python
        tools = fetch.resolve(site.store, project.build_requirements(site.project), python=python, log=log)
        variant = torch_backend(step, site)
        # Torch may have no wheel for this machine's Python, and its headers do not depend on it.
        torch_python = python if site.project.imports_torch else step.python
        torch = fetch.resolve(
            site.store, [f"torch=={step.torch_release}"], python=torch_python, log=log, backend=variant
        )
        inputs = Inputs(
            executor="local",
            toolkit=kit,
            compiler=compiler,
            python=python,
            tools=tools,
            torch=torch,
            torch_python=torch_python,
            torch_backend=variant,
        )
        more = _dynamic_requirements(step, site, inputs, log)
        if not more:
            return inputs
        stated = [*project.build_requirements(site.project), *more]
        return replace(inputs, tools=fetch.resolve(site.store, stated, python=python, log=log))

    def wheel(self, step: Step, site: Site, inputs: Inputs, clock: Clock, log: Path) -> Path:
        with clock.part("environment"):
            python = _build_environment(site, inputs, log)
        with clock.part("torch"):
            torch = _torch_root(step, site, inputs, python, log)
        with clock.part("compile"):

            def attempt(jobs: int) -> Path:
                work = clock.work / f"jobs-{jobs}"
                env = backend.environ(step, inputs, python, torch, work, jobs)
                return backend.Backend(site.project, python, env, work, log).wheel()

            built = backend.with_memory(attempt, backend.wanted_jobs(), site.reporter.note)
        with clock.part("repair"):
            return repair.repair(built, clock.work / "repaired", log)


def _dynamic_requirements(step: Step, site: Site, inputs: Inputs, log: Path) -> list[str]:
    """What the back end itself asks for (PEP 517), asked once for the same sources and tools."""
    key = digest([site.project.sha256, inputs.tools, inputs.torch if site.project.imports_torch else None])
    known = site.store.record("requires", key)
    if known is None:
        python = _build_environment(site, inputs, log)
        torch = _torch_root(step, site, inputs, python, log)
        with site.store.work("requires") as work:
            env = backend.environ(step, inputs, python, torch, work)
            known = backend.Backend(site.project, python, env, work, log).requires()
        site.store.put_record("requires", key, known)
    return [str(text) for text in known]


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
    return torch_headers(site, inputs, step.torch_release, log) / "torch"
