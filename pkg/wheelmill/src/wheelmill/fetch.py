"""The one door for downloads: uv resolves to pinned, hashed requirements once, then installs exactly those."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from uv import find_uv_bin

from wheelmill import lock, proc
from wheelmill.errors import InputError, MissingError
from wheelmill.store import Store, digest, write_atomic

if TYPE_CHECKING:
    from collections.abc import Sequence

PLATFORM = "x86_64-manylinux_2_28"
# What uv prints when it could not talk to the index, as opposed to the index answering "no such release".
UNREACHABLE = (
    "error sending request",
    "dns error",
    "Could not connect",
    "Failed to fetch",
    "tcp connect error",
    "Network connectivity is disabled",
    "network was disabled",
    "timed out",
)


# What of uv's own variables reaches it: where packages come from and how; none that would change the answer's kind.
UV_KEPT = re.compile(
    r"UV_(DEFAULT_INDEX|INDEX(_.*)?|INDEX_URL|EXTRA_INDEX_URL|FIND_LINKS|CACHE_DIR|OFFLINE|HTTP_.*|NATIVE_TLS|SYSTEM_CERTS"
    r"|INSECURE_HOST|KEYRING_PROVIDER|LINK_MODE|CONCURRENT_.*|PYTHON_INSTALL_.*|PYTHON_DOWNLOADS)"
)
INDEXES = ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS")


class UnreachableError(MissingError):
    """The package index did not answer."""


class NoReleaseError(MissingError):
    """The package index answered, and what was asked for is not in it."""


def _uv(args: Sequence[str], *, log: Path, what: str, brief: bool = False) -> None:
    ours = {"UV_NO_PROGRESS": "1"} | ({"UV_HTTP_RETRIES": "0", "UV_HTTP_TIMEOUT": "5"} if brief else {})
    foreign = ("UV_", "PYTHON", "VIRTUAL_ENV", "CONDA_PREFIX")
    kept = {k: v for k, v in os.environ.items() if UV_KEPT.fullmatch(k) or not k.startswith(foreign)}
    try:
        # From the root, where no project's own uv settings are found.
        proc.run([find_uv_bin(), *args], log=log, env={**kept, **ours}, cwd=Path("/"))
    except proc.ProcessError as error:
        raise _explain(error, what) from error


def _explain(error: proc.ProcessError, what: str) -> Exception:
    said = error.output.strip()
    if any(sign in said for sign in UNREACHABLE):
        return UnreachableError(
            f"{what}: the package index cannot be reached\n    {said.splitlines()[-1].strip()}",
            remedy="check the network, the proxy and the index (UV_INDEX_URL, SSL_CERT_FILE), then run the same "
            "command again: what is already in .wheelmill/ is kept",
        )
    if "No solution found" in said or "was not found in the package registry" in said:
        return NoReleaseError(
            f"{what}: the package index has no such release\n    "
            + "\n    ".join(line.strip() for line in said.splitlines() if line.strip()),
            remedy="ask for a release that the index has, or name an index that has this one (UV_EXTRA_INDEX_URL)",
        )
    if "No interpreter found" in said:
        return MissingError(f"{what}: {said}", remedy="install that Python, or let uv fetch it (uv python install)")
    return error


def _backend(backend: str | None) -> list[str]:
    return ["--torch-backend", backend] if backend else []


def resolve(store: Store, requirements: Sequence[str], *, python: str, log: Path, backend: str | None = None) -> str:
    """Requirements → `name==version --hash=…` lines, for Linux x86_64 and that Python.

    The answer is kept in the store, so a later run gets the same one and needs no network. `backend` names
    the torch variant (`cpu`, `cu130`) whose own index serves torch. Where the index does not answer, what uv's
    cache knows of it will do. Raises UnreachableError or NoReleaseError.
    """
    indexes = [os.environ.get(name) for name in INDEXES]
    key = digest([sorted(requirements), python, backend, indexes])
    locked = lock.key_of(requirements, python, backend)
    if store.lock_file is not None and locked in (rows := lock.read(store.lock_file)):
        return rows[locked].pins
    pins = store.path("resolutions", f"{key}.txt")
    if not pins.exists():
        where = f" from torch's {backend} index" if backend else ""
        what = f"resolving {', '.join(requirements)}{where}"
        with store.work("resolve") as work:
            (work / "in.txt").write_text("\n".join(requirements) + "\n")
            args = ["pip", "compile", str(work / "in.txt"), "-o", str(work / "out.txt"), "--generate-hashes"]
            args += ["--quiet", "--only-binary", ":all:", "--no-header", "--no-annotate", "--python-version", python]
            args += ["--python-platform", PLATFORM, *_backend(backend)]
            _ask(store, args, index=backend or "default", log=log, what=what)
            write_atomic(pins, (work / "out.txt").read_bytes())
    if store.lock_file is not None and store.adds_to_lock:
        with store.lock("lock-file"):
            said = lock.Resolution(
                requirements=sorted(requirements), python=python, torch=backend, pins=pins.read_text()
            )
            lock.add(store.lock_file, said)
    return pins.read_text()


def _ask(store: Store, args: list[str], *, index: str, log: Path, what: str) -> None:
    """Ask an index, once and briefly where it was silent the last time, then uv's cache of it."""
    silent = store.record("silent", index) is not None
    try:
        _uv(args, log=log, what=what, brief=silent)
    except UnreachableError as unreachable:
        store.put_record("silent", index, {"asked": what})
        try:
            _uv([*args, "--offline"], log=log, what=what)
        except (UnreachableError, NoReleaseError, proc.ProcessError):
            raise unreachable from None
    else:
        store.path("silent", index).with_suffix(".json").unlink(missing_ok=True)


