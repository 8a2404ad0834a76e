"""What torch's own files say of it, without importing it: who built it, its code, its standard, what it lacks."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.markers import UndefinedComparison
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from wheelmill import doctor_extension, elf
from wheelmill.doctor_facts import TorchFiles
from wheelmill.errors import GateError
from wheelmill.names import listing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from wheelmill.facts import Facts
    from wheelmill.which_env import Environment, Torch

# What `import torch` loads, in that order; the rest is loaded by these, or when it is called.
FIRST = ("libtorch_global_deps.so", "libtorch_python.so")
STANDARD = re.compile(r"cuda_cflags = \[\s*'-std=c\+\+(\d+)'")
DEMANDED = re.compile(r"#error C\+\+(\d+) or later compatible compiler is required")
PACKAGING = re.compile(r"^\s*from pkg_resources import packaging", re.MULTILINE)
SIZE = 4 << 20


def read(told: Mapping[str, Any], env: Environment, known: Facts, folders: Sequence[Path]) -> TorchFiles:
    """The facts of the torch that `doctor_probe` found; `folders` is where the loader looks besides its search path."""
    root, torch = Path(told["root"]), env.torch
    text = _text(root / "utils" / "cpp_extension.py")
    standard = STANDARD.search(text)
    demanded = DEMANDED.search(_text(root / "include" / "ATen" / "ATen.h"))
    row = known.torch.get(torch.minor) if torch and torch.version else None
    sass: tuple[str, ...] | None = None
    ptx: tuple[str, ...] = ()
    isa = None
    suffixes = told["suffixes"]
    own = next((path for suffix in suffixes if (path := root / f"_C{suffix}").is_file()), None)
    damaged = _gone(root, own, suffixes[0])
    try:
        code = root / "lib" / "libtorch_cuda.so"
        if code.is_file():
            sass, ptx, isa = elf.device(code, code.name)
        lacking = _lacking(root / "lib", own, folders)
    except (GateError, OSError) as error:
        damaged, lacking = ("a library", f"cannot be read: {error.__cause__ or error}"), {}
    return TorchFiles(
        root=str(root),
        source=source(told, torch),
        standard=int(standard[1]) if standard else row.cxx if row else None,
        demanded=int(demanded[1]) if demanded else None,
        setuptools=_setuptools(told["requires"], env),
        pkg_resources=bool(PACKAGING.search(text)),
        sass=sass,
        ptx=ptx,
        isa=isa,
        lacking=lacking,
        absent=absent(told["requires"], told["installed"], env),
        damaged=damaged,
        tables=doctor_extension.read(text),
    )


def _gone(root: Path, own: Path | None, suffix: str) -> tuple[str, str] | None:
    """(a file of torch that is not there, what to say of it); `own` is its module for this Python."""
    if not _is_file(root / "__init__.py"):
        return f"{root}/__init__.py", "is not there"
    if own is None:
        others = sorted(path.name for path in root.glob("_C.*.so"))
        return f"{root}/_C{suffix}", f"is not there{f' ({listing(others)} is for another Python)' if others else ''}"
    return None


def _text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(SIZE)
    except OSError:
        return ""


def source(told: Mapping[str, Any], torch: Torch | None) -> str:
    """Where a torch came from, as far as its distribution tells."""
    if torch is not None and torch.origin == "conda":
        return "conda"
    if told.get("from"):
        return f"a file or checkout ({_url(told['from'])})"
    tags = told.get("tags", ())
    if torch is not None and torch.origin == "other":
        return "a vendor's build, or one from source"
    if any(tag.rpartition("-")[2].startswith("linux_") for tag in tags) and (torch is None or torch.origin is None):
        return "a build from source"
    if told.get("installer") is None and not tags:
        return "a build without a distribution"
    # version.py states the variant in both; METADATA only in the wheels of torch's own index.
    return "PyTorch's own index" if "+" in str(told.get("version", "")) else "PyPI"


def _url(text: str) -> str:
    try:
        return re.sub(r"//[^/@]*@", "//", str(json.loads(text).get("url")))[:200]
    except (ValueError, AttributeError):
        return "of an address that cannot be read"


def _setuptools(requires: Iterable[str], env: Environment) -> str | None:
    """What torch requires of setuptools in that Python, as a requirement without its marker."""
    for text in requires:
        try:
            one = Requirement(text)
        except InvalidRequirement:
            continue
        python = env.python.minor if env.python else None
        if one.name.lower() == "setuptools" and (
            one.marker is None or python is None or one.marker.evaluate({"python_version": python})
        ):
            return f"setuptools{one.specifier}"
    return None


def absent(requires: Iterable[str], installed: Iterable[str], env: Environment) -> tuple[str, ...]:
    """The distributions that torch requires in that Python and that are not installed."""
    have, python = set(installed), env.python
    marks = {"extra": ""} | ({"python_version": python.minor, "python_full_version": python.version} if python else {})
    found = []
    for text in requires:
        try:
            one = Requirement(text)
            wanted = one.marker is None or one.marker.evaluate(marks)
        except (InvalidRequirement, UndefinedComparison):
            continue
        if wanted and canonicalize_name(one.name) not in have:
            found.append(canonicalize_name(one.name))
    return tuple(dict.fromkeys(found))


def _lacking(folder: Path, own: Path | None, folders: Sequence[Path]) -> dict[str, str]:
    """The libraries that those of torch, and its module, need and the loader does not find, with what needs each."""
    found: dict[str, str] = {}
    waiting = [path for path in (*(folder / name for name in FIRST), own) if path and path.is_file()]
    seen = set(waiting)
    while waiting:
        path = waiting.pop(0)
        needed, missing = unfound(path, folders)
        found |= {name: path.name for name in missing if name not in found}
        more = [folder / name for name in needed if (folder / name).is_file() and folder / name not in seen]
        seen.update(more)
        waiting += more
    return found


def unfound(path: Path, folders: Sequence[Path]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(the libraries that a library needs, those that its search path and `folders` do not have)."""
    needed, rpath = elf.links(path)
    places = [*_expanded(rpath, path.parent), *folders]
    return needed, tuple(name for name in needed if not any(_is_file(place / name) for place in places))


def _expanded(rpath: Iterable[str], origin: Path) -> Iterator[Path]:
    for text in rpath:
        for one in text.split(":"):
            if one:
                yield Path(one.replace("${ORIGIN}", "$ORIGIN").replace("$ORIGIN", str(origin)))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def folders(ldconfig: str, env: Mapping[str, str], site: Iterable[str], prefix: str | None) -> tuple[Path, ...]:
    """Where the loader looks for any library: LD_LIBRARY_PATH, ldconfig's folders, its defaults; conda's; and the
    folders of NVIDIA's wheels, which torch loads beforehand. `ldconfig` is the output of `ldconfig -p`.
    """
    stated = [one for one in env.get("LD_LIBRARY_PATH", "").split(":") if one]
    cached = re.findall(r"=> (/\S*)/[^/\s]+$", ldconfig, re.MULTILINE)
    machine = f"{'x86_64' if sys.maxsize > 1 << 32 else 'i386'}-linux-gnu"
    default = ["/lib64", "/usr/lib64", "/lib", "/usr/lib", f"/lib/{machine}", f"/usr/lib/{machine}"]
    default += ["/lib/aarch64-linux-gnu", "/usr/lib/wsl/lib"]
    wheels = [str(path) for folder in site for path in sorted(Path(folder).glob("nvidia/*/lib"))]
    conda = [f"{prefix}/lib"] if prefix else []
    return tuple(map(Path, dict.fromkeys([*stated, *cached, *default, *conda, *wheels])))
