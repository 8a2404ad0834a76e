"""Toolkit providers: each answers "a CUDA_HOME for 13.0, please", or says why it cannot."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from wheelmill import fetch, proc
from wheelmill.errors import MissingError
from wheelmill.store import digest

if TYPE_CHECKING:
    from wheelmill.facts import Cuda
    from wheelmill.store import Store

Provider = Literal["auto", "system", "pypi"]
PARTS = "nvcc,cudart,cccl,crt,nvvm"


@dataclass(frozen=True, kw_only=True, slots=True)
class Toolkit:
    """A CUDA_HOME. `identity` changes whenever what it compiles might."""

    home: Path
    version: str
    provider: str
    identity: str

    @property
    def nvcc(self) -> Path:
        return self.home / "bin" / "nvcc"


@dataclass(frozen=True, kw_only=True, slots=True)
class Compiler:
    """The host's C and C++ compilers."""

    cc: str
    cxx: str
    identity: str


def release_of(nvcc: Path) -> str | None:
    """The toolkit release that an nvcc belongs to, such as `13.0`, or None when it does not run."""
    try:
        return release_in(proc.capture([str(nvcc), "--version"]))
    except (OSError, subprocess.CalledProcessError):
        return None


def release_in(said: str) -> str | None:
    """The toolkit release that `nvcc --version` states."""
    found = re.search(r"release (\d+\.\d+), V([\d.]+)", said)
    return found.group(1) if found else None


