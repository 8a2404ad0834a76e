"""The one door to the container engine: connects, or says which of the things that can be wrong is wrong."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from wheelmill.errors import MissingError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docker import DockerClient

# The first API with what the executor asks for (Docker 20.10, of 2020).
OLDEST_API = (1, 41)
# What engines and registries say, in lower case. First whether the registry answered at all.
SILENT = (
    "no such host",
    "connection refused",
    "connection reset",
    "network is unreachable",
    "timeout",
    "timed out",
    "temporary failure in name resolution",
    "server misbehaving",
    "eof",
    "x509",
    "tls:",
)
NO_SPACE = "no space left on device"


class NoEngineError(MissingError):
    """No engine answers."""


class NoPermissionError(MissingError):
    """An engine is there, and its socket is not for this user."""


class OldEngineError(MissingError):
    """The engine's API is older than what is asked of it."""


class NoImageError(MissingError):
    """An image is neither here nor to be had."""


class NoSpaceError(MissingError):
    """The engine's disk is too small."""


def connect(*, seconds: int = 60) -> DockerClient:
    """A client of the engine that DOCKER_HOST names, else of the local socket; `seconds` bounds each of its answers.

    Raises NoEngineError, NoPermissionError or OldEngineError.
    """
    import docker  # slow to import, and a build without containers needs none of it
    from docker.errors import DockerException

    try:
        client = docker.from_env(version="auto", timeout=seconds)
        version = str(client.api.api_version)
        client.ping()
    except DockerException as error:
        raise explain(error) from error
    _check_version(version)
    return client


def explain(error: Exception) -> MissingError:
    """Why the engine cannot be talked to, as the SDK's or the transport's exception tells it."""
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    for cause in _causes(error):
        if isinstance(cause, PermissionError):
            return NoPermissionError(
                f"no permission on the container engine's socket {host}",
                remedy="join its group (sudo usermod -aG docker $USER, then log in again), or point DOCKER_HOST at a "
                "rootless engine's socket",
            )
        if isinstance(cause, OSError) and cause.errno in (errno.ENOENT, errno.ECONNREFUSED):
            there = cause.errno == errno.ECONNREFUSED
            return NoEngineError(
                f"no container engine answers at {host}" + (", though its socket is there" if there else ""),
                remedy="start one (systemctl start docker, or dockerd), set DOCKER_HOST, or build without containers: "
                "--executor local",
            )
    said = str(error)
    if "too old" in said or "too new" in said:
        return OldEngineError(
            f"the container engine and this client do not share an API: {said}",
            remedy="use an engine of Docker 20.10 or later",
        )
    return NoEngineError(f"the container engine at {host} cannot be used: {said}", remedy="see `docker info`")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The exception and every other that led to it; urllib3 and requests wrap them as arguments."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [other for other in (one.__cause__, one.__context__, *one.args) if isinstance(other, BaseException)]


def _check_version(version: str) -> None:
    found = tuple(int(part) for part in version.split("."))
    if found < OLDEST_API:
        raise OldEngineError(
            f"the container engine's API is {version}, and {'.'.join(map(str, OLDEST_API))} is needed",
            remedy="use an engine of Docker 20.10 or later, or build without containers: --executor local",
        )


def explain_pull(image: str, said: str, *, remedy: str = "") -> MissingError:
    """Why `image` cannot be pulled, from the engine's words; `remedy` says how else it can be had."""
    text = said.strip()
    low = text.lower()
    if NO_SPACE in low:
        return explain_space(text)
    if "toomanyrequests" in low or "rate limit" in low:
        why, what = "its registry refuses more downloads for now", "log in to the registry, or try again later"
    elif any(sign in low for sign in SILENT):
        why, what = "its registry cannot be reached", "check the network and the engine's proxy and registry mirrors"
    elif "unauthorized" in low or "denied" in low:
        why, what = "its registry refuses it, or has no such image", "log in (docker login), or check the name"
    else:
        why, what = "its registry does not have it", "check the name, or refresh the pins (wheelmill images refresh)"
    return NoImageError(f"the image {image} is not here and cannot be pulled: {why}\n    {text}", remedy=remedy or what)


def explain_space(said: str) -> NoSpaceError:
    """The engine's disk ran full."""
    return NoSpaceError(
        f"the container engine's disk is full: {said}",
        remedy="free some space (docker system df, docker image prune, docker builder prune), then run it again",
    )


def free_space(client: DockerClient) -> int | None:
    """Bytes free where the engine keeps images; None where that cannot be seen, as with an engine elsewhere."""
    if client.api.base_url != "http+docker://localhost":
        return None
    root = Path(client.info()["DockerRootDir"])
    try:  # an engine in a machine of its own names a folder that is not here
        return shutil.disk_usage(root).free if root.is_dir() else None
    except OSError:
        return None


def require_space(client: DockerClient, needed: int, what: str) -> None:
    """Raise NoSpaceError where the engine's disk has less than `needed` bytes for `what`."""
    free = free_space(client)
    if free is not None and free < needed:
        raise NoSpaceError(
            f"{what} needs {needed / 1e9:.1f} GB on the container engine's disk, and {free / 1e9:.1f} GB are free",
            remedy="free some space (docker system df, docker image prune, docker builder prune), or move the "
            "engine's data-root to a larger disk",
        )
