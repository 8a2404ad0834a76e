"""What git says of a change: which paths it touches, and what the matrix was before it."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from wheelmill import document, facts, matrix, plan, proc
from wheelmill.ci_change import Change
from wheelmill.errors import InputError, MissingError
from wheelmill.schema import MatrixFile

if TYPE_CHECKING:
    from wheelmill.matrix import Matrix
    from wheelmill.model import Plan


def read(wanted: Matrix, since: str | None, sources: str) -> tuple[Plan | None, Change]:
    """The plan of the matrix as it was at `since`, None where it had none, and what changed since then.

    Without `since` nothing is known of a change, and the digest of the sources stands for it.
    Raises MissingError where git, the checkout or the commit is not here.
    """
    if not since:
        return plan.make(wanted, facts.load(wanted.facts)), Change(paths=(), digest=sources)
    root = wanted.root
    commit = _commit(root, since)
    differs = ["diff", "--no-ext-diff", "--no-textconv", "--no-color"]
    paths = _git(root, *differs, "--name-only", "-z", commit).split("\0")
    content = _git(root, *differs, "--binary", commit)
    digest = hashlib.sha256(content.encode(errors="surrogateescape")).hexdigest()
    return _before(wanted, commit), Change(paths=tuple(path for path in paths if path), digest=digest)


def _git(root: Path, *arguments: str) -> str:
    """What git prints. Raises CalledProcessError where it refuses. A calling git's variables are not passed on."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        return proc.capture(["git", "-C", str(root), *arguments], env=env)
    except FileNotFoundError as error:
        raise MissingError("git is not here, so what changed cannot be told", remedy="install git") from error


def _commit(root: Path, since: str) -> str:
    """The commit at which the change left `since`, or `since` itself where the checkout does not hold as much."""
    try:
        found = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{since}^{{commit}}").strip()
    except subprocess.CalledProcessError as error:
        raise MissingError(
            f"the commit {since!r} is not in this checkout, so what changed since then cannot be told",
            remedy="check out with its history (fetch-depth: 0), or fetch that commit first",
        ) from error
    try:
        return _git(root, "merge-base", found, "HEAD").strip()
    except subprocess.CalledProcessError:
        return found


def _before(wanted: Matrix, commit: str) -> Plan | None:
    """The plan of the matrix at a commit; None where there was none, or it could not be understood."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "matrix.yaml"
        try:
            file.write_text(_shown(wanted, commit, wanted.path.name), encoding="utf-8")
            stated = document.read(file, MatrixFile).content
            inner = (Path(folder) / stated.project.path).resolve()
            if not inner.is_relative_to(Path(folder).resolve()):
                return None
            inner.mkdir(parents=True, exist_ok=True)
            _put(wanted, commit, Path(folder), f"{stated.project.path}/pyproject.toml")
            if stated.facts:
                _put(wanted, commit, Path(folder), stated.facts)
            was = matrix.load(file)
            return plan.make(was, facts.load(was.facts))
        except (subprocess.CalledProcessError, InputError, UnicodeError):
            return None


def _shown(wanted: Matrix, commit: str, name: str) -> str:
    return _git(wanted.root, "show", f"{commit}:./{name}")


def _put(wanted: Matrix, commit: str, folder: Path, name: str) -> None:
    """A file as it was at that commit, in `folder`, where there was one and it is within the folder."""
    target = (folder / name).resolve()
    if not target.is_relative_to(folder.resolve()):
        return
    try:
        content = _shown(wanted, commit, name)
    except subprocess.CalledProcessError:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(content, encoding="utf-8")
