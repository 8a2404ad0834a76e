"""What a local image holds, from its labels and one look into it: toolkit, host compiler and Pythons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelmill import engine, images, sandbox
from wheelmill.errors import MissingError
from wheelmill.names import listing, version_key
from wheelmill.store import digest

if TYPE_CHECKING:
    from docker import DockerClient

    from wheelmill.store import Store

# Each prints its release, `t` after a free-threaded one: folders' names are not enough, as some are links.
ASK = """
for python in /opt/python/cp*/bin/python; do
  $python -c 'import sys, sysconfig
print("{}.{}".format(*sys.version_info), "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else "", sep="")' || :
done
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Inside:
    """An image's CUDA release such as `12.4` (None: the toolchain is mounted), its gcc, and its Pythons.

    `identity` changes whenever what it compiles might.
    """

    image: str
    toolkit: str | None
    gcc: str
    pythons: tuple[str, ...]
    identity: str


def look(client: DockerClient, store: Store, image: str) -> Inside:
    """Look into a local image; its Pythons are asked once."""
    from docker.errors import DockerException

    try:
        found = client.images.get(image)
        key = digest([found.id, ASK])
        known = store.record("images", key)
        if known is None:
            with store.work("image") as work:
                said = sandbox.run(client, store, work, image, ["bash", "-uc", ASK])
            known = sorted(set(said.decode().split()), key=version_key)
            if not known:
                raise MissingError(
                    f"no Python of the image {image} runs, and a build needs one under /opt/python",
                    remedy="make the image anew (wheelmill images build), or name another base",
                )
            store.put_record("images", key, known)
    except DockerException as error:
        raise engine.explain(error) from error
    labels = found.labels
    toolkit = labels.get("org.wheelmill.toolkit", "none")
    return Inside(
        image=image,
        toolkit=None if toolkit == "none" else ".".join(toolkit.split(".")[:2]),
        gcc=labels.get("org.wheelmill.gcc", ""),
        pythons=tuple(map(str, known)),
        identity=labels.get(images.CONTENT) or str(found.id),
    )


def python(inside: Inside, wanted: str | None) -> str:
    """The Python that builds: `wanted`, or without one the newest. Raises MissingError where it is not there."""
    if wanted is None:
        return [one for one in inside.pythons if not one.endswith("t")][-1]
    if wanted not in inside.pythons:
        raise MissingError(
            f"the image {inside.image} holds Python {listing(inside.pythons)}, and the wheel is for {wanted}",
            remedy="build it in an image that has it (--base manylinux holds every Python), or leave it out of the "
            "matrix",
        )
    return wanted
