"""Options of every verb that may make a container image: which base, and how this site reaches what is in it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from wheelmill.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from wheelmill.container import Settings
    from wheelmill.image_build import Site
    from wheelmill.images import Base

LEAST_MEMORY = 64 << 20
F = TypeVar("F", bound="Callable[..., Any]")

OPTIONS = (
    click.option(
        "--network", envvar="WHEELMILL_NETWORK", help="The network of containers that make images: host, say."
    ),
    click.option(
        "--ca",
        "certificates",
        type=click.Path(path_type=Path),
        multiple=True,
        envvar=["WHEELMILL_CA", "SSL_CERT_FILE"],
        help="PEM file that images trust. Default: SSL_CERT_FILE's.",
    ),
    click.option(
        "--apt-mirror", envvar="WHEELMILL_APT_MIRROR", help="Debian's packages come from here (debian images only)."
    ),
    click.option(
        "--pip-index",
        envvar=["WHEELMILL_PIP_INDEX", "PIP_INDEX_URL"],
        help="Python's packages in images come from here. It stays readable in them.",
    ),
    click.option(
        "--bootstrap/--no-bootstrap",
        default=None,
        envvar="WHEELMILL_BOOTSTRAP",
        help="Make a Debian that no registry gives of a Debian mirror. Default: as root, where debootstrap is.",
    ),
)


CONTAINERS = (
    click.option(
        "--base",
        type=click.Choice(["manylinux", "debian"]),
        envvar="WHEELMILL_BASE",
        help="Of images. Default: the one that is here, else manylinux, else debian.",
    ),
    click.option("--memory", envvar="WHEELMILL_MEMORY", help="Of a build container, as 8g. Default: all but 1 GiB."),
    *OPTIONS,
)


def _add(options: Iterable[Callable[[F], F]], command: F) -> F:
    for option in reversed(tuple(options)):
        command = option(command)
    return command


def site_options(command: F) -> F:
    """Add what `site` takes to a command."""
    return _add(OPTIONS, command)


def container_options(command: F) -> F:
    """Add what `container_settings` takes to a command."""
    return _add(CONTAINERS, command)


def site(base_image: str | None = None, **options: Any) -> Site:
    """The site that those options describe."""
    from wheelmill import image_build

    return image_build.Site(base_image=base_image, **options)


def container_settings(base: Base | None, memory: str | None, **options: Any) -> Settings:
    """How containers build. Raises InputError for what is no amount of memory."""
    from wheelmill import container

    limit = None if memory is None else _bytes(memory)
    return container.Settings(base=base, images=site(**options), memory=limit)


def _bytes(memory: str) -> int:
    from docker.errors import DockerException
    from docker.utils import parse_bytes

    try:
        limit = int(parse_bytes(memory))
    except DockerException as error:
        raise InputError(f"--memory {memory} is no amount of memory", remedy="write 8g, or 900m") from error
    if limit < LEAST_MEMORY:
        raise InputError(f"--memory {memory}: no compiler runs in so little", remedy="give 2g or more a compiler")
    return limit
