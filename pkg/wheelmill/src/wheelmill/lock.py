"""wheelmill.lock: every resolution of a matrix, pinned and hashed, to be kept with the project's sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel

from wheelmill.errors import InputError
from wheelmill.store import digest, write_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NAME = "wheelmill.lock"


class Resolution(BaseModel):
    """What was asked for, and the pinned, hashed answer. `torch` is the variant whose own index served it."""

    requirements: list[str]
    python: str
    torch: str | None
    pins: str


class _Lock(BaseModel):
    version: Literal[1]
    resolutions: dict[str, Resolution]


def read(path: Path) -> dict[str, Resolution]:
    """The locked resolutions by key; none where there is no file. Raises InputError where it cannot be understood."""
    try:
        rows = _Lock.model_validate_json(path.read_bytes()).resolutions
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read as a lock: {error}", remedy="restore it, or delete it to resolve anew"
        ) from error
    for key, row in rows.items():
        if key != key_of(row.requirements, row.python, row.torch) or "--hash=sha256:" not in row.pins:
            raise InputError(
                f"{path}: the row {key} for {', '.join(row.requirements)} was edited: it is not what its key says, or "
                "lacks its hashes, and nothing could be trusted that it names",
                remedy="restore the file, or delete it to resolve anew",
            )
    return rows


def key_of(requirements: Sequence[str], python: str, torch: str | None) -> str:
    """The key of a resolution: no index is part of it, as a lock goes from machine to machine."""
    return digest([sorted(requirements), python, torch])


def add(path: Path, resolution: Resolution) -> None:
    """Add a resolution, in the order of keys, so that the same matrix gives the same file."""
    key = key_of(resolution.requirements, resolution.python, resolution.torch)
    rows = {**read(path), key: resolution}
    write_json(path, _Lock(version=1, resolutions=rows).model_dump())
