"""The files in which GitHub Actions takes a step's outputs and its summary."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from wheelmill import ci_limits
from wheelmill.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping


def output(values: Mapping[str, str]) -> None:
    """Append `NAME=value` lines, none of which holds a line break. Raises InputError outside a workflow's step."""
    path = os.environ.get("GITHUB_OUTPUT")
    if not path:
        raise InputError(
            "--github writes into the file that GITHUB_OUTPUT names, and no such variable is set",
            remedy="run it in a step of a workflow, or print the jobs with --json",
        )
    with Path(path).open("a", encoding="utf-8") as file:
        file.writelines(f"{name}={value}\n" for name, value in values.items())


def room() -> int:
    """How many bytes this step's summary still takes."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    used = Path(path).stat().st_size if path and Path(path).exists() else 0
    return max(ci_limits.number("step-summary") - used - 1, 0)


def summary(text: str) -> None:
    """Append to the step's summary where there is one and it has room."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if path and len(text.encode()) <= room():
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text + "\n")


def attempt() -> tuple[int, int]:
    """The workflow run's number and the attempt at it; (0, 1) outside of one."""
    words = os.environ.get("GITHUB_RUN_ID", ""), os.environ.get("GITHUB_RUN_ATTEMPT", "")
    run, tried = (int(word) if word.isascii() and word.isdigit() else None for word in words)
    return run or 0, tried or 1
