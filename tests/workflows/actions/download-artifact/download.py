"""Copies artifacts out of $WORKFLOW_ARTIFACTS: one by name, or those, perhaps none, that a pattern matches."""

from __future__ import annotations

import fnmatch
import os
import shutil
import sys
from pathlib import Path


def main() -> None:
    kept, target = Path(os.environ["WORKFLOW_ARTIFACTS"]), Path(os.environ["TARGET"])
    names = sorted(path.name for path in kept.iterdir())
    target.mkdir(parents=True, exist_ok=True)
    if name := os.environ["NAME"]:
        if name not in names:
            sys.exit(f"::error::there is no artifact {name}; there are {', '.join(names) or 'none'}")
        shutil.copytree(kept / name, target, dirs_exist_ok=True)
        return
    for found in fnmatch.filter(names, os.environ["PATTERN"] or "*"):
        place = target if os.environ["MERGE"] == "true" else target / found
        shutil.copytree(kept / found, place, dirs_exist_ok=True)


main()