def venv(folder: Path, *, python: str, log: Path) -> Path:
    """Make a movable virtual environment and return its interpreter."""
    _uv(
        ["venv", "--relocatable", "--no-project", "--quiet", "--python", python, str(folder)],
        log=log,
        what=f"an environment of Python {python}",
    )
    return folder / "bin" / "python"


def install(
    store: Store,
    pins: str,
    *,
    into: Path,
    log: Path,
    python: str | None = None,
    backend: str | None = None,
    lean: Path | None = None,
) -> None:
    """Install pinned, hashed requirements and nothing else.

    `into` is an environment's interpreter, or with `python` given a plain folder that gets the files for
    that Python. uv's cache is asked first, so what was fetched once needs no network. With `lean`, what that cache
    lacks goes into a cache in that folder in its place.
    """
    if not pins.strip():
        return
    where = ["--python", str(into)]
    if python is not None:
        where = ["--target", str(into), "--python-version", python, "--python-platform", PLATFORM]
    with store.work("install") as work:
        (work / "pins.txt").write_text(pins)
        args = ["pip", "install", "--no-deps", "--require-hashes", "--only-binary", ":all:", "-r"]
        args += [str(work / "pins.txt"), *where, *_backend(backend)]
        what = "fetching " + ", ".join(line.split(" ")[0] for line in pins.splitlines() if "==" in line)
        try:
            _uv([*args, "--offline"], log=log, what=what)
        except (UnreachableError, NoReleaseError, proc.ProcessError):
            if lean is None:
                _uv(args, log=log, what=what)
                return
            there, absent = _split(pins, args, work, log)
            for part, more in ((there, ["--offline"]), (absent, ["--cache-dir", str(lean)])):
                (work / "pins.txt").write_text(part)
                if part:
                    _uv([*args, *more], log=log, what=what)


def unpack(wheel: Path, *, into: Path, python: str, log: Path) -> None:
    """Install one wheel file, and nothing that it needs, into a plain folder for that Python."""
    where = ["--target", str(into), "--python-version", python, "--python-platform", PLATFORM]
    _uv(["pip", "install", "--no-deps", "--offline", *where, str(wheel)], log=log, what=f"unpacking {wheel.name}")


def _blocks(pins: str) -> list[str]:
    """Each pinned requirement with its hashes."""
    return [block for block in re.split(r"^(?=\S)", pins, flags=re.MULTILINE) if block.strip()]


def _split(pins: str, args: list[str], work: Path, log: Path) -> tuple[str, str]:
    """(what uv's cache holds of these pins, the rest)."""
    there: list[str] = []
    absent: list[str] = []
    for block in _blocks(pins):
        (work / "pins.txt").write_text(block)
        (absent if downloads(args, work, log) else there).append(block)
    return "".join(there), "".join(absent)


def downloads(args: list[str], work: Path, log: Path) -> bool:
    """Whether an install has to download something: uv says so of a dry run without the network."""
    said = work / "dry.log"
    said.unlink(missing_ok=True)
    try:
        _uv([*args, "--offline", "--dry-run"], log=said, what="looking into uv's cache")
    except (UnreachableError, NoReleaseError, proc.ProcessError):
        return True
    finally:
        with log.open("a") as out:
            out.write(said.read_text() if said.exists() else "")
    return "Would download" in said.read_text()


def pinned(pins: str, name: str) -> str:
    """The version that `pins` gives `name`. Raises InputError when it gives none."""
    for line in pins.splitlines():
        if line.startswith(f"{name}=="):
            return line.split("==")[1].split(" ")[0].rstrip("\\").strip()
    raise InputError(f"{name} is not among the resolved requirements", remedy="name it in the requirements")
