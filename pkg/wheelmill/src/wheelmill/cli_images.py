"""`wheelmill images`: the container images that the docker executor builds in."""

from __future__ import annotations

import datetime as dt
import functools
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wheelmill import images as definitions
from wheelmill import report
from wheelmill.cli_site import site, site_options
from wheelmill.errors import GateError, MissingError

if TYPE_CHECKING:
    from wheelmill.images import Base, Image

base_option = click.option(
    "--base",
    type=click.Choice(["manylinux", "debian"]),
    default="manylinux",
    show_default=True,
    help="debian needs only mirrors of Debian and PyPI.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


@click.group("images")
def images() -> None:
    """The container images: list, build, check and refresh them."""


def _present(every: tuple[Image, ...]) -> tuple[dict[str, int | None], str]:
    """The size in bytes of each image that is here, None for one that is not; and why no engine could tell."""
    from wheelmill import engine

    try:
        client = engine.connect()
    except MissingError as error:
        return {}, str(error)
    sizes = {tag: one.attrs["Size"] for one in client.images.list(name="wheelmill/*") for tag in one.tags}
    return {image.name: sizes.get(image.name) for image in every}, ""


@images.command("list")
@click.argument("select", nargs=-1)
@json_option
def list_(select: tuple[str, ...], as_json: bool) -> None:  # noqa: FBT001
    """What each image is made of, and whether it is here. SELECT are globs on CUDA tags."""
    pins = definitions.load()
    bases: tuple[Base, ...] = ("manylinux", "debian")
    every = tuple(
        image for base in bases for image in definitions.select(pins, select if base == "manylinux" else (), base)
    )
    tags = {image.tag for image in every if image.base == "manylinux"}
    every = tuple(image for image in every if image.tag in tags)
    here, unknown = _present(every)
    if as_json:
        rows = [
            {
                "name": image.name,
                "tag": image.tag,
                "base": image.base,
                "base_image": image.base_image,
                "toolkit": image.toolkit,
                "gcc": image.gcc,
                "present": None if unknown else here[image.name] is not None,
                "bytes": here.get(image.name),
            }
            for image in every
        ]
        click.echo(json.dumps({"version": 1, "engine": unknown or None, "images": rows}, indent=1))
        return
    for image in every:
        size = here.get(image.name)
        state = "?" if unknown else "-" if size is None else f"{size / 1e9:.2f} GB"
        click.echo(
            f"{image.name:26} CUDA {image.toolkit or 'mounted':8} gcc {image.gcc:<3} {state:8} {image.base_image}"
        )
    if unknown:
        click.echo(f"which are here is not known: {unknown}")


@images.command("check")
@click.option("--write", is_flag=True, help="Render the Dockerfiles anew instead.")
def check(write: bool) -> None:  # noqa: FBT001
    """Whether docker/ holds what its template and pins make; exit code 1 where not."""
    pins = definitions.load()
    if write:
        for name in definitions.write(pins):
            click.echo(f"written: docker/{name}")
        return
    if drifted := definitions.drifted(pins):
        raise GateError(
            f"not what docker/{definitions.TEMPLATE} and docker/{definitions.PINS} make: {', '.join(drifted)}",
            remedy="edit the template or the pins, then run `wheelmill images check --write`",
        )
    click.echo(f"{len(pins.cuda)} Dockerfiles are what template and pins make")


@images.command("refresh")
def refresh() -> None:
    """Pin the newest base image and packages, and render the Dockerfiles; needs their servers."""
    from wheelmill import image_refresh

    changed = image_refresh.refresh(definitions.load(), date=dt.datetime.now(dt.timezone.utc).date().isoformat())
    for name in changed:
        click.echo(f"changed: docker/{name}")
    if not changed:
        click.echo("the pins are the newest")


@images.command("build")
@click.argument("select", nargs=-1)
@base_option
@click.option("--base-image", help="In place of the pinned base; any image with the same layout.")
@site_options
@click.option("--store", type=click.Path(path_type=Path, file_okay=False), envvar="WHEELMILL_STORE")
@json_option
def build(
    *,
    select: tuple[str, ...],
    base: Base,
    base_image: str | None,
    store: Path | None,
    as_json: bool,
    **where: Any,
) -> None:
    """Build the images whose CUDA tags SELECT names (globs; all without one).

    An image whose content did not change is not built again.
    """
    from wheelmill import engine, image_build
    from wheelmill.store import Store

    pins = definitions.load()
    chosen = definitions.select(pins, select, base)
    made = site(base_image, **where)
    logs = Store(store or Path.cwd() / ".wheelmill")
    client = engine.connect()
    rows = []
    with report.choose([image.name for image in chosen]) as reporter:
        for image in chosen:
            log = logs.log(f"image-{image.tag}-{image.base}")
            try:
                tell = functools.partial(reporter.step, image.name)
                built = image_build.ensure(client, pins, image, made, tell, log)
            except BaseException:
                reporter.done(image.name, "failed", f"see {os.path.relpath(log)}")
                raise
            size = client.images.get(image.name).attrs["Size"]
            reporter.done(image.name, "built" if built else "unchanged", f"{size / 1e9:.2f} GB")
            rows.append({"name": image.name, "id": client.images.get(image.name).id, "built": built, "bytes": size})
    if as_json:
        click.echo(json.dumps({"version": 1, "images": rows}, indent=1))
