"""The docker executor: cibuildwheel drives the CUDA's image, with no network and every input mounted read-only."""

from __future__ import annotations

import json
import os
import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from wheelmill import backend, engine, fetch, image_choice, images, proc, project, repair, sandbox, toolkit
from wheelmill.errors import MissingError
from wheelmill.names import listing, version_key
from wheelmill.steps import pinned, serves_any_python, torch_headers
from wheelmill.store import digest
from wheelmill.toolkit import Compiler, Toolkit

if TYPE_CHECKING:
    from docker import DockerClient

    from wheelmill import image_build
    from wheelmill.images import Base
    from wheelmill.model import Step
    from wheelmill.steps import Clock, Inputs, Site
    from wheelmill.store import Store

# Of what a local build sees, these are the host's own and mean nothing in a container.
HOSTS = ("PATH", "HOME", "TMPDIR", "CC", "CXX", "CUDAHOSTCXX", "SYSTEMROOT", "LANG", "LC_ALL", "CMAKE_GENERATOR")


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
        image = self._image(step, site)
        labels, pythons = _inspect(self.client, site.store, image)
        facts = site.facts.cuda[step.wheel.cuda] if step.toolkit else None
        with site.store.adding_to_lock():
            kit = None
            if facts is not None and labels.get("org.wheelmill.toolkit", "none") == "none":
                kit = toolkit.pypi(site.store, facts, log)
            elif facts is not None:
                identity, found = labels[images.CONTENT], labels["org.wheelmill.toolkit"]
                kit = Toolkit(home=Path("/usr/local/cuda"), version=found, provider="image", identity=identity)
            gcc = labels.get("org.wheelmill.gcc", "")
            inputs = pinned(
                step,
                site,
                log,
                executor="docker",
                kit=kit,
                compiler=Compiler(cc=f"gcc-{gcc}", cxx=f"g++-{gcc}", identity=labels[images.CONTENT]),
                python=_python(pythons, None if serves_any_python(step, site) else step.python, image),
            )
            more = self._requires(step, site, inputs, image, log)
            if not more:
                return inputs
            stated = [*project.build_requirements(site.project), *more]
            return replace(inputs, tools=fetch.resolve(site.store, stated, python=inputs.python, log=log))

    def wheel(self, step: Step, site: Site, inputs: Inputs, clock: Clock, log: Path) -> Path:
        with clock.part("environment"):
            mounts = _mounts(step, site, inputs, log)
        with clock.part("compile"):
            image = self._image(step, site)
            limits = sandbox.limits(self.client, self.settings.memory)

            def attempt(load: backend.Load) -> Path:
                work = clock.work / f"jobs-{load.jobs}-{load.threads}"
                args = sandbox.create_args(site.store, mounts, work, limits)
                config = _config(_environment(step, site, inputs, load), inputs.python, image, args)
                return _build(self.client, config, site, work, log)

            load = backend.load(site.project.compiled, len(step.wheel.sm), memory=limits.memory, cores=limits.cores)
            return backend.with_memory(attempt, load, site.reporter.note)

    def _requires(self, step: Step, site: Site, inputs: Inputs, image: str, log: Path) -> list[str]:
        """What the back end itself asks for (PEP 517), asked once in a container as closed as the build's."""
        key = digest([image, site.project.sha256, inputs.tools, inputs.torch if site.project.imports_torch else None])
        known = site.store.record("requires", key)
        if known is None:
            box = sandbox.Sandbox(
                image=image,
                python=inputs.python,
                mounts=_mounts(step, site, inputs, log),
                env=_environment(step, site, inputs, backend.ONE),
            )
            known = sandbox.requires(self.client, site, box, log)
            site.store.put_record("requires", key, known)
        return [str(text) for text in known]

    def _image(self, step: Step, site: Site) -> str:
        return image_choice.choose(self.client, self.settings.base, self.settings.images, step, site)


