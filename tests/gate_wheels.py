"""Wheels for the gates' tests, made of folders of Python."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

if TYPE_CHECKING:
    from collections.abc import Mapping

PROJECTS = Path(__file__).parent / "projects"


def wheel(folder: Path, name: str, members: Mapping[str, str | bytes]) -> Path:
    """A pure wheel `name` 1.0 of the given members, that requires torch."""
    info = f"{name}-1.0.dist-info"
    path = folder / f"{name}-1.0-py3-none-any.whl"
    every = {
        **members,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nRequires-Dist: torch\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    every[f"{info}/RECORD"] = "".join(f"{member},,\n" for member in [*every, f"{info}/RECORD"])
    with ZipFile(path, "w") as archive:
        for member, text in every.items():
            archive.writestr(member, text)
    return path


def python_alone(folder: Path, name: str) -> Path:
    """The wheel of a folder of tests/projects that is Python alone."""
    files = (PROJECTS / name / name).glob("*.py")
    return wheel(folder, name, {f"{name}/{one.name}": one.read_text() for one in files})


def pyfaults(folder: Path) -> Path:
    """The wheel of tests/projects/pyfaults."""
    return python_alone(folder, "pyfaults")
