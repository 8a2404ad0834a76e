"""Keeps files as an artifact: a folder of $WORKFLOW_ARTIFACTS, whose root is what the files' paths have in common."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

# https://github.com/actions/toolkit/blob/main/packages/artifact/src/internal/upload/path-and-artifact-name-validation.ts
FORBIDDEN = re.compile(r'[":<>|*?\r\n\\/]')


def found(pattern: str, *, hidden: bool) -> tuple[Path, list[Path]]:
    """The folder that a path or glob searches, and the files under it."""
    parts = Path(pattern).parts
    plain = next((i for i, part in enumerate(parts) if set(part) & set("*?[")), len(parts))
    root = Path(*parts[:plain])
    matches = [root] if plain == len(parts) else list(root.glob(str(Path(*parts[plain:]))))
    files = [file for match in matches for file in ([match] if match.is_file() else match.rglob("*"))]
    shown = [file for file in files if hidden or not any(part.startswith(".") for part in file.relative_to(root).parts)]
    return (root.parent if root.is_file() else root), [file for file in shown if file.is_file()]


def main() -> None:
    name, hidden = os.environ["NAME"], os.environ["HIDDEN"] == "true"
    if FORBIDDEN.search(name):
        sys.exit(f"::error::the artifact name {name!r} is not valid")
    searched = [found(line.strip(), hidden=hidden) for line in os.environ["PATHS"].splitlines() if line.strip()]
    files = [file for _, some in searched for file in some]
    if not files:
        print(
            f"::{os.environ['NONE_FOUND'].replace('warn', 'warning')}::no files were found with {os.environ['PATHS']}"
        )
        sys.exit(os.environ["NONE_FOUND"] == "error")
    target = Path(os.environ["WORKFLOW_ARTIFACTS"]) / name
    if target.exists() and os.environ["OVERWRITE"] != "true":
        sys.exit(f"::error::an artifact with the name {name} already exists in this run")
    shutil.rmtree(target, ignore_errors=True)
    root = Path(os.path.commonpath([folder.resolve() for folder, _ in searched]))
    for file in files:
        place = target / file.resolve().relative_to(root)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, place)


main()