def _inspect(client: DockerClient, store: Store, image: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """(labels, Pythons) of a local image."""
    from docker.errors import DockerException

    try:
        found = client.images.get(image)
        key = digest(found.id)
        known = store.record("images", key)
        if known is None:
            listed = client.containers.run(image, ["ls", "/opt/python"], remove=True, network_mode="none")
            known = [name[2:].split("-")[0] for name in listed.decode().split() if name.startswith("cp3")]
            store.put_record("images", key, known)
    except DockerException as error:
        raise engine.explain(error) from error
    pythons = {f"{name[0]}.{name[1:]}" for name in known if name != "39"}
    return dict(found.labels), tuple(sorted(pythons, key=version_key))


def _python(pythons: tuple[str, ...], wanted: str | None, image: str) -> str:
    if wanted is None:
        return [python for python in pythons if not python.endswith("t")][-1]
    if wanted not in pythons:
        raise MissingError(
            f"the image {image} holds Python {listing(pythons)}, and the wheel is for {wanted}",
            remedy="build it in the manylinux image (--base manylinux), which holds every Python",
        )
    return wanted


def _mounts(step: Step, site: Site, inputs: Inputs, log: Path) -> dict[str, Path]:
    """The folders that a container gets read-only, by their names under `/inputs`."""
    mounts = {"tools": _tree(site, inputs.tools, inputs.python, None, log)}
    if inputs.toolkit is not None and inputs.toolkit.provider == "pypi":
        mounts["toolkit"] = inputs.toolkit.home.parent
    if site.project.imports_torch:
        mounts["torch"] = _tree(site, inputs.torch, inputs.python, inputs.torch_backend, log)
    else:
        mounts["torch"] = torch_headers(site, inputs, step.torch_release, log)
    return mounts


def _tree(site: Site, pins: str, python: str, variant: str | None, log: Path) -> Path:
    """A folder of installed packages for the container's Python, which finds them by PYTHONPATH."""

    def make(folder: Path) -> None:
        fetch.install(site.store, pins, into=folder, python=python, log=log, backend=variant)

    return site.store.entry("trees", digest([python, pins]), make)


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
    tools = [str(sandbox.INPUTS / "toolkit" / "home" / "bin")] if "toolkit" in env.get("CUDA_HOME", "") else []
    return {**env, "PYTHONPATH": ":".join(paths), "PATH": ":".join([*tools, "$PATH"])}


def _config(environment: dict[str, str], python: str, image: str, create_args: list[str]) -> str:
    """Cibuildwheel's options as TOML, whose strings are JSON's."""
    quoted = json.dumps
    excludes = " ".join(f"--exclude {shlex.quote(name)}" for name in repair.EXTERNAL)
    rows = {
        "build": quoted(f"cp{python.replace('.', '')}-manylinux_x86_64"),
        "skip": quoted(""),
        "test-skip": quoted("*"),
        "dependency-versions": quoted("latest"),  # the image holds them; else constraints are written to /
        "build-frontend": '{name = "build", args = ["--no-isolation", "--skip-dependency-check"]}',
        "manylinux-x86_64-image": quoted(image),
        "container-engine": '{name = "docker", disable-host-mount = true, create-args = ' + quoted(create_args) + "}",
        "repair-wheel-command": quoted(f"auditwheel repair {excludes} -w {{dest_dir}} {{wheel}}"),
    }
    return "\n".join(
        [
            "[tool.cibuildwheel]",
            *(f"{name} = {value}" for name, value in rows.items()),
            "[tool.cibuildwheel.environment]",
            *(f"{name} = {quoted(value)}" for name, value in environment.items()),
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
    env = {name: value for name, value in os.environ.items() if not name.startswith(("CIBW_", "PYTHON"))}
    try:
        proc.run(command, log=log, env={**env, "CIBW_ENABLE": "all"}, cwd=work)
    finally:
        sandbox.remove(client, sandbox.WORK, str(work))
    (wheel,) = out.glob("*.whl")
    return wheel


def start(settings: Settings, store: Store) -> Docker:
    """The executor, once the engine answers and what killed runs left in it is gone. Raises MissingError."""
    client = engine.connect()
    sandbox.sweep(client, store)
    return Docker(client, settings)
