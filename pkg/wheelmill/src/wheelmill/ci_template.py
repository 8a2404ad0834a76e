"""The workflow of a user's project: a few lines that call the engine's own reusable one."""

from __future__ import annotations

import json
import re
from pathlib import Path

from wheelmill.errors import GateError, InputError
from wheelmill.store import digest, write_atomic

TEMPLATE = Path(__file__).parent / "templates" / "wheels.yml"
WHERE = Path(".github") / "workflows" / "wheels.yml"
# What was written can be told from what somebody changed: the digest is of the lines below it.
HEAD = re.compile(r"# Written by `wheelmill ci --write`; digest ([0-9a-f]{24})\n")
WRITE = "wheelmill ci --write"
WITH = "    with:\n"


def content(project: str, matrix: str) -> str:
    """The workflow for a matrix file of that name in `project`, a folder of the repository; `.` is its root."""
    inputs = {"project": (project, "."), "matrix": (matrix, "matrix.yaml")}
    for name, (value, _) in inputs.items():
        if "${{" in value:
            raise InputError(
                f"GitHub would evaluate the {name} {value!r} as an expression", remedy="give it another name"
            )
    given = [f"      {name}: {json.dumps(value)}\n" for name, (value, usual) in inputs.items() if value != usual]
    body = TEMPLATE.read_text(encoding="utf-8") + (WITH + "".join(given) if given else "")
    return f"# Written by `wheelmill ci --write`; digest {digest(body)}\n{body}"


def ours(text: str) -> bool:
    """Whether a workflow is as some engine wrote it."""
    match = HEAD.match(text)
    return match is not None and digest(text[match.end() :]) == match[1]


def write(matrix: Path) -> str:
    """Write the workflow where GitHub looks for it, and say so. Raises InputError where somebody's own is there."""
    path, text = _place(matrix)
    there = _there(path)
    if there == text:
        return f"{path} is up to date"
    if there is not None and not ours(there):
        raise InputError(
            f"{path} is there and was not written by `{WRITE}`, or was changed since: it is not overwritten",
            remedy="move it away and run this again; or keep it, and call the reusable workflow from it",
        )
    if there is not None and _inputs(there) != _inputs(text):
        raise InputError(
            f"{path} builds another project or matrix of this repository, which nothing would build any more",
            remedy="add a job to it that calls the reusable workflow for this one too; or remove it and run this again",
        )
    write_atomic(path, text)
    return f"{path} is written; commit it"


def _inputs(text: str) -> str:
    """What the workflow is given: its last lines, and none for a `matrix.yaml` at the root."""
    return text.partition(WITH)[2]


def check(matrix: Path) -> str:
    """Say that the workflow is what this engine writes. Raises GateError where it is not."""
    path, text = _place(matrix)
    there = _there(path)
    if there == text:
        return f"{path} is up to date"
    if there is None:
        raise GateError(f"{path} is not there, so GitHub builds nothing", remedy=f"write it: {WRITE}")
    if ours(there):
        raise GateError(f"{path} is of another version of this engine or matrix", remedy=f"write it anew: {WRITE}")
    raise GateError(
        f"{path} was not written by `{WRITE}`, or was changed since, so nothing says that it is right",
        remedy="compare it with what docs/github-actions.md shows; to have it written, move it away first",
    )


def _place(matrix: Path) -> tuple[Path, str]:
    """(where the workflow belongs, what it is): in the root of the git checkout that holds the matrix."""
    if not matrix.is_file():
        raise InputError(f"{matrix} is not here", remedy="write the matrix first, or name it: --matrix PATH")
    root, project = place(matrix)
    return root / WHERE, content(project, matrix.name)


def place(matrix: Path) -> tuple[Path, str]:
    """(the root of the git checkout that holds the matrix, the matrix's folder in it)."""
    folder = matrix.resolve().parent
    root = next((one for one in (folder, *folder.parents) if (one / ".git").exists()), folder)
    return root, folder.relative_to(root).as_posix()


def _there(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except UnicodeError:
        return ""
