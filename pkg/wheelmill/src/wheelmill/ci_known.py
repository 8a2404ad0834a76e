"""What is known of a plan's inputs before anything is built: sources, engine, lock, images."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelmill import image_build, images, project, steps
from wheelmill.ci_jobs import Known
from wheelmill.lock import NAME
from wheelmill.store import file_sha256

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from wheelmill.matrix import Matrix


def gather(wanted: Matrix, cudas: Sequence[str], outputs: Sequence[Path] = ()) -> Known:
    """Reads the project's sources. `outputs` are further files and folders that are none."""
    stated, lock = wanted.project, wanted.root / NAME
    apart = [wanted.root / name for name in (".wheelmill", "dist", "site", "ci")]
    source = project.read(
        wanted.root / stated.path, stated.sources, stated.build_torch, [*apart, wanted.path, lock, *outputs]
    )
    return Known(
        engine=steps.engine(),
        sources=source.sha256,
        lock=file_sha256(lock) if lock.is_file() else None,
        images=_images(cudas),
    )


def _images(cudas: Sequence[str]) -> dict[str, str]:
    """The definition of each CUDA's image, for cpu of the newest; none where there is no such image."""
    pins = images.load()
    newest = list(pins.cuda)[-1]
    found = {tag: images.find(pins, newest if tag == "cpu" else tag, "manylinux") for tag in cudas}
    return {tag: image_build.definition(image) for tag, image in found.items() if image is not None}
