"""What the libraries of an installed package hold and need, beside the torch that is there. Nothing is loaded."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wheelmill import doctor_torch, elf, loading, platforms, torch_use
from wheelmill.doctor_facts import Package, PackageLibrary
from wheelmill.errors import GateError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wheelmill.elf import Library

SYSTEM = re.compile(
    r"lib(c|m|dl|rt|pthread|util|stdc\+\+|gcc_s|gomp|z)\.so\.\d+|libpython.*|" + platforms.LOADER.pattern
)
NVIDIA_LOADED = ("libcuda.so.1", "libcuda.so")


def read(name: str, told: Mapping[str, Any], folders: Sequence[Path]) -> Package:
    """The facts of the package that `doctor_probe` found; `folders` as `doctor_torch.folders` gives them."""
    found = told["package"]
    if found is None:
        return Package(name=name)
    libraries, unreadable = _libraries(found["libraries"])
    root = Path(told["torch"]["root"]) if told["torch"] else None
    # torch's libraries are loaded before the package's own.
    places = [*folders, *([root / "lib"] if root else []), *{Path(path).parent for path in libraries}]
    offered: frozenset[str] | None = None
    if root is not None and any(torch_use.classify(one).abi != "none" for one in libraries.values()):
        offered = _offered(root / "lib")
    return Package(
        name=found["name"] or name,
        version=found["version"],
        requires=tuple(found["requires"]),
        libraries=tuple(_one(path, library, places, offered, libraries) for path, library in libraries.items()),
        alternatives=loading.alternatives(tuple(libraries.values())),
        unreadable=unreadable,
    )


def _libraries(paths: Sequence[str]) -> tuple[dict[str, Library], dict[str, str]]:
    libraries: dict[str, Library] = {}
    unreadable: dict[str, str] = {}
    for path in paths:
        try:
            libraries[path] = elf.read(Path(path), path)
        except (GateError, OSError) as error:
            unreadable[path] = str(error.__cause__ or getattr(error, "strerror", None) or error)
    return libraries, unreadable


def _offered(folder: Path) -> frozenset[str] | None:
    """Every symbol that torch's libraries offer; None where one of them cannot be read."""
    try:
        return frozenset().union(*(map(elf.exported, sorted(folder.glob("lib*.so")))))
    except (GateError, OSError):
        return None


def _one(
    path: str,
    library: Library,
    places: Sequence[Path],
    offered: frozenset[str] | None,
    every: Mapping[str, Library],
) -> PackageLibrary:
    _, lacking = doctor_torch.unfound(Path(path), places)
    use = torch_use.classify(library)
    wanted = [one for one in (*use.unstable, *use.shims) if one in library.undefined]
    own = _own(every, path) if offered is not None and wanted else None
    # A renamed copy is the package's own, whatever torch brings.
    cuda = next(((one, major) for one in library.needed if (major := loading.cuda_major(one))), None)
    return PackageLibrary(
        path=path,
        sass=library.sass,
        ptx=library.ptx,
        isa=library.ptx_isa,
        lacking=tuple(one for one in lacking if one not in NVIDIA_LOADED and not platforms.LOADER.fullmatch(one)),
        cuda=cuda,
        missing=tuple(one for one in wanted if one not in (offered or ()) and one not in own)
        if own is not None
        else (),
        glibc=platforms.newest(library, "GLIBC"),
        glibcxx=platforms.newest(library, "GLIBCXX"),
    )


def _own(every: Mapping[str, Library], path: str) -> frozenset[str] | None:
    """What the package's other libraries offer to this one; None where it needs others that are not looked into."""
    needed = set(every[path].needed)
    others = {one.rpartition("/")[2]: one for one in every if one != path}
    found: set[str] = set()
    for name in needed:
        if name in others:
            try:
                found |= elf.exported(Path(others[name]))
            except (GateError, OSError):
                return None
        elif not platforms.is_external(name) and not SYSTEM.fullmatch(name):
            return None
    return frozenset(found)
