"""The containers that a project's own code runs in: closed, bounded, labelled and always removed."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from wheelmill import backend, engine, proc, project
from wheelmill.errors import BuildError, MissingError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from docker import DockerClient

    from wheelmill.steps import Site
    from wheelmill.store import Store

# Where a build container finds what the host fetched.
INPUTS = Path("/inputs")
# Every container carries the store and the work folder that it serves, so that a later run can sweep it.
STORE, WORK = "org.wheelmill.store", "org.wheelmill.work"
STARTED = ("containers", "started")
SPARED_MEMORY = 1 << 30
PROCESSES = 4096
# What an engine says of a folder that it does not have, being on another machine.
UNSEEN = "bind source path does not exist"
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
    """What a build container may use: bytes of memory, swap included, and cores.

    `bounded` is false where the engine cannot limit cores and refuses to try; `labelled` true under SELinux.
    """

    memory: int
    cores: int
    bounded: bool
    labelled: bool


def limits(client: DockerClient, memory: int | None) -> Limits:
    """The engine's machine, which may be smaller than this one, less a GiB of its memory."""
    engines = client.info()
    return Limits(
        memory=memory or max(int(engines["MemTotal"]) - SPARED_MEMORY, SPARED_MEMORY // 2),
        cores=min(int(engines["NCPU"]), len(os.sched_getaffinity(0))),
        bounded=bool(engines.get("CpuCfsQuota", True)),
        labelled=any("selinux" in option for option in engines.get("SecurityOptions") or ()),
    )


def security(limits: Limits | None) -> list[str]:
    # Under SELinux a container does not read what is mounted unless its label is off or the files' are changed.
    return ["no-new-privileges", *(["label=disable"] if limits is not None and limits.labelled else [])]


def create_args(
    store: Store,
    mounts: Mapping[str, Path],
    work: Path,
    limits: Limits,
    writable: Mapping[Path, Path] = MappingProxyType({}),
) -> list[str]:
    """The arguments of `docker create` for a build; `writable` are folders by their places in the container."""
    closed = ["--network=none", "--cap-drop=ALL", f"--pids-limit={PROCESSES}"]
    closed += [f"--security-opt={option}" for option in security(limits)]
    bounds = [f"--memory={limits.memory}", f"--memory-swap={limits.memory}"]
    bounds += [f"--cpus={limits.cores}"] if limits.bounded else []
    # A row of CSV: a path may hold a comma, a quote or a colon.
    rows = [
        ",".join(["type=bind", _field(f"source={path}"), f"target={INPUTS / name}", "readonly"])
        for name, path in mounts.items()
    ]
    rows += [",".join(["type=bind", _field(f"source={path}"), f"target={name}"]) for name, path in writable.items()]
    return [
        *(*closed, *bounds),
        *(f"--mount={row}" for row in rows),
        *(f"--label={STORE}={store.root}", f"--label={WORK}={work}"),
    ]


def _field(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def run(
    client: DockerClient,
    store: Store,
    work: Path,
    image: str,
    command: Sequence[str],
    *,
    mounts: Mapping[str, Path] | None = None,
    env: Mapping[str, str] | None = None,
    limits: Limits | None = None,
) -> bytes:
    """Run a command in a container as closed as a build's and return what it printed.

    Raises docker's ContainerError where it fails, MissingError where the engine does not see this machine's files.
    """
    from docker.errors import APIError
    from docker.types import Mount

    bounds: dict[str, Any] = {}
    if limits is not None:
        bounds = {"mem_limit": limits.memory, "memswap_limit": limits.memory}
        bounds |= {"nano_cpus": limits.cores * 10**9} if limits.bounded else {}
    try:
        printed: bytes = client.containers.run(
            image,
            list(command),
            environment=dict(env or {}),
            mounts=[
                Mount(str(INPUTS / name), str(path), "bind", read_only=True) for name, path in (mounts or {}).items()
            ],
            labels={STORE: str(store.root), WORK: str(work)},
            network_mode="none",
            cap_drop=["ALL"],
            security_opt=security(limits),
            pids_limit=PROCESSES,
            **bounds,
        )
    except APIError as error:
        if UNSEEN in str(error):
            raise unseen() from error
        raise
    else:
        return printed
    finally:
        remove(client, WORK, str(work))


def unseen() -> MissingError:
    """For an engine that runs elsewhere."""
    return MissingError(
        "the container engine does not see this machine's files: it runs on another machine, in another container, "
        "or shares other folders",
        remedy="use an engine of this machine (DOCKER_HOST), share the store's folder with it, or build without "
        "containers: --executor local",
    )


def readable(folder: Path, *, always: bool = False) -> Path:
    """Let the container's user, who is another, read a folder that is mounted, whatever this process's umask was."""
    others = stat.S_IROTH | stat.S_IXOTH
    if not always and folder.stat().st_mode & others == others:
        return folder
    for path in [*folder.rglob("*"), folder]:
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(mode | (0o555 if mode & stat.S_IXUSR else 0o444))
    return folder


def _under(client: DockerClient, label: str, value: str) -> Iterator[tuple[str, dict[str, str]]]:
    """(id, labels) of every container under that label, without a second look at each, which may be gone by then."""
    for row in client.api.containers(all=True, filters={"label": f"{label}={value}"}):
        yield row["Id"], row.get("Labels") or {}


def remove(client: DockerClient, label: str, value: str) -> None:
    """Remove every container under that label."""
    from docker.errors import APIError, DockerException, NotFound

    try:
        for name, _ in _under(client, label, value):
            try:
                client.api.remove_container(name, force=True, v=True)
            except NotFound:
                continue
            except APIError as error:
                if error.status_code != 409:  # another run is removing it  # noqa: PLR2004
                    raise
    except DockerException as error:
        raise engine.explain(error) from error


def sweep(client: DockerClient, store: Store) -> None:
    """Remove what killed runs left running: containers of this store whose work folder is gone."""
    from docker.errors import DockerException

    try:
        works = {labels.get(WORK, "") for _, labels in _under(client, STORE, str(store.root))}
    except DockerException as error:
        raise engine.explain(error) from error
    for work in works:
        if not Path(work).exists():
            remove(client, WORK, work)


def sweep_left(store: Store) -> None:
    """Sweep where a run with containers may have been killed, whatever this run builds with."""
    if store.record(*STARTED) is not None:
        with contextlib.suppress(MissingError):
            sweep(engine.connect(), store)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sandbox:
    """An image with one of its Pythons, what is mounted in it under `/inputs`, the environment and the limits."""

    image: str
    python: str
    mounts: Mapping[str, Path]
    env: Mapping[str, str]
    limits: Limits


def requires(client: DockerClient, site: Site, box: Sandbox, log: Path) -> list[str]:
    """What the project's back end asks for beside build-system.requires. Raises BuildError with what it said."""
    from docker.errors import ContainerError

    number = box.python.replace(".", "")
    asked = json.dumps([site.project.backend, site.project.backend_path])
    python = f"/opt/python/cp{number.rstrip('t')}-cp{number}/bin/python"
    shell = f'cp -r {INPUTS}/source/. . && exec {python} -c "$0" "$1"'
    with site.store.work("requires") as work:
        project.copy(site.project, work / "source")
        mounts = {**box.mounts, "source": readable(work / "source", always=True)}
        env = {name: value for name, value in box.env.items() if name != "PATH"}
        command = ["bash", "-euc", shell, REQUIRES, asked]
        try:
            said = run(client, site.store, work, box.image, command, mounts=mounts, env=env, limits=box.limits)
        except ContainerError as error:
            output = error.stderr.decode(errors="replace") if isinstance(error.stderr, bytes) else str(error.stderr)
            with log.open("a", encoding="utf-8") as out:
                out.write(output)
            raise BuildError(
                f"the build back end {site.project.backend} does not say what it needs:\n"
                + "\n".join(f"    {line}" for line in proc.excerpt(output)),
                remedy="correct build-system in the project's pyproject.toml, or what its back end reads",
            ) from error
    return backend.without_torch(json.loads(said.decode().strip().splitlines()[-1]))
