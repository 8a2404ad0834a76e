"""The containers that a project's own code runs in: closed, bounded, labelled and always removed."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wheelmill import backend, engine, proc, project
from wheelmill.errors import BuildError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from docker import DockerClient

    from wheelmill.steps import Site
    from wheelmill.store import Store

# Where a build container finds what the host fetched.
INPUTS = Path("/inputs")
# Every container carries the store and the work folder that it serves, so that a later run can sweep it.
STORE, WORK = "org.wheelmill.store", "org.wheelmill.work"
SPARED_MEMORY = 1 << 30
# Asks a back end what it needs (PEP 517); the image's `build` brings the library that knows how.
REQUIRES = """
import json, sys
from pyproject_hooks import BuildBackendHookCaller
name, path = json.loads(sys.argv[1])
hooks = BuildBackendHookCaller(".", name, path)
print()
print(json.dumps(hooks.get_requires_for_build_wheel()))
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What a build container may use: bytes of memory, swap included, and cores."""

    memory: int
    cores: int


def limits(client: DockerClient, memory: int | None) -> Limits:
    """The engine's machine, which may be smaller than this one, less a GiB of its memory."""
    engines = client.info()
    cores = min(int(engines["NCPU"]), len(os.sched_getaffinity(0)))
    return Limits(memory=memory or max(int(engines["MemTotal"]) - SPARED_MEMORY, SPARED_MEMORY // 2), cores=cores)


def create_args(store: Store, mounts: dict[str, Path], work: Path, limits: Limits) -> list[str]:
    volumes = [f"--volume={path}:{INPUTS / name}:ro" for name, path in mounts.items()]
    closed = ["--network=none", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--pids-limit=4096"]
    bounds = [f"--memory={limits.memory}", f"--memory-swap={limits.memory}", f"--cpus={limits.cores}"]
    return [*closed, *bounds, *volumes, f"--label={STORE}={store.root}", f"--label={WORK}={work}"]


def remove(client: DockerClient, label: str, value: str) -> None:
    """Remove every container under that label."""
    from docker.errors import DockerException, NotFound

    try:
        for container in client.containers.list(all=True, filters={"label": f"{label}={value}"}):
            with contextlib.suppress(NotFound):
                container.remove(force=True)
    except DockerException as error:
        raise engine.explain(error) from error


def sweep(client: DockerClient, store: Store) -> None:
    """Remove what killed runs left running: containers of this store whose work folder is gone."""
    for container in client.containers.list(all=True, filters={"label": f"{STORE}={store.root}"}):
        work = container.labels.get(WORK, "")
        if not Path(work).exists():
            remove(client, WORK, work)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sandbox:
    """An image with one of its Pythons, what is mounted in it under `/inputs`, and the environment."""

    image: str
    python: str
    mounts: Mapping[str, Path]
    env: Mapping[str, str]


def requires(client: DockerClient, site: Site, box: Sandbox, log: Path) -> list[str]:
    """What the project's back end asks for beside build-system.requires. Raises BuildError with what it said."""
    from docker.errors import ContainerError

    tag = f"cp{box.python.replace('.', '')}"
    asked = json.dumps([site.project.backend, site.project.backend_path])
    shell = f'cp -r {INPUTS}/source/. . && exec /opt/python/{tag}-{tag}/bin/python -c "$0" "$1"'
    with site.store.work("requires") as work:
        project.copy(site.project, work / "source")
        volumes = {str(path): {"bind": str(INPUTS / name), "mode": "ro"} for name, path in box.mounts.items()}
        volumes[str(work / "source")] = {"bind": str(INPUTS / "source"), "mode": "ro"}
        try:
            said = client.containers.run(
                box.image,
                ["bash", "-euc", shell, REQUIRES, asked],
                environment={name: value for name, value in box.env.items() if name != "PATH"},
                volumes=volumes,
                labels={STORE: str(site.store.root), WORK: str(work)},
                network_mode="none",
                cap_drop=["ALL"],
                security_opt=["no-new-privileges"],
                pids_limit=4096,
            )
        except ContainerError as error:
            output = error.stderr.decode(errors="replace") if isinstance(error.stderr, bytes) else str(error.stderr)
            with log.open("a", encoding="utf-8") as out:
                out.write(output)
            raise BuildError(
                f"the build back end {site.project.backend} does not say what it needs:\n"
                + "\n".join(f"    {line}" for line in proc.excerpt(output)),
                remedy="correct build-system in the project's pyproject.toml, or what its back end reads",
            ) from error
        finally:
            remove(client, WORK, str(work))
    return backend.without_torch(json.loads(said.decode().strip().splitlines()[-1]))
