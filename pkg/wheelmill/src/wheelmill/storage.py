"""Where an index lies: files by '/'-separated relative paths, in a local folder or wherever else `Storage` is held."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Protocol

from filelock import FileLock

from wheelmill.errors import InputError
from wheelmill.store import copy_atomic, file_sha256, write_atomic

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

LOCK = ".wheelmill.lock"


class Storage(Protocol):
    """What a writer of an index needs. A reader sees a file as it was or as it is, never half of it."""

    def read(self, path: str) -> bytes | None:
        """The content of a file, None where there is none."""
        ...

    def write(self, path: str, content: bytes) -> None:
        """A file that may change later: a page, whole or not at all."""
        ...

    def put(self, path: str, source: Path, sha256: str) -> None:
        """An immutable file. Raises InputError, and puts nothing there, where the source has another SHA-256."""
        ...

    def size(self, path: str) -> int | None:
        """The bytes of a file, None where there is none."""
        ...

    def sha256(self, path: str) -> str | None:
        """The SHA-256 of a file, None where there is none."""
        ...

    def list(self, prefix: str) -> Iterator[str]:
        """Every file whose path begins with those letters, in any order, without locks and temporary files."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file; one that is not there is no error."""
        ...

    def lock(self) -> AbstractContextManager[None]:
        """Held by the one writer; another one waits."""
        ...


class Folder:
    """An index in a local folder, which need not be there yet."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()

    def read(self, path: str) -> bytes | None:
        try:
            return self._at(path).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, path: str, content: bytes) -> None:
        write_atomic(self._at(path), content)

    def put(self, path: str, source: Path, sha256: str) -> None:
        copy_atomic(source, self._at(path), check=lambda copy: refuse_other(source, file_sha256(copy), sha256))

    def size(self, path: str) -> int | None:
        try:
            return self._at(path).stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return None

    def sha256(self, path: str) -> str | None:
        try:
            return file_sha256(self._at(path))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def list(self, prefix: str) -> Iterator[str]:
        parent, _, begin = prefix.rpartition("/")
        top = self._at(parent) if parent else self.root
        for folder, folders, names in os.walk(top):
            below = Path(folder).relative_to(self.root).as_posix()
            start = begin if folder == str(top) else ""
            folders[:] = [name for name in folders if name.startswith(start) and not name.startswith(".")]
            for name in names:
                if name.startswith(start) and not name.startswith("."):
                    yield name if below == "." else f"{below}/{name}"

    def remove(self, path: str) -> None:
        target = self._at(path)
        target.unlink(missing_ok=True)
        # A page's folder goes with its last page, as in a bucket, where folders are only names.
        for folder in target.parents:
            if folder == self.root:
                return
            try:
                folder.rmdir()
            except OSError:
                return

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        self.root.mkdir(parents=True, exist_ok=True)
        with FileLock(self.root / LOCK):
            yield

    def _at(self, path: str) -> Path:
        """Raises InputError for a path that is not plain and below the root."""
        if not path or str(PurePosixPath(path)) != path or path.startswith("/") or ".." in path.split("/"):
            raise InputError(
                f"{path!r} is no path inside an index, so nothing is read or written there",
                remedy="name files as `files/NAME.whl`, without `..` and without a leading `/`",
            )
        return self.root / path


def refuse_other(source: Path, found: str, wanted: str) -> None:
    """Raises InputError where a file is not the one that was read before it was to be copied."""
    if found != wanted:
        raise InputError(
            f"{source} was changed while it was read, so that its record is not of its bytes",
            remedy="run the same command again when nothing writes to that folder",
        )
