"""What a container of the gates is made of: the image, what is mounted, and how the engine gives it the GPU."""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wheelmill import engine, gates_host, image_inside
from wheelmill.errors import InputError, MissingError
from wheelmill.names import listing
from wheelmill.store import digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from docker import DockerClient

    from wheelmill.claims import Place
    from wheelmill.gates import Asked, Subject
    from wheelmill.store import Store

CDI_KIND = "nvidia.com/gpu"
REMEDY_GPU = (
    "install NVIDIA's container toolkit (nvidia-ctk runtime configure), or write a CDI file for the GPUs "
    "(nvidia-ctk cdi generate) and switch CDI on in the engine (features: {cdi: true}), then restart it"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Box:
    """What to run in: the image (None: the CUDA's image here), `HOST:CONTAINER` mounts, `NAME=VALUE` variables.

    `python` is an interpreter in the image that has torch; None: the image's own Python, with a torch that is mounted.
    """

    image: str | None
    mounts: tuple[str, ...]
    env: tuple[str, ...]
    python: Path | None


def gpu_request(info: Mapping[str, Any]) -> tuple[Any, dict[str, str] | None]:
    """(how to ask this engine for the GPUs, None) or (None, why it has no way to give them)."""
    from docker.types import DeviceRequest

    if any(CDI_KIND in text for text in _cdi_files(info.get("CDISpecDirs") or ())):
        return DeviceRequest(driver="cdi", device_ids=[f"{CDI_KIND}=all"]), None
    if "nvidia" in (info.get("Runtimes") or {}) or shutil.which("nvidia-container-runtime-hook"):
        return DeviceRequest(count=-1, capabilities=[["gpu"]]), None
    return None, {
        "kind": "no-runtime",
        "reason": "the container engine can give no container a GPU: it has neither NVIDIA's runtime nor a CDI "
        "file that names GPUs",
        "remedy": REMEDY_GPU,
    }


def _cdi_files(folders: Any) -> Iterator[str]:
    """What the engine's CDI files say, where it is this machine's and they are for this user to read."""
    for folder in map(Path, folders):
        for path in sorted(folder.glob("*")):
            with contextlib.suppress(OSError):
                if path.suffix in (".yaml", ".yml", ".json") and path.is_file():
                    yield path.read_text(errors="replace")


def refusal(said: str) -> dict[str, str] | None:
    """Why the engine does not give a container the GPU, None where its words are of something else."""
    low, what = said.lower(), f"the container engine does not give a container the GPU: {said}"
    if "unsatisfied condition: cuda" in low:
        remedy = "update the NVIDIA driver, or test in an image of an older CUDA, the wheel of it"
        return {"kind": "driver-old", "reason": what, "remedy": remedy}
    if "nvml error" in low or "libnvidia-ml" in low:
        remedy = "see what nvidia-smi says on this machine; install the NVIDIA driver, or load it"
        return {"kind": "no-driver", "reason": what, "remedy": remedy}
    if any(word in low for word in ("device driver", "cdi device", "nvidia", "gpu")):
        return {"kind": "no-runtime", "reason": what, "remedy": REMEDY_GPU}
    return None


def image_of(client: DockerClient, one: Subject, box: Box) -> str:
    """The image that was named, else one that was made here: of the wheel's CUDA, for a cpu wheel of any."""
    from docker.errors import DockerException, ImageNotFound

    try:
        if box.image is not None:
            client.images.get(box.image)
            return box.image
        found = {
            image.labels["org.wheelmill.cuda"]: image.tags[0]
            for image in client.images.list(filters={"label": "org.wheelmill.cuda"})
            if image.tags
        }
    except ImageNotFound as error:
        raise engine.NoImageError(
            f"the image {box.image} is not here", remedy="pull or build it, or leave --image out"
        ) from error
    except DockerException as error:
        raise engine.explain(error) from error
    wanted = [one.claim.cuda] if one.claim.cuda not in (None, "cpu") else sorted(found, reverse=True)
    for tag in wanted:
        if tag in found:
            return found[tag]
    tag = wanted[0] if wanted else "cu130"
    raise engine.NoImageError(
        f"there is no image for {tag} here to test in",
        remedy=f"make it with `wheelmill images build {tag}`, or name one with --image",
    )


def python_of(client: DockerClient, store: Store, one: Subject, box: Box) -> str:
    """The newest Python of the image that the wheel takes. Raises MissingError where there is none."""
    image = image_of(client, one, box)
    inside = image_inside.look(client, store, image)
    taken = [python for python in inside.pythons if one.claim.takes_python(python) and not python.endswith("t")]
    if not taken:
        raise MissingError(
            f"the image {image} holds Python {listing(inside.pythons)}, and the wheel takes none of them",
            remedy="name an interpreter of the image that has torch with --python, or another image",
        )
    return taken[-1]


def interpreter(place: Place | None) -> str:
    number = place.cell.python.replace(".", "") if place else ""
    return f"/opt/python/cp{number}-cp{number.rstrip('t')}/bin/python"


def folders_of(store: Store, one: Subject, asked: Asked, box: Box, place: Place | None, log: Path) -> dict[str, Path]:
    """What is mounted read-only under `/inputs`: the wheel, torch where the image has none, the project's tests."""
    if box.python is not None or place is None:
        folders = {"wheel": gates_host.with_torch(store, one, box.python or Path("python3"), log).paths[0]}
    else:
        extra = ["pytest"] if "pytest" in asked.gates else []
        folders = {"wheel": _unpacked(store, one, place, log), "torch": _torch(store, one, place, extra, log)}
    return folders | ({"tests": asked.tests.resolve()} if asked.tests else {})


def _unpacked(store: Store, one: Subject, place: Place, log: Path) -> Path:
    from wheelmill import fetch

    def make(folder: Path) -> None:
        fetch.unpack(one.path.resolve(), into=folder, python=place.cell.python, log=log)

    return store.entry("gate-wheels", digest([one.sha256, place.cell.python]), make)


def _torch(store: Store, one: Subject, place: Place, extra: list[str], log: Path) -> Path:
    """A folder of torch, what the wheel needs beside it, and `extra`. Raises MissingError where torch cannot be had."""
    from wheelmill import fetch

    wanted = [f"torch=={place.release}", "numpy", *one.claim.others, *extra]
    last: MissingError | None = None
    for source in place.sources:
        try:
            pins = fetch.resolve(store, wanted, python=place.cell.python, log=log, backend=source)

            def make(folder: Path, pins: str = pins, source: str | None = source) -> None:
                fetch.install(store, pins, into=folder, python=place.cell.python, log=log, backend=source)

            return store.entry("trees", digest([place.cell.python, pins]), make)
        except MissingError as error:
            last = error
    raise last or MissingError(f"{place.cell.id} has no index to get its torch from")


def pair(text: str) -> tuple[str, str]:
    """(this machine's folder, the container's) of `HOST:CONTAINER`. Raises InputError."""
    outside, _, inside = text.rpartition(":")
    if not outside or not inside.startswith("/") or not Path(outside).exists():
        raise InputError(
            f"--mount {text} names no folder of this machine and of the container", remedy="HOST:CONTAINER"
        )
    return str(Path(outside).resolve()), inside


def variable(text: str) -> tuple[str, str]:
    name, found, value = text.partition("=")
    if not found or not name:
        raise InputError(f"--env {text} gives no variable a value", remedy="write NAME=VALUE")
    return name, value
