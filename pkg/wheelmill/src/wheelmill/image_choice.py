"""Which image a step is built in: one that is here, else one that is made now."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from wheelmill import engine, image_build, images
from wheelmill.errors import MissingError

if TYPE_CHECKING:
    from docker import DockerClient

    from wheelmill.images import Base, Image, Pins
    from wheelmill.model import Step
    from wheelmill.steps import Site

BASES: tuple[Base, ...] = ("manylinux", "debian")


def _tags(step: Step, site: Site) -> list[str]:
    """The CUDA whose image will do, best first: the step's own, for cpu the newest.

    Where another minor of the major will do, the nearest later one, then the nearest earlier.
    """
    wanted = step.wheel.cuda
    if wanted == "cpu":
        return list(images.load().cuda)[::-1]
    others = [tag for tag in site.facts.cuda if tag[:4] == wanted[:4] and tag != wanted] if site.same_major else []
    return [wanted, *sorted(others, key=lambda tag: (tag < wanted, abs(int(tag[2:]) - int(wanted[2:]))))]


def _definition(pins: Pins, tags: list[str], base: Base) -> Image | None:
    return next((image for tag in tags if (image := images.find(pins, tag, base))), None)


def choose(client: DockerClient, base: Base | None, made: image_build.Site, step: Step, site: Site) -> str:
    """The name of an image for the step; of both bases manylinux first.

    One that is here is taken, else one is made, of Debian where no registry gives manylinux. Raises MissingError
    where none can be had.
    """
    bases = (base,) if base else BASES
    tags = _tags(step, site)
    here = {name for image in client.images.list() for name in image.tags}
    for name in (images.name_for(tag, one) for tag in tags for one in bases):
        if name in here:
            return name
    pins = images.load()
    refused: list[MissingError] = []
    for one in bases:
        image = _definition(pins, tags, one)
        if image is None:
            continue
        try:
            _make(client, pins, image, made, step, site)
        except engine.NoImageError as error:
            refused.append(error)
            site.reporter.note(f"note: {error}")
        else:
            return image.name
    if step.toolkit is not None and not site.same_major:
        refused.append(
            MissingError("no other CUDA may build it", remedy="allow another minor: toolkit: {minor: same-major}")
        )
    why = "; ".join(str(error).splitlines()[0] for error in refused)
    raise MissingError(
        f"no {base or 'container'} image for {step.wheel.cuda} is here, and none can be made: {why}",
        remedy="; or ".join(dict.fromkeys(error.remedy for error in refused)),
    )


def _make(client: DockerClient, pins: Pins, image: Image, made: image_build.Site, step: Step, site: Site) -> None:
    tell = functools.partial(site.reporter.step, step.wheel.id)
    with site.store.lock(f"image-{image.tag}-{image.base}", lambda: tell("waiting for another run's image")):
        log = site.store.log(f"image-{image.tag}-{image.base}")
        image_build.ensure(client, pins, image, made, lambda what: tell(f"image {image.name}: {what}"), log)
