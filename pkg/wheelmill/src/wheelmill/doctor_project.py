"""What a project's setup.py, pyproject.toml, CMake files and sources say. They are read, and never run."""

from __future__ import annotations

import configparser
import os
import re
import stat
import sys
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wheelmill import doctor_cmake, doctor_setup
from wheelmill.doctor_facts import CMAKES, Project, Stated
from wheelmill.project import COMPILED, NEVER, UNWANTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from wheelmill.doctor_facts import Architectures, Standard

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SIZE = 1 << 20
FILES, FOLDERS = 5000, 5000
# Folders of others' code, libraries that lie anywhere with their `include`, and at the root what no wheel is built of.
OTHERS = frozenset({"third_party", "third-party", "3rdparty", "extern", "external", "vendor", "submodules"})
OTHERS |= {"subprojects", "node_modules"}
LIBRARIES = frozenset({"cutlass", "composable_kernel", "pybind11"})
MODULE = re.compile(r"^\s*path\s*=\s*(\S+)\s*$", re.MULTILINE)
ASIDE = frozenset({"tests", "test", "benchmarks", "benchmark", "docs", "examples", "env"})
HEAD = 1 << 16
HEADERS = (".h", ".hpp", ".cuh", ".hh")
# Of torch's headers only these have a stable ABI.
STABLE = re.compile(r"torch/(csrc/(stable|inductor/aoti_torch)|headeronly)/")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]((?:torch|ATen|c10)/[^>"\n]+)[>"]', re.MULTILINE)


@dataclass(slots=True)
class _Found:
    broken: list[tuple[str, str, str]] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    standards: list[Standard] = field(default_factory=list)
    architectures: list[Architectures] = field(default_factory=list)
    dependencies: list[Stated] = field(default_factory=list)
    requires: tuple[str, ...] | None = None
    backend: str | None = None
    cuda: bool = False
    needs_torch: Stated | None = None
    newer: bool = False
    dynamic: bool = False
    fixed: bool = False


def read(root: Path) -> Project:
    """The facts of the project at `root`, an existing folder. What cannot be read is among them, and is no error."""
    found = _Found()
    names = list(_files(root, found))
    setup = _setup(root, found) if "setup.py" in names else None
    told = setup or doctor_setup.Setup()
    if "pyproject.toml" in names:
        _pyproject(root, found)
    _setup_cfg(root, found)
    for name in names:
        if name.rpartition("/")[2] == "CMakeLists.txt" or name.endswith(".cmake"):
            content = _bytes(root, name, found)
            said = doctor_cmake.read(content.decode("utf-8", "replace"), name) if content is not None else None
            if said is not None:
                found.cuda |= said.cuda
                if said.torch is not None and found.needs_torch is None:
                    found.needs_torch = Stated(text="find_package(Torch)", file=name, line=said.torch)
                found.standards += said.standards
                found.architectures += said.architectures
    sources = [name for name in names if name.endswith(COMPILED)]
    collide = [pair for one in told.extensions for pair in doctor_setup.collisions(one)]
    guessed = told.computed and not collide and len(told.extensions) == 1
    if guessed:
        collide = list(doctor_setup.collisions(sources))
    aside = setup is not None and not told.cmake and not (found.backend or "").startswith(CMAKES)
    named = [one for extension in told.extensions for one in extension if one in sources]
    unstable, stable = _abis(root, [*named, *names])
    return Project(
        root=str(root),
        files=tuple(
            name for name in names if "/" not in name and name in {"setup.py", "pyproject.toml", "CMakeLists.txt"}
        ),
        broken=tuple(found.broken),
        unread=tuple(found.unread),
        setup=setup is not None,
        imports_torch=told.imports_torch,
        certain=told.certain and told.builder,
        ninja=told.builder and told.ninja,
        cuda=told.cuda or found.cuda or any(name.endswith(".cu") for name in sources),
        conditional=told.conditional,
        listed=told.listed,
        needs_torch=found.needs_torch,
        modules=told.modules,
        newer=found.newer,
        dynamic=found.dynamic,
        unstable=unstable,
        stable=stable,
        backend=found.backend,
        requires=found.requires,
        dependencies=(*found.dependencies, *(() if found.fixed else told.install_requires)),
        standards=tuple(dict.fromkeys([*told.standards, *(replace(one, aside=aside) for one in found.standards)])),
        architectures=tuple(
            dict.fromkeys([*told.architectures, *(replace(one, aside=aside) for one in found.architectures)])
        ),
        collisions=tuple(dict.fromkeys(collide)),
        guessed=guessed,
    )


def _files(root: Path, found: _Found) -> Iterator[str]:
    """Names relative to `root`, links of folders not followed; what cannot be listed is said to be."""

    def refused(error: OSError) -> None:
        found.unread.append(f"{error.filename} cannot be listed: {error.strerror}")

    count = 0
    modules = _modules(root)
    for visited, (folder, folders, files) in enumerate(os.walk(root, onerror=refused), 1):
        at_root = Path(folder) == root
        folders[:] = sorted(
            name
            for name in folders
            if _own(Path(folder) / name, at_root=at_root) and Path(folder, name).relative_to(root) not in modules
        )
        for name in sorted(files):
            if name.endswith((*COMPILED, *HEADERS, ".cmake")) or name in {
                "setup.py",
                "pyproject.toml",
                "CMakeLists.txt",
            }:
                count += 1
                yield (Path(folder) / name).relative_to(root).as_posix()
        if count > FILES or visited > FOLDERS:
            found.unread.append(f"{root} holds more files than are read ({FILES} sources, {FOLDERS} folders)")
            return


def _modules(root: Path) -> frozenset[Path]:
    """The folders of git's submodules."""
    try:
        text = (root / ".gitmodules").read_bytes()[:SIZE].decode("utf-8", "replace")
    except OSError:
        return frozenset()
    return frozenset(map(Path, MODULE.findall(text)))


def _own(folder: Path, *, at_root: bool) -> bool:
    """Whether a folder's files are the project's: not a build's, a stranger's, or another project's within it."""
    name = folder.name
    if name in NEVER | OTHERS or name.endswith(".egg-info") or (at_root and name in UNWANTED | ASIDE):
        return False
    if name in LIBRARIES and os.path.lexists(folder / "include"):
        return False
    return not any(os.path.lexists(folder / file) for file in ("setup.py", "pyproject.toml"))


def _bytes(root: Path, name: str, found: _Found) -> bytes | None:
    """A file's content; None, with the reason among what was found, where it cannot be read or is too large."""
    try:
        content = _head(root / name, SIZE + 1)
    except OSError as error:
        content, why = None, error.strerror or str(error)
    else:
        why = "it is no file"
    if content is None:
        found.broken.append((name, f"{name} cannot be read: {why}", "what builds the project cannot read it either"))
    elif len(content) > SIZE:
        found.unread.append(f"{name} is larger than {SIZE >> 20} MiB")
        return None
    return content


def _head(path: Path, size: int) -> bytes | None:
    """A file's first bytes; None for what is none: opening a pipe would wait for its other end."""
    if not stat.S_ISREG(path.stat().st_mode):
        return None
    with path.open("rb") as file:
        return file.read(size)


def _setup(root: Path, found: _Found) -> doctor_setup.Setup | None:
    content = _bytes(root, "setup.py", found)
    if content is None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a stranger's escapes
            return doctor_setup.read(content, "setup.py", root)
    except SyntaxError as error:
        what = f"setup.py:{error.lineno or 0} is not Python: {error.msg}"
        found.newer = True
        found.broken.append(("setup.py", what, "every build stops with that SyntaxError"))
    except (ValueError, RecursionError, MemoryError) as error:
        what = f"setup.py is not Python that can be read: {error or type(error).__name__}"
        found.broken.append(("setup.py", what, "a build stops there, or nothing can be said of it"))
    return None


def _pyproject(root: Path, found: _Found) -> None:
    content = _bytes(root, "pyproject.toml", found)
    if content is None:
        return
    try:
        table = tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        bom = content.startswith(b"\xef\xbb\xbf")
        why = "it begins with a byte order mark, which TOML does not take" if bom else str(error)
        what = f"pyproject.toml is not TOML: {why}"
        found.broken.append(("pyproject.toml", what, "pip and uv refuse the project"))
        return
    build = _table(table, "build-system")
    if "build-system" in table:
        found.requires = _texts(build.get("requires"))
    found.backend = build["build-backend"] if isinstance(build.get("build-backend"), str) else None
    found.dynamic = "backend-path" in build
    project = _table(table, "project")
    found.fixed = "project" in table and "dependencies" not in _texts(project.get("dynamic"))
    found.dependencies += _stated(_texts(project.get("dependencies")), content.decode("utf-8"), "pyproject.toml")
    dynamic = _table(_table(_table(_table(table, "tool"), "setuptools"), "dynamic"), "dependencies").get("file")
    for name in (dynamic,) if isinstance(dynamic, str) else _texts(dynamic):
        _listed(root, name, found)


def _setup_cfg(root: Path, found: _Found) -> None:
    """install_requires of setup.cfg, which setuptools reads beside setup.py."""
    content = _bytes(root, "setup.cfg", found) if os.path.lexists(root / "setup.cfg") else None
    text = (content or b"").decode("utf-8", "replace")
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
    except configparser.Error as error:
        what = f"setup.cfg is no configuration: {str(error).splitlines()[0]}"
        found.broken.append(("setup.cfg", what, "setuptools stops there"))
        return
    wanted = parser.get("options", "install_requires", fallback="").splitlines()
    found.dependencies += _stated(filter(None, map(str.strip, wanted)), text, "setup.cfg")


def _stated(wanted: Iterable[str], text: str, file: str) -> Iterator[Stated]:
    """Requirements with the line of the file where each one first stands."""
    lines = text.splitlines()
    for one in wanted:
        line = next((number for number, whole in enumerate(lines, 1) if one in whole), 1)
        yield Stated(text=one, file=file, line=line)


def _listed(root: Path, name: str, found: _Found) -> None:
    """The requirements in a file that setuptools reads them from, a line each; one that is not there it leaves out."""
    inside = not Path(name).is_absolute() and ".." not in Path(name).parts and "\0" not in name
    content = _bytes(root, name, found) if inside and (root / name).is_file() else None
    for number, line in enumerate((content or b"").decode("utf-8", "replace").splitlines(), 1):
        text = re.sub(r"(^|\s)#.*", "", line).strip()
        if text:
            found.dependencies.append(Stated(text=text, file=name, line=number))


def _table(table: Any, name: str) -> dict[str, Any]:
    inner = table.get(name)
    return inner if isinstance(inner, dict) else {}


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def _abis(root: Path, names: list[str]) -> tuple[str | None, str | None]:
    """The first sources that include torch's C++ API outside its stable part, and its stable library."""
    unstable = stable = None
    for name in names:
        if name.endswith((*COMPILED, *HEADERS)):
            try:
                text = (_head(root / name, HEAD) or b"").decode("utf-8", "replace")
            except OSError:
                continue
            headers = INCLUDE.findall(text)
            if unstable is None and any(not STABLE.match(header) for header in headers):
                unstable = name
            if stable is None and any(header.startswith("torch/csrc/stable/") for header in headers):
                stable = name
            if unstable is not None and stable is not None:
                break
    return unstable, stable
