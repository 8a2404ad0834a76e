"""What the engine knows of the project that it builds: its source files and how its back end is called."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.requirements import Requirement

from wheelmill.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

UNWANTED = {".git", ".hg", ".wheelmill", ".nox", ".tox", ".venv", "venv", "build", "dist", "site", "__pycache__"}
DEFAULT_REQUIRES = ("setuptools>=64", "wheel")
DEFAULT_BACKEND = "setuptools.build_meta:__legacy__"
# Back ends that compile through CMake or Meson, which need torch's folder and never import it.
CONFIGURES = ("scikit_build_core", "mesonpy")


@dataclass(frozen=True, kw_only=True, slots=True)
class Project:
    """A project's source files, relative to `root`, and its build system. `torch` says what the build needs."""

    root: Path
    files: tuple[str, ...]
    backend: str
    backend_path: tuple[str, ...] | None
    requires: tuple[str, ...]
    imports_torch: bool
    sha256: str


def _in_git(root: Path) -> list[str] | None:
    """Files that git tracks or would track; None outside a checkout."""
    git = shutil.which("git")
    if git is None:
        return None
    args = [git, "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(args, capture_output=True, check=False)  # noqa: S603
    if done.returncode != 0:
        return None
    return [name for name in done.stdout.decode(errors="surrogateescape").split("\0") if name]


def _walk(root: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in UNWANTED and not name.endswith(".egg-info"))
        for name in files:
            yield str((Path(folder) / name).relative_to(root))


def _files(root: Path, sources: Sequence[str]) -> list[str]:
    names = _in_git(root)
    names = list(_walk(root)) if names is None else names
    if sources:
        wanted = tuple(source.rstrip("/") for source in sources)
        for source in wanted:
            if not any(name == source or name.startswith(source + "/") for name in names):
                raise InputError(
                    f"project.sources names {source}, and {root} has no such file",
                    remedy="correct the name, or add the file (what git ignores does not count)",
                )
        names = [name for name in names if any(name == w or name.startswith(w + "/") for w in wanted)]
    return sorted(name for name in names if (root / name).is_file() or (root / name).is_symlink())


def _hash(root: Path, files: Sequence[str]) -> str:
    sha = hashlib.sha256()
    for name in files:
        path = root / name
        if path.is_symlink() and not path.resolve().is_relative_to(root):
            raise InputError(
                f"{name} links to {path.resolve()}, outside the project: another machine would not have it",
                remedy="replace the link by a copy, or leave it out of project.sources",
            )
        content = path.read_bytes() if path.is_file() else b""
        executable = os.access(path, os.X_OK)
        sha.update(f"{name}\0{len(content)}\0{executable}\0".encode(errors="surrogateescape") + content)
    return sha.hexdigest()


def _imports_torch(root: Path, backend: str, requires: Sequence[str]) -> bool:
    if any(Requirement(requirement).name.lower() == "torch" for requirement in requires):
        return True
    if backend.startswith(CONFIGURES):
        return False
    setup = root / "setup.py"
    return setup.is_file() and "torch" in setup.read_text(errors="replace")


def read(root: Path, sources: Sequence[str], build_torch: str) -> Project:
    """Read a project. No `sources` means every file; `build_torch` is `auto`, `headers` or `import`.

    Raises InputError when the folder holds no project, or its pyproject.toml cannot be read.
    """
    root = root.resolve()
    pyproject = root / "pyproject.toml"
    if not pyproject.is_file() and not (root / "setup.py").is_file():
        raise InputError(
            f"{root} has neither pyproject.toml nor setup.py, so there is nothing to build",
            remedy="point project.path in matrix.yaml at the extension's folder",
        )
    table: dict[str, Any] = {}
    if pyproject.is_file():
        try:
            table = tomllib.loads(pyproject.read_text()).get("build-system", {})
        except ValueError as error:
            raise InputError(f"{pyproject}: {error}", remedy="correct the file's TOML") from error
    requires = tuple(table.get("requires", DEFAULT_REQUIRES))
    backend = table.get("build-backend", DEFAULT_BACKEND)
    backend_path = table.get("backend-path")
    files = _files(root, sources)
    decided = {"headers": False, "import": True}
    imports_torch = decided[build_torch] if build_torch in decided else _imports_torch(root, backend, requires)
    return Project(
        root=root,
        files=tuple(files),
        backend=backend,
        backend_path=tuple(backend_path) if backend_path else None,
        requires=requires,
        imports_torch=imports_torch,
        sha256=_hash(root, files),
    )


def build_requirements(project: Project) -> list[str]:
    """What the build environment holds: the project's own requirements, less torch, and the build tools."""
    kept = [text for text in project.requires if Requirement(text).name.lower() != "torch"]
    names = {Requirement(text).name.lower() for text in kept}
    tools = {"ninja": "ninja>=1.11"}
    if (project.root / "CMakeLists.txt").is_file():
        tools["cmake"] = "cmake>=3.26"
    if project.imports_torch:
        tools |= {"setuptools": "setuptools>=64", "wheel": "wheel", "numpy": "numpy"}
    return kept + [text for name, text in tools.items() if name not in names]


def copy(project: Project, target: Path) -> None:
    """Copy the project's files, and only those, into `target`."""
    for name in project.files:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(project.root / name, target / name, follow_symlinks=False)
