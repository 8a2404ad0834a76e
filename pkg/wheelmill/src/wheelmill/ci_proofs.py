"""Reports of wheels from several jobs, put beside the wheels: each job writes its own under the same name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from wheelmill import gates
from wheelmill.errors import InputError
from wheelmill.store import copy_atomic, file_sha256, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

WHEEL = ".whl"


def join(folders: Sequence[Path], dist: Path) -> Iterator[str]:
    """Put every `WHEEL.*.json` below the folders beside its wheel in `dist`, and tell of each that has no wheel there.

    Of several reports of the dynamic gates there is one of all their machines; of the others the last by path counts.
    Raises InputError for a folder that is not there, and for reports of the gates that are none.
    """
    for folder in (*folders, dist):
        if not folder.is_dir():
            raise InputError(
                f"{folder} is no folder, so what was proven of the wheels is not known",
                remedy="name the folder into which the artifacts were downloaded, and that of the wheels with --dist",
            )
    found: dict[str, list[Path]] = {}
    for path in sorted(path for folder in folders for path in folder.rglob(f"*{WHEEL}.*.json")):
        found.setdefault(path.name, []).append(path)
    for name, paths in found.items():
        wheel = dist / (name.partition(WHEEL)[0] + WHEEL)
        if not wheel.is_file():
            yield f"{name} is left out: {dist} holds no such wheel"
        elif name.endswith(gates.REPORT):
            write_json(dist / name, gates.to_json(_joined(paths, file_sha256(wheel))))
        else:
            copy_atomic(paths[-1], dist / name)


def _joined(paths: Sequence[Path], sha256: str) -> gates.Report:
    """One report of those of the wheel; where all are of other bytes, the first of them, which then proves nothing."""
    read = [_read(path) for path in paths]
    try:
        return gates.joined([one for one in read if one.sha256 == sha256] or read[:1])
    except ValueError as error:
        raise InputError(
            f"{' and '.join(map(str, paths))} cannot be one report, so what they prove is not told: {error}",
            remedy="test the wheel again on each GPU with the same matrix",
        ) from error


def _read(path: Path) -> gates.Report:
    try:
        return gates.from_json(json.loads(path.read_bytes()))
    except (OSError, ValueError, RecursionError) as error:
        said = " ".join(str(error).split())[:200]
        raise InputError(
            f"{path} is no report of the gates, so what it proves is not told: {said}",
            remedy="test the wheel again, or remove the file",
        ) from error
