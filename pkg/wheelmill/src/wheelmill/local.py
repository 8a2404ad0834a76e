"""The local executor: builds a step on this machine, without a container and without root."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelmill import backend, compiler_cache, fetch, repair, toolkit
from wheelmill.inputs import extended, pinned, serves_any_python, torch_headers
from wheelmill.interpreters import ENGINE_PYTHON
from wheelmill.store import digest

if TYPE_CHECKING:
    from pathlib import Path

    from wheelmill.inputs import Inputs
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
        python = ENGINE_PYTHON if serves_any_python(step, site) else step.python
        inputs = pinned(step, site, log, executor="local", kit=kit, compiler=compiler, python=python)
        return extended(inputs, site, _dynamic_requirements(step, site, inputs, log), log)

    def wheel(self, step: Step, site: Site, inputs: Inputs, clock: Clock, log: Path) -> Path:
        with clock.part("environment"):
            python = _build_environment(site, inputs, log)
        with clock.part("torch"):
            torch = _torch_root(step, site, inputs, python, log)
        store, row = site.store.root, step.wheel.id
        with clock.part("compile"), compiler_cache.local(site.cache, row, inputs, store, clock.work) as cached:

            def attempt(load: backend.Load) -> Path:
                work = clock.work / f"jobs-{load.jobs}-{load.threads}"
                env = cached(backend.environ(step, inputs, python, torch, work, load))
                return backend.Backend(site.project, python, env, work, log).wheel()

            load = backend.load(site.project.compiled, len(step.wheel.sm))
            built = backend.with_memory(attempt, load, site.reporter.note)
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
    return sys.executable if python == ENGINE_PYTHON else python


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