def system_nvccs(version: str) -> list[Path]:
    """Every nvcc of this machine, in the order in which build systems look: CUDA_HOME, /usr/local, PATH."""
    homes = [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    homes += [Path(f"/usr/local/cuda-{version}"), Path("/usr/local/cuda")]
    found = [home / "bin" / "nvcc" for home in homes]
    on_path = shutil.which("nvcc")
    if on_path:
        found.append(Path(on_path).resolve())
    return [nvcc for nvcc in found if os.access(nvcc, os.X_OK)]


def system(version: str, *, same_major: bool = False) -> Toolkit:
    """The machine's own toolkit of exactly that release, or with `same_major` of another minor of its major.

    Raises MissingError naming those it found instead.
    """
    found = [(release, nvcc) for nvcc in system_nvccs(version) if (release := release_of(nvcc)) is not None]
    major = version.split(".", 1)[0]
    for release, nvcc in sorted(found, key=lambda one: one[0] != version):
        if release == version or (same_major and release.split(".", 1)[0] == major):
            home = nvcc.parent.parent
            text = proc.capture([str(nvcc), "--version"])
            return Toolkit(home=home, version=release, provider="system", identity=digest([str(home), text]))
    others = [f"{release} ({nvcc})" for release, nvcc in found]
    here = f"; here are {', '.join(dict.fromkeys(others))}" if others else ""
    raise MissingError(
        f"no CUDA {version} toolkit on this machine{here}",
        remedy=f"install CUDA {version} and point CUDA_HOME at it, or leave cells of that CUDA out by SELECT",
    )


def _view(tree: Path, home: Path) -> None:
    """Lay out PyPI's toolchain as a CUDA_HOME.

    nvcc resolves links of folders before it looks for `<its folder>/..`, so `bin` must be a real folder with
    a link per file. Build systems and nvcc up to 13.1 want `lib64` and nvcc from 13.2 on `lib`; the linker
    wants an unversioned `libcudart.so`. All links are relative, so that the entry can be moved.
    """
    (cuda,) = (tree / "nvidia").glob("cu[0-9]*")
    for name, source in (("bin", cuda / "bin"), ("lib64", cuda / "lib")):
        (home / name).mkdir(parents=True)
        for file in source.iterdir():
            (home / name / file.name).symlink_to(os.path.relpath(file, home / name))
    for library in sorted((home / "lib64").glob("*.so.*")):
        plain = library.with_name(library.name.split(".so.")[0] + ".so")
        if not plain.exists():
            plain.symlink_to(library.name)
    (home / "lib").symlink_to("lib64")
    for name in ("include", "nvvm"):
        (home / name).symlink_to(os.path.relpath(cuda / name, home))


def pypi_pins(store: Store, release: str, log: Path) -> str:
    """The hashed pins of the toolchain's wheels."""
    return fetch.resolve(store, [f"cuda-toolkit[{PARTS}]=={release}"], python="3.12", log=log)


def pypi(store: Store, facts: Cuda, log: Path) -> Toolkit:
    """A hermetic toolchain made of PyPI's wheels; needs no root and leaves the machine as it was."""
    if facts.pypi is None:
        raise MissingError(
            f"CUDA {facts.minor} has no complete compiler on the package index (13.0 and later have)",
            remedy=f"install CUDA {facts.minor} and point CUDA_HOME at it",
        )
    pins = pypi_pins(store, facts.pypi, log)
    key = digest(pins)

    def make(folder: Path) -> None:
        fetch.install(store, pins, into=folder / "tree", python="3.12", log=log)
        _view(folder / "tree", folder / "home")

    home = store.entry("toolkits", f"cuda-{facts.minor}-{key}", make) / "home"
    return Toolkit(home=home, version=facts.minor, provider="pypi", identity=key)


def provide(store: Store, facts: Cuda, provider: Provider, log: Path, *, same_major: bool = False) -> Toolkit:
    """The toolkit of that release. `auto` takes PyPI's where there is one, for it is the same everywhere."""
    if provider == "system" or (provider == "auto" and facts.pypi is None):
        return system(facts.minor, same_major=same_major)
    try:
        return pypi(store, facts, log)
    except fetch.UnreachableError as error:
        here = [nvcc for nvcc in system_nvccs(facts.minor) if release_of(nvcc) == facts.minor]
        if here:
            error.remedy += f"; or build with this machine's own, {here[0]}: --toolkit system"
        raise


def _gcc_major(cxx: str) -> int | None:
    """The major version of a GCC; None for another compiler. Raises OSError or CalledProcessError."""
    banner = proc.capture([cxx, "--version"])
    if "Free Software Foundation" not in banner:
        return None
    return int(proc.capture([cxx, "-dumpversion"]).split(".")[0])


def _compiler(cxx: str) -> Compiler:
    name = Path(cxx)
    beside = name.with_name(name.name.replace("clang++", "clang").replace("g++", "gcc").replace("c++", "cc"))
    cc = os.environ.get("CC") or str(beside)
    try:
        versions = [proc.capture([tool, "--version"]) for tool in (cc, cxx)]
    except (OSError, subprocess.CalledProcessError) as error:
        raise MissingError(
            f"the C compiler {cc} does not run ({error})", remedy=f"install the one that belongs to {cxx}, or set CC"
        ) from error
    return Compiler(cc=cc, cxx=cxx, identity=digest([cc, cxx, *versions]))


def compiler(newest_gcc: int | None) -> Compiler:
    """The host compiler: CXX where set, else g++, else the newest g++-N that the toolkit accepts.

    `newest_gcc` is the toolkit's limit, None without one. Raises MissingError when there is no compiler or
    none within the limit.
    """
    wanted = os.environ.get("CXX")
    names = [wanted] if wanted else ["g++", "c++", *(f"g++-{n}" for n in range(newest_gcc or 30, 8, -1))]
    too_new = []
    for name in names:
        path = shutil.which(name)
        if path is None:
            continue
        path = str(Path(path).absolute())  # PATH may hold relative folders, and builds run elsewhere
        try:
            major = _gcc_major(path)
        except (OSError, subprocess.CalledProcessError):
            continue
        if major is None or newest_gcc is None or major <= newest_gcc:
            return _compiler(path)
        too_new.append(f"{path} is GCC {major}")
    if too_new:
        raise MissingError(
            f"the host compiler is too new: {'; '.join(too_new)}, and this CUDA takes GCC {newest_gcc} at most "
            "(nvcc stops with 'unsupported GNU version')",
            remedy=f"install g++-{newest_gcc} (it is found by itself), or set CXX to an older compiler",
        )
    raise MissingError(
        f"no host C++ compiler{f' ({wanted}, from CXX, does not run)' if wanted else ''}: nothing can be compiled",
        remedy="install one (Debian, Ubuntu: apt install g++; Fedora, RHEL: dnf install gcc-c++), or set CXX",
    )
