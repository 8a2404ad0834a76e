"""Runs in the interpreter that the doctor is asked about, and says where its parts lie. Standard library; Python 3.8.

usage: python doctor_probe.py JOB.json RESULT.json

The job names a package, or null. Nothing is imported: torch and the package are found by their distributions.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import json
import re
import sys
import sysconfig
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TOOLS = ("pip", "setuptools", "ninja", "wheel", "cmake", "numpy")
LIBRARIES = 500


def read_text(self: Any, name: str, strict: Any = metadata.PathDistribution.read_text) -> Any:
    """A file of a distribution. Bytes in it that are not UTF-8 are replaced: one odd package hides no other."""
    try:
        return strict(self, name)
    except UnicodeDecodeError:
        return self._path.joinpath(name).read_bytes().decode("utf-8", "replace")


def is_folder(path: str) -> bool:
    try:
        return Path(path).is_dir()
    except (OSError, ValueError):  # a name that no file can have
        return False


def version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def installed() -> Iterator[str]:
    """The normalized name of every distribution here."""
    for one in metadata.distributions():
        name = one.metadata["Name"]
        if name:
            yield re.sub(r"[-_.]+", "-", name).lower()


def torch() -> dict[str, Any] | None:
    """Where torch's folder is, and what its distribution says."""
    spec: Any = None
    with contextlib.suppress(ImportError, ValueError):
        spec = importlib.util.find_spec("torch")
    try:
        found = metadata.distribution("torch")
    except metadata.PackageNotFoundError:
        found = None
    folders = places(spec)
    # Any folder of that name is a module, one without __init__.py has no origin.
    if not folders or (found is None and not spec.origin):
        return None
    told: dict[str, Any] = {"root": str(folders[0]), "requires": [], "tags": [], "installer": None}
    told["installed"] = sorted(set(installed()))
    told["suffixes"] = importlib.machinery.EXTENSION_SUFFIXES
    if found is None:
        return told
    wheel = (found.read_text("WHEEL") or "").splitlines()
    return {
        **told,
        "version": found.version,
        "requires": list(found.requires or []),
        "tags": [line.partition(":")[2].strip() for line in wheel if line.startswith("Tag:")],
        "installer": (found.read_text("INSTALLER") or "").strip() or None,
        "from": found.read_text("direct_url.json"),
    }


def places(spec: Any) -> list[Path]:
    """The folders of a module."""
    return [Path(folder) for folder in spec.submodule_search_locations or ()] if spec else []


def distribution(name: str) -> Any:
    """A distribution by its own name, else by that of a module it installed; None where there is none."""
    for one in (name, *modules().get(name, ())):
        try:
            return metadata.distribution(one)
        except (metadata.PackageNotFoundError, ValueError):
            continue
    return None


def modules() -> Mapping[str, list[str]]:
    """The distributions of each top-level module; Python 3.10 and later know."""
    known = getattr(metadata, "packages_distributions", dict)
    found: Mapping[str, list[str]] = known()
    return found


def package(name: str) -> dict[str, Any] | None:
    """A distribution and the libraries that it installed; None where there is none of that name."""
    found = distribution(name)
    if found is None:
        return None
    files = [Path(str(found.locate_file(file))) for file in found.files or [] if ".so" in Path(str(file)).suffixes]
    return {
        "name": found.metadata["Name"],
        "version": found.version,
        "requires": list(found.requires or []),
        "libraries": sorted(map(str, files or beside(found)))[:LIBRARIES],
    }


def beside(found: Any) -> list[Path]:
    """The libraries in the folders of a distribution's modules: one that is installed to be edited lists none."""
    names = (found.read_text("top_level.txt") or "").split() or [re.sub(r"\W", "_", found.metadata["Name"])]
    files: list[Path] = []
    for name in names:
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            continue
        if spec and (spec.origin or "").endswith(".so"):
            files.append(Path(str(spec.origin)))
        for folder in places(spec):
            files += folder.rglob("*.so")
    return files


def run(job: dict[str, Any]) -> dict[str, Any]:
    own = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    include = Path(sysconfig.get_path("include") or "")
    return {
        "executable": sys.executable,
        "include": str(include),
        "headers": (include / "Python.h").is_file(),
        "conda": next((one for one in (sys.prefix, sys.base_prefix) if Path(one, "conda-meta").is_dir()), None),
        # torch looks for NVIDIA's wheels in every folder that modules come from: .pth files and PYTHONPATH add some.
        "site": list(dict.fromkeys(folder for folder in (*own, *sys.path) if is_folder(folder))),
        "managed": sys.prefix == sys.base_prefix and Path(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED").is_file(),
        "tools": {name: version(name) for name in TOOLS},
        "torch": torch(),
        "package": package(job["package"]) if job["package"] else None,
    }


def main(argv: list[str]) -> None:
    # This file's own folder holds modules that are none of that interpreter's.
    sys.path = [path for path in sys.path if Path(path or ".").resolve() != Path(__file__).resolve().parent]
    metadata.PathDistribution.read_text = read_text  # type: ignore[assignment,method-assign]
    Path(argv[2]).write_text(json.dumps(run(json.loads(Path(argv[1]).read_text(encoding="utf-8")))), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv)
