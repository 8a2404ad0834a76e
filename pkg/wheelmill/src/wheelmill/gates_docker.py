"""The docker executor of the gates: the scripts run in a container with the GPU and without a network."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wheelmill import engine, gates, gates_box, gates_host, sandbox
from wheelmill.errors import MissingError
from wheelmill.store import write_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from docker import DockerClient

    from wheelmill.claims import Place
    from wheelmill.gates import Asked, Subject
    from wheelmill.gates_box import Box
    from wheelmill.store import Store

OUT = "/out"
# Compiled caches and spawned processes need a place to write and to run from; the root is read-only.
TMP = "rw,exec,nosuid,nodev,mode=1777"


@dataclass(frozen=True, kw_only=True, slots=True)
class Docker:
    """An engine's container for one wheel: what is in it, and where its output and progress go.

    `place` is the torch that is mounted beside the wheel, None where the image brings its own.
    """

    client: DockerClient
    store: Store
    box: Box
    image: str
    place: Place | None
    folders: Mapping[str, Path]
    log: Path
    tell: Callable[[str], None]

    def run(self, one: Subject, asked: Asked, *, fresh: bool) -> dict[str, Any]:
        """Run a job in a container and return what the scripts told. Raises MissingError for what is not here."""
        request, no_gpu = None, None
        if "cuda" in one.devices and asked.device != "cpu":
            request, no_gpu = gates_box.gpu_request(self.client.info())
        if request is not None:
            told, no_gpu = self._try(one, asked, request, None, fresh=fresh)
            if no_gpu is None:
                return told
        if no_gpu is not None and asked.device == "cuda":
            raise MissingError(f"a GPU was asked for: {no_gpu['reason']}", remedy=no_gpu["remedy"])
        return self._try(one, asked, None, no_gpu, fresh=fresh)[0]

    def _try(
        self, one: Subject, asked: Asked, request: Any, no_gpu: Mapping[str, str] | None, *, fresh: bool
    ) -> tuple[dict[str, Any], dict[str, str] | None]:
        """(what was told, None), or ({}, why the engine does not give the GPU that was requested)."""
        tests = f"{sandbox.INPUTS}/tests" if asked.tests else None
        paths = [str(sandbox.INPUTS / name) for name in self.folders if name != "tests"]
        job = gates.job(one, asked, paths=paths, tests=tests, no_gpu=no_gpu)
        out = gates_host.folder_of(self.store, job, self._identity())
        with self.store.lock(f"gates-{out.name}", lambda: self.tell("waiting: another run tests the same")):
            gates_host.scripts(out / "scripts")
            write_json(out / "job.json", job)
            (out / "result.json").unlink(missing_ok=True)
            python = str(self.box.python or gates_box.interpreter(self.place))
            command = [python, f"{OUT}/scripts/{gates.SCRIPTS[0].name}", "--drive", f"{OUT}/job.json", OUT]
            refused = self._start([*command, *(["--fresh"] if fresh else [])], out, request)
            return ({}, refused) if refused else (gates_host.result(out), None)

    def _identity(self) -> str:
        """What tells one environment from another, beside what is installed: rows of an earlier run are of it alone."""
        content = str(self.client.images.get(self.image).id)
        return " ".join(["docker", content, str(self.box.python), *self.box.mounts, *self.box.env])

    def _start(self, command: Sequence[str], out: Path, request: Any) -> dict[str, str] | None:
        """Run the container to its end. Returns why the GPU could not be given to it, None where it ended well."""
        from docker.errors import APIError, DockerException
        from requests import RequestException

        with self.store.work("gates") as work:
            try:
                options = self._options(work, out, request)
                container = self.client.containers.run(self.image, list(command), detach=True, **options)
                self._follow(container)
                status = container.wait()["StatusCode"]
            except APIError as error:
                if sandbox.UNSEEN in str(error):
                    raise sandbox.unseen() from error
                refused = gates_box.refusal(str(error.explanation or error)) if request is not None else None
                if refused is not None:
                    return refused
                raise MissingError(
                    f"no container of {self.image} can be started: {error.explanation or error}",
                    remedy="see that its Python is where --python says, and that the mounts are right",
                ) from error
            except (DockerException, RequestException) as error:
                raise engine.explain(error) from error
            finally:
                sandbox.remove(self.client, sandbox.WORK, str(work))
        if status:
            raise MissingError(
                f"the gates did not run to their end in {self.image}: status {status}",
                remedy=f"see {self.log}; the memory that a container may use is the engine's, less one GiB",
            )
        return None

    def _follow(self, container: Any) -> None:
        """Write what a container prints into the log, and tell its progress."""
        with self.log.open("ab") as file:
            rest = ""
            for chunk in container.logs(stream=True, follow=True):
                file.write(chunk)
                *lines, rest = (rest + chunk.decode(errors="replace")).split("\n")
                for line in lines:
                    if line.startswith("["):
                        self.tell(line)

    def _options(self, work: Path, out: Path, request: Any) -> dict[str, Any]:
        """As closed as a build's container, with a read-only root besides, and one folder to write to."""
        from docker.types import Mount

        limits = sandbox.limits(self.client, None)
        inside = {str(sandbox.INPUTS / name): str(path) for name, path in self.folders.items()}
        inside |= {place: path for path, place in map(gates_box.pair, self.box.mounts)}
        mounts = [Mount(place, path, "bind", read_only=True) for place, path in inside.items()]
        return {
            "mounts": [*mounts, Mount(OUT, str(out), "bind")],
            "environment": {"HOME": "/tmp", **dict(map(gates_box.variable, self.box.env))},  # noqa: S108
            "labels": {sandbox.STORE: str(self.store.root), sandbox.WORK: str(work)},
            "device_requests": None if request is None else [request],
            "user": f"{os.getuid()}:{os.getgid()}",
            "working_dir": OUT,
            "network_mode": "none",
            "cap_drop": ["ALL"],
            "security_opt": sandbox.security(limits),
            "read_only": True,
            "tmpfs": {"/tmp": TMP},  # noqa: S108
            "pids_limit": sandbox.PROCESSES,
            "mem_limit": limits.memory,
            "memswap_limit": limits.memory,
            **({"nano_cpus": limits.cores * 10**9} if limits.bounded else {}),
        }


def start(store: Store) -> DockerClient:
    """A client, once the engine answers and what killed runs left in it is gone. Raises MissingError."""
    client = engine.connect()
    sandbox.sweep(client, store)
    store.put_record(*sandbox.STARTED, {})
    return client
