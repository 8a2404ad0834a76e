"""The docker executor: cibuildwheel drives the CUDA's image, with no network and every input mounted read-only."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from wheelmill import (
    backend,
    compiler_cache,
    engine,
    fetch,
    image_choice,
    image_inside,
    proc,
    project,
    repair,
    sandbox,
    toolkit,
)
from wheelmill.errors import BuildError, MissingError
from wheelmill.inputs import extended, pinned, serves_any_python, torch_headers
from wheelmill.store import digest
from wheelmill.toolkit import Compiler, Toolkit

if TYPE_CHECKING:
    from docker import DockerClient

    from wheelmill import image_build
    from wheelmill.images import Base
    from wheelmill.inputs import Inputs
    from wheelmill.model import Step
    from wheelmill.steps import Clock, Site
    from wheelmill.store import Store

# Of what a local build sees, these are the host's own and mean nothing in a container.
HOSTS = ("PATH", "HOME", "TMPDIR", "CC", "CXX", "CUDAHOSTCXX", "SYSTEMROOT", "LANG", "LC_ALL", "CMAKE_GENERATOR")

# Every Python, as cibuildwheel 3 and as 2, the last one for Python 3.10, say it.
GROUPS = "all" if sys.version_info >= (3, 11) else "cpython-freethreading cpython-prerelease"
SHEBANG = re.compile(rb"#!/[^\n]*python[^\n]*\n|#!/bin/sh\n\'{3}exec\' [^\n]*\n\' \'{3}\n")


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """Which images, how one that is not here is made, and the bytes of memory of a container (None: all but 1 GiB)."""

    base: Base | None
    images: image_build.Site
    memory: int | None


@dataclass(frozen=True, slots=True)
class Docker:
    """Builds in the container image of the step's CUDA."""

    client: DockerClient
    settings: Settings

    def pin(self, step: Step, site: Site, log: Path) -> Inputs:
        image = image_choice.choose(self.client, self.settings.base, self.settings.images, step, site)
        inside = image_inside.look(self.client, site.store, image)
        facts = site.facts.cuda[step.wheel.cuda] if step.toolkit else None
        with site.store.adding_to_lock():
            kit = None
            if facts is not None and inside.toolkit is None:
                kit = toolkit.pypi(site.store, facts, log)
            elif facts is not None and inside.toolkit is not None:
                home = Path("/usr/local/cuda")
                kit = Toolkit(home=home, version=inside.toolkit, provider="image", identity=inside.identity)
            inputs = pinned(
                step,
                site,
                log,
                executor="docker",
                kit=kit,
                compiler=Compiler(cc=f"gcc-{inside.gcc}", cxx=f"g++-{inside.gcc}", identity=inside.identity),
                python=image_inside.python(inside, None if serves_any_python(step, site) else step.python),
            )
            inputs = replace(inputs, image=inside.image)
            return extended(inputs, site, self._requires(step, site, inputs, log), log)

    def wheel(self, step: Step, site: Site, inputs: Inputs, clock: Clock, log: Path) -> Path:
        with clock.part("environment"):
            mounts = _mounts(step, site, inputs, log)
        cache, row, work = site.cache, step.wheel.id, clock.work
        with clock.part("compile"), compiler_cache.contained(cache, row, inputs, sandbox.INPUTS, work) as cached:
            limits = sandbox.limits(self.client, self.settings.memory)
            mounts |= {name: sandbox.readable(path, always=True) for name, path in cached.mounts.items()}

            def attempt(load: backend.Load) -> Path:
                work = clock.work / f"jobs-{load.jobs}-{load.threads}"
                args = sandbox.create_args(site.store, mounts, work, limits, cached.writable)
                config = _config(cached.environ(_environment(step, site, inputs, load)), inputs, args)
                return _build(self.client, config, site, work, log)

            load = backend.load(site.project.compiled, len(step.wheel.sm), memory=limits.memory, cores=limits.cores)
            return backend.with_memory(attempt, load, site.reporter.note)

    def _requires(self, step: Step, site: Site, inputs: Inputs, log: Path) -> list[str]:
        """What the back end itself asks for (PEP 517), asked once in a container as closed as the build's."""
        torch = inputs.torch if site.project.imports_torch else None
        key = digest([inputs.compiler.identity, site.project.sha256, inputs.tools, torch])
        known = site.store.record("requires", key)
        if known is None:
            box = sandbox.Sandbox(
                image=str(inputs.image),
                python=inputs.python,
                mounts=_mounts(step, site, inputs, log),
                env=_environment(step, site, inputs, backend.ONE),
                limits=sandbox.limits(self.client, self.settings.memory),
            )
            known = sandbox.requires(self.client, site, box, log)
            site.store.put_record("requires", key, known)
        return [str(text) for text in known]


def _mounts(step: Step, site: Site, inputs: Inputs, log: Path) -> dict[str, Path]:
    """The folders that a container gets read-only, by their names under `/inputs`."""
    mounts = {"tools": _tree(site, inputs.tools, inputs.python, None, log)}
    if inputs.toolkit is not None and inputs.toolkit.provider == "pypi":
        mounts["toolkit"] = inputs.toolkit.home.parent
    if site.project.imports_torch:
        mounts["torch"] = _tree(site, inputs.torch, inputs.python, inputs.torch_backend, log)
    else:
        mounts["torch"] = torch_headers(site, inputs, step.torch_release, log)
    return {name: sandbox.readable(path) for name, path in mounts.items()}


