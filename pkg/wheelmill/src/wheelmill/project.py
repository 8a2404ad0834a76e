"""What the engine knows of the project that it builds: its source files and how its back end is called."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from pydantic import BaseModel, Field, ValidationError, field_validator

from wheelmill import proc
from wheelmill.errors import InputError, MissingError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NEVER = {".git", ".hg", "__pycache__"}
UNWANTED = {".wheelmill", ".nox", ".tox", ".venv", "venv", "build", "dist", "site"}
DEFAULT_REQUIRES = ("setuptools>=64", "wheel")
DEFAULT_BACKEND = "setuptools.build_meta:__legacy__"
COMPILED = (".c", ".cc", ".cpp", ".cxx", ".cu")
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

    @property
    def compiled(self) -> int:
        """How many of its files a compiler takes one by one."""
        return sum(name.endswith(COMPILED) for name in self.files)


def _git(root: Path, *arguments: str) -> list[str]:
    """What `git ls-files` lists, relative to `root`. Raises MissingError when git does not answer.

    Variables of a calling git, such as a hook's GIT_DIR, are not passed on.
    """
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        listed = proc.capture(["git", "-C", str(root), "ls-files", "-z", *arguments], env=env)
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", None) or str(error)
        raise MissingError(
            f"{root} is in a git checkout, and git does not say which files are the project's: {said.strip()}",
            remedy="install git, or make it trust the folder (git config --global --add safe.directory FOLDER)",
        ) from error
    return [name for name in listed.split("\0") if name]


def _in_git(root: Path) -> list[str] | None:
    """Files that git tracks, those of submodules too, or would track; None outside a checkout."""
    if not any((folder / ".git").exists() for folder in (root, *root.parents)):
        return None
    tracked = _git(root, "--cached", "--recurse-submodules")
    for name in tracked:
        if (root / name).is_dir() and not (root / name).is_symlink():
            raise InputError(
                f"the submodule {name} is not checked out, and a build without it lacks its files",
                remedy="git submodule update --init --recursive",
            )
    return tracked + _git(root, "--others", "--exclude-standard")


def _ignores_itself(folder: Path) -> bool:
    """Whether a folder tells git to ignore all of it, as tools do with what they make."""
    try:
        return (folder / ".gitignore").read_text().strip() == "*"
    except (OSError, ValueError):
        return False


def _walk(root: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(root):
        at_root = Path(folder) == root
        folders[:] = sorted(
            name
            for name in folders
            if name not in NEVER
            and not (at_root and (name in UNWANTED or name.endswith(".egg-info")))
            and not _ignores_itself(Path(folder) / name)
        )
        for name in files:
            yield str((Path(folder) / name).relative_to(root))


def _under(name: str, folders: Sequence[str]) -> bool:
    return any(name == folder or name.startswith(folder + "/") for folder in folders)


def _files(root: Path, sources: Sequence[str], outputs: Sequence[Path]) -> list[str]:
    names = _in_git(root)
    names = list(_walk(root)) if names is None else names
    if sources:
        wanted = [source.rstrip("/") for source in sources]
        for source in wanted:
            if not any(_under(name, [source]) for name in names):
                raise InputError(
                    f"project.sources names {source}, and {root} has no such file",
                    remedy="correct the name, or add the file (what git ignores does not count)",
                )
        names = [name for name in names if _under(name, wanted)]
    apart = [str(path.resolve().relative_to(root)) for path in outputs if path.resolve().is_relative_to(root)]
    kept = [name for name in names if not _under(name, apart)]
    return sorted({name for name in kept if (root / name).is_file() or (root / name).is_symlink()})


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


class _BuildSystem(BaseModel):
    """pyproject.toml's [build-system] (PEP 517 and 518)."""

    requires: list[str] = list(DEFAULT_REQUIRES)
    backend: str = Field(DEFAULT_BACKEND, alias="build-backend")
    backend_path: list[str] | None = Field(None, alias="backend-path")

    @field_validator("requires")
    @classmethod
    def _are_requirements(cls, texts: list[str]) -> list[str]:
        for text in texts:
            Requirement(text)
        return texts


def _build_system(pyproject: Path) -> _BuildSystem:
    if not pyproject.is_file():
        return _BuildSystem.model_validate({})
    try:
        return _BuildSystem.model_validate(tomllib.loads(pyproject.read_text()).get("build-system", {}))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, ("build-system", *first["loc"])))
        raise InputError(f"{pyproject}: {key}: {first['msg']}", remedy="correct it as PEP 518 says") from error
    except ValueError as error:
        raise InputError(f"{pyproject}: {error}", remedy="correct the file's TOML") from error


def read(root: Path, sources: Sequence[str], build_torch: str, outputs: Sequence[Path] = ()) -> Project:
    """Read a project. No `sources` means every file; `build_torch` is `auto`, `headers` or `import`.

    `outputs` are files and folders that are no sources wherever they lie: the matrix, the store, the index.
    Raises InputError when the folder holds no project, or its pyproject.toml cannot be understood, and
    MissingError when it is a git checkout that git does not read.
    """
    root = root.resolve()
    pyproject = root / "pyproject.toml"
    if not pyproject.is_file() and not (root / "setup.py").is_file():
        raise InputError(
            f"{root} has neither pyproject.toml nor setup.py, so there is nothing to build",
            remedy="point project.path in matrix.yaml at the extension's folder",
        )
    stated = _build_system(pyproject)
    files = _files(root, sources, outputs)
    decided = {"headers": False, "import": True}
    guessed = _imports_torch(root, stated.backend, stated.requires)
    return Project(
        root=root,
        files=tuple(files),
        backend=stated.backend,
        backend_path=tuple(stated.backend_path) if stated.backend_path else None,
        requires=tuple(stated.requires),
        imports_torch=decided.get(build_torch, guessed),
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
