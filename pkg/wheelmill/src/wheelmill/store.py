"""The store under `.wheelmill/`: entries named by content, made under a temporary name and moved into place.

A kill at any moment leaves a folder in `tmp/`, which the next run removes, and never an entry that it would
trust. Runs at the same time share the store through one lock an entry.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import json
import os
import secrets
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from wheelmill import proc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KEY_LENGTH = 24
LOGS_KEPT = 50


def digest(value: object) -> str:
    """The content key of any JSON value."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:KEY_LENGTH]


def file_sha256(path: Path) -> str:
    sha = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            sha.update(block)
    return sha.hexdigest()


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A file beside `path` that takes its place at the end: a reader sees the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    beside = Path(name)
    try:
        yield beside
        # mkstemp makes the file private; what is published must be readable by a web server.
        beside.chmod(0o644)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def write_atomic(path: Path, data: str | bytes) -> None:
    with _replacing(path) as beside:
        beside.write_bytes(data.encode() if isinstance(data, str) else data)


def copy_atomic(source: Path, target: Path, *, check: Callable[[Path], None] = lambda _: None) -> None:
    """`check` sees the copy before it takes its place, and raises what forbids that."""
    with _replacing(target) as beside:
        shutil.copyfile(source, beside)
        check(beside)


def write_json(path: Path, value: object) -> None:
    write_atomic(path, json.dumps(value, indent=1, sort_keys=True) + "\n")


class Store:
    """A folder of entries `<kind>/<key>`, plus small JSON records, logs, locks and temporary folders."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.lock_file: Path | None = None
        self.adds_to_lock = False
        self.started = f"{dt.datetime.now(dt.timezone.utc).strftime('%Y%m%dT%H%M%S.%f')}-{os.getpid()}"
        (self.root / "locks").mkdir(parents=True, exist_ok=True)
        (self.root / "tmp").mkdir(exist_ok=True)
        # A project's git does not take the store for sources.
        if not (self.root / ".gitignore").exists():
            write_atomic(self.root / ".gitignore", "*\n")
        self._sweep()

    def path(self, kind: str, key: str) -> Path:
        return self.root / kind / key

    def log(self, name: str) -> Path:
        """A log of that name in this run's own folder, so that two runs never write into one."""
        path = self.root / "logs" / self.started / f"{name}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        return path

    @contextlib.contextmanager
    def lock(self, name: str, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Hold the lock of that name; `waiting` is called once when another run holds it."""
        lock = FileLock(self.root / "locks" / f"{name}.lock")
        try:
            lock.acquire(timeout=0.05)
        except Timeout:
            waiting()
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    @contextlib.contextmanager
    def adding_to_lock(self) -> Iterator[None]:
        """What is resolved meanwhile goes into the lock file, where there is one to write."""
        before, self.adds_to_lock = self.adds_to_lock, True
        try:
            yield
        finally:
            self.adds_to_lock = before

    @contextlib.contextmanager
    def work(self, name: str) -> Iterator[Path]:
        """A temporary folder, locked while it is in use and gone afterwards."""
        lock = FileLock(self.root / "tmp" / f"{name}-{secrets.token_hex(4)}.lock")
        folder = Path(lock.lock_file).with_suffix("")
        with self._tmp_lock():
            lock.acquire()
            folder.mkdir()
        serving = proc.work_folder.set(folder)
        try:
            yield folder
        finally:
            proc.work_folder.reset(serving)
            with self._tmp_lock():
                shutil.rmtree(folder, ignore_errors=True)
                lock.release()
                Path(lock.lock_file).unlink(missing_ok=True)

    def entry(
        self,
        kind: str,
        key: str,
        make: Callable[[Path], None],
        *,
        sound: Callable[[Path], bool] = Path.exists,
        waiting: Callable[[], None] = lambda: None,
    ) -> Path:
        """The folder of that entry, made by `make(folder)` when it is not there, or not `sound`."""
        final = self.path(kind, key)
        if final.exists() and sound(final):
            return final
        with self.lock(f"{kind}-{key}", waiting):
            if final.exists() and not sound(final):
                with self.work("damaged") as folder:
                    final.rename(folder / "entry")
            if not final.exists():
                with self.work(f"{kind}-{key}") as folder:
                    content = folder / "entry"
                    content.mkdir()
                    make(content)
                    final.parent.mkdir(parents=True, exist_ok=True)
                    content.rename(final)
        return final

    def record(self, kind: str, key: str) -> Any:
        """A small JSON record, or None when it is absent or unreadable."""
        try:
            return json.loads(self.path(kind, key).with_suffix(".json").read_text())
        except (OSError, ValueError):
            return None

    def put_record(self, kind: str, key: str, value: object) -> None:
        write_json(self.path(kind, key).with_suffix(".json"), value)

    def _prune_logs(self) -> None:
        runs = sorted((self.root / "logs").glob("*"))
        for old in runs[:-LOGS_KEPT]:
            shutil.rmtree(old, ignore_errors=True)

    def _tmp_lock(self) -> FileLock:
        """Held while a folder of `tmp/` comes or goes, so that a sweep never sees one half made."""
        return FileLock(self.root / "locks" / "tmp.lock")

    def _sweep(self) -> None:
        """Remove what killed runs left in `tmp/`: folders whose lock nobody holds."""
        with self._tmp_lock():
            self._prune_logs()
            for path in (self.root / "tmp").glob("*.lock"):
                lock, folder = FileLock(path), path.with_suffix("")
                with contextlib.suppress(Timeout):
                    lock.acquire(timeout=0)
                    proc.end_orphans(folder)
                    shutil.rmtree(folder, ignore_errors=True)
                    lock.release()
                    path.unlink(missing_ok=True)