def _tree(site: Site, pins: str, python: str, variant: str | None, log: Path) -> Path:
    """A folder of installed packages for the container's Python, which finds them by PYTHONPATH."""

    def make(folder: Path) -> None:
        fetch.install(site.store, pins, into=folder, python=python, log=log, backend=variant)
        for program in (folder / "bin").glob("*"):
            _any_python(program)

    return site.store.entry("trees", digest([python, pins]), make)


def _any_python(program: Path) -> None:
    """Let a script that names this machine's interpreter run under whichever Python is first on PATH."""
    text = program.read_bytes()
    if found := SHEBANG.match(text):
        program.write_bytes(b"#!/usr/bin/env python\n" + text[found.end() :])


def _environment(step: Step, site: Site, inputs: Inputs, load: backend.Load) -> dict[str, str]:
    """What the build sees in the container: as under `local`, at the places where inputs are mounted."""
    inside = inputs
    if inputs.toolkit is not None and inputs.toolkit.provider == "pypi":
        moved = Toolkit(
            home=sandbox.INPUTS / "toolkit" / "home",
            version=inputs.toolkit.version,
            provider="pypi",
            identity=inputs.toolkit.identity,
        )
        inside = replace(inputs, toolkit=moved)
    python = Path("/opt/python/bin/python")
    env = backend.environ(step, inside, python, sandbox.INPUTS / "torch" / "torch", Path("/project"), load)
    env = {name: value for name, value in env.items() if name not in HOSTS}
    paths = [str(sandbox.INPUTS / "tools"), *([str(sandbox.INPUTS / "torch")] if site.project.imports_torch else [])]
    tools = [str(sandbox.INPUTS / "tools" / "bin")]
    tools += [str(sandbox.INPUTS / "toolkit" / "home" / "bin")] if "toolkit" in env.get("CUDA_HOME", "") else []
    return {**env, "PYTHONPATH": ":".join(paths), "PATH": ":".join(tools)}


def _evaluated(name: str, value: str) -> str:
    """A variable as cibuildwheel takes it, which evaluates each as bash does a word in double quotes."""
    word = re.sub(r'([\\"$`])', r"\\\1", value)
    return f"{word}:$PATH" if name == "PATH" else word


def _config(environment: dict[str, str], inputs: Inputs, create_args: list[str]) -> str:
    """Cibuildwheel's options as TOML, whose strings are JSON's."""
    quoted = json.dumps
    excludes = " ".join(f"--exclude {shlex.quote(name)}" for name in repair.EXTERNAL)
    rows = {
        "build": quoted(f"cp{inputs.python.replace('.', '')}-manylinux_x86_64"),
        "skip": quoted(""),
        "test-skip": quoted("*"),
        "dependency-versions": quoted("latest"),  # the image holds them; else constraints are written to /
        "build-frontend": '{name = "build", args = ["--no-isolation", "--skip-dependency-check"]}',
        "manylinux-x86_64-image": quoted(inputs.image),
        "container-engine": '{name = "docker", disable-host-mount = true, create-args = ' + quoted(create_args) + "}",
        "repair-wheel-command": quoted(
            # A wheel that cannot be repaired comes out as it is, and is told by its tag.
            f"auditwheel repair {excludes} -w {{dest_dir}} {{wheel}} || cp {{wheel}} {{dest_dir}}"
        ),
    }
    return "\n".join(
        [
            "[tool.cibuildwheel]",
            *(f"{name} = {value}" for name, value in rows.items()),
            "[tool.cibuildwheel.environment]",
            *(f"{name} = {quoted(_evaluated(name, value))}" for name, value in environment.items()),
            "",
        ]
    )


def _build(client: DockerClient, config: str, site: Site, work: Path, log: Path) -> Path:
    work.mkdir()
    project.copy(site.project, work / "source")
    options, out = work / "cibuildwheel.toml", work / "built"
    options.write_text(config)
    command = [sys.executable, "-m", "cibuildwheel", "--platform", "linux", "--config-file", str(options)]
    command += ["--output-dir", str(out), str(work / "source")]
    # Cibuildwheel would write its own options to the step summary of a job on GitHub.
    foreign = ("CIBW_", "PYTHON", "GITHUB_STEP_SUMMARY")
    env = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    try:
        proc.run(command, log=log, env={**env, "CIBW_ENABLE": GROUPS}, cwd=work)
    except proc.ProcessError as error:
        if sandbox.UNSEEN in error.output:
            raise sandbox.unseen() from error
        if "pure Python wheel" in error.output:
            raise repair.pure(site.project.root.name) from error
        raise
    finally:
        sandbox.remove(client, sandbox.WORK, str(work))
    (wheel,) = out.glob("*.whl")
    if any(tag.startswith("linux_") for tag in repair.platforms(wheel)):
        kept = shutil.copy2(wheel, log.parent)
        raise BuildError(
            f"auditwheel cannot give {wheel.name} a manylinux tag: "
            + "\n".join(f"    {line}" for line in proc.excerpt(log.read_text(errors="replace"))),
            remedy=f"the wheel as it was built is {kept}, the whole output is in {log}",
        )
    return wheel


def start(settings: Settings, store: Store) -> Docker:
    """The executor, once the engine answers and what killed runs left in it is gone. Raises MissingError."""
    client = engine.connect()
    if shutil.which("docker") is None:
        raise MissingError(
            "a container engine answers, and its command line `docker`, which cibuildwheel calls, is not on PATH",
            remedy="install it (Debian, Ubuntu: apt install docker.io), or build without containers: --executor local",
        )
    sandbox.sweep(client, store)
    store.put_record(*sandbox.STARTED, {})
    return Docker(client, settings)
