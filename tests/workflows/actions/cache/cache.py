"""Keeps files between runs in $WORKFLOW_CACHES, a tar each key and list of paths; a key is written once.

Restores the key's own, else the newest whose key begins with one of $RESTORE_KEYS, in order.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tarfile
from pathlib import Path
from urllib.parse import quote


def paths() -> list[str]:
    return [line.strip() for line in os.environ["PATHS"].splitlines() if line.strip()]


def kept() -> Path:
    """The folder of what was kept of these very paths: the real action's `version`."""
    folder = Path(os.environ["WORKFLOW_CACHES"]) / hashlib.sha256(repr(paths()).encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def save() -> None:
    file = kept() / f"{quote(os.environ['KEY'], safe='')}.tar"
    there = [path for path in paths() if Path(path).exists()]
    if file.exists() or not there:
        print(f"::warning::nothing saved under {os.environ['KEY']}: {'it exists' if there else 'no path exists'}")
        return
    with tarfile.open(file, "w") as tar:
        for path in there:
            tar.add(path)


def restore() -> None:
    folder, key = kept(), os.environ["KEY"]
    files = sorted(folder.glob("*.tar"), key=lambda file: -file.stat().st_mtime)
    begins = [quote(line.strip(), safe="") for line in os.environ["RESTORE_KEYS"].splitlines() if line.strip()]
    exact = f"{quote(key, safe='')}.tar"
    order = [file for file in files if file.name == exact]
    order += [file for begin in [quote(key, safe=""), *begins] for file in files if file.name.startswith(begin)]
    with Path(os.environ["GITHUB_OUTPUT"]).open("a") as out:
        if order:
            with tarfile.open(order[0]) as tar:
                tar.extractall()  # noqa: S202  what the run before packed
            matched = order[0].name == exact
            print(f"cache-hit={str(matched).lower()}\ncache-matched-key={order[0].stem}", file=out)
        print(f"restored {order[0].name if order else 'nothing'} for {key}")


{"save": save, "restore": restore}[sys.argv[1]]()
