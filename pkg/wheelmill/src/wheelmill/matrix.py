"""matrix.yaml as a frozen value; what its names mean to torch and CUDA is for `resolve` to say."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from wheelmill import arch, choice, document
from wheelmill.choice import Choice
from wheelmill.errors import InputError
from wheelmill.names import did_you_mean
from wheelmill.schema import MATRIX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wheelmill.document import Document
    from wheelmill.model import PythonAbi

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

BuildTorch = Literal["headers", "import", "auto"]
ToolkitMinor = Literal["exact", "same-major"]

# The C shims are versioned since 2.10, and below it too little is there for real operators:
# https://docs.pytorch.org/docs/stable/notes/libtorch_stable_abi.html
STABLE_FROM = (2, 10)

_UNITS = {
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Project:
    """The extension project, its path relative to the matrix's root.

    `sources` empty means all; `name` None means the project's own.
    """

    path: Path
    sources: tuple[str, ...]
    name: str | None
    build_torch: BuildTorch


@dataclass(frozen=True, kw_only=True, slots=True)
class Operators:
    """The namespace under torch.ops, and the module that gives sample inputs, if any."""

    namespace: str
    samples: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """The oldest glibc, and the largest wheel in bytes (None: no limit)."""

    glibc: str
    size: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Matrix:
    """What the file states, with defaults filled in.

    `stable_from` is the minor that the stable ABI is kept to from, None for one wheel a torch release.
    `sm` holds the words under each key of `sm`; `default` is always among them.
    `lines` gives the line of each key, as `cuda[0]` or `sm.cu121`, for messages of later stages.
    """

    path: Path
    root: Path
    project: Project
    torch: Choice
    cuda: tuple[str, ...]
    python: Choice
    sm: Mapping[str, tuple[str, ...]]
    stable_from: str | None
    python_abi: PythonAbi
    operators: Operators | None
    policy: Policy
    gates: Mapping[str, tuple[str, ...]]
    toolkit_minor: ToolkitMinor
    facts: Path | None
    lines: Mapping[str, int]

    def line(self, key: str) -> int:
        """The line of `key`, or of the nearest key around it that the file has."""
        while key and key not in self.lines:
            key = re.sub(r"(\[\d+\]|\.?[^.\[]+)$", "", key)
        return self.lines.get(key, 1)


def load(path: Path) -> Matrix:
    """Reads and checks the file, and the project's requires-python where the matrix leaves `python` out.

    Raises one InputError that tells every problem of the file, each with file, line, key and remedy.
    """
    found = document.read(path, MATRIX)
    root = path.parent
    project = _project(found, root)
    torch = _choice(found, "torch")
    python = (
        _choice(found, "python") if "python" in found.lines else _requires_python(found, root / project.path)
    )
    _check_forms(found)
    stable = found.convert("abi.torch", _stable_from, None)
    size = found.convert("policy.size", _size, None)
    sm = {key: _sm_words(found, f"sm.{key}") for key in _sm_keys(found)}
    facts = _facts(found, root)
    document.raise_all(found.problems)
    abi = found.text("abi.python", "per-version")
    return Matrix(
        path=path,
        root=root,
        project=project,
        torch=torch,
        cuda=found.texts("cuda"),
        python=python,
        sm={"default": ("all-major",), **sm},
        stable_from=stable,
        python_abi="version" if abi == "per-version" else cast("PythonAbi", abi),
        operators=_operators(found),
        policy=Policy(glibc=found.text("policy.glibc", "2.28"), size=size),
        gates={"publish": found.texts("gates.publish", _default_gates(found))},
        toolkit_minor=cast("ToolkitMinor", found.text("toolkit.minor", "exact")),
        facts=facts,
        lines=found.lines,
    )


def _project(found: Document, root: Path) -> Project:
    path = Path(found.text("project.path", "."))
    if not (root / path).is_dir():
        found.report(
            "project.path",
            f"{root / path} is no folder.",
            "Name the project's folder, relative to the matrix.",
        )
    return Project(
        path=path,
        sources=found.texts("project.sources"),
        name=found.text("project.name") or None,
        build_torch=cast("BuildTorch", found.text("project.build_torch", "auto")),
    )


def _facts(found: Document, root: Path) -> Path | None:
    stated = found.text("facts")
    if stated and not (root / stated).is_file():
        found.report("facts", f"{root / stated} is no file.", "Name the TOML file, relative to the matrix.")
    return root / stated if stated else None


def _choice(found: Document, key: str) -> Choice:
    listed = found.texts(key)
    if listed:
        return Choice(key=key, listed=listed)
    return found.convert(key, lambda text: choice.ranged(text, key), Choice(key=key))


def _requires_python(found: Document, project: Path) -> Choice:
    """The project's own range; every Python that torch has where it states none."""
    file = project / "pyproject.toml"
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8")).get("project", {})
        stated = table.get("requires-python", "") if isinstance(table, dict) else ""
        return choice.required(stated) if isinstance(stated, str) and stated else Choice(key="")
    except FileNotFoundError:
        return Choice(key="")
    except (OSError, ValueError, InputError) as error:
        found.report(
            "python",
            f"the key is left out, and requires-python cannot be read from {file}: {error}",
            'Correct that file, or write python: ">=3.10" here.',
        )
        return Choice(key="")


def _check_forms(found: Document) -> None:
    """Reports the words whose form is wrong, whatever the facts may be."""
    forms = (
        ("torch", r"\d+\.\d+", 'torch is chosen by minor release: write "2.11".'),
        ("python", r"3\.\d+t?", 'Write "3.11", or "3.13t" for the free-threaded 3.13.'),
    )
    for key, form, remedy in forms:
        for position, word in enumerate(found.texts(key)):
            if word and not re.fullmatch(form, word):
                found.report(f"{key}[{position}]", f'"{word}" is no {_CALLED[key]}.', remedy)
    patterns = (
        ("policy.glibc", r"2\.\d+", 'Write "2.28".'),
        (
            "operators.namespace",
            r"[A-Za-z_]\w*",
            "Write the name that follows torch.ops, as in torch.ops.NAME.",
        ),
        (
            "operators.samples",
            r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*",
            "Write a module's name, such as package.testing.",
        ),
        ("project.name", r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", "Write the distribution's name."),
    )
    for key, form, remedy in patterns:
        value = found.text(key)
        if value and not re.fullmatch(form, value):
            found.report(key, f'"{value}" is not of the form that is needed here.', remedy)


_CALLED = {"torch": "minor release of torch", "python": "minor version of Python"}


def _stable_from(text: str) -> str | None:
    if text == "per-release":
        return None
    match = re.fullmatch(r"stable *>= *((\d+)\.(\d+))", text)
    if match is None:
        raise InputError(
            f'"{text}" is not one of the values: per-release, or stable>= and a torch release.',
            remedy="Write per-release or stable>=2.10.",
        )
    if (int(match[2]), int(match[3])) < STABLE_FROM:
        raise InputError(
            f"torch {match[1]} has no stable ABI to keep to: its C shims are versioned from 2.10 on, and "
            "before that too little is there for real operators.",
            remedy="Write stable>=2.10 or later; torch releases before it get a wheel each.",
        )
    return match[1]


def _size(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?([kKMG]?i?B)", text)
    if match is None or match[2] not in _UNITS or float(match[1]) == 0:
        raise InputError(
            f'"{text}" is no size.', remedy="Write a number and a unit, such as 200MB or 150MiB."
        )
    return int(float(match[1]) * _UNITS[match[2]])


def _sm_keys(found: Document) -> list[str]:
    """The keys under `sm` that can mean something; the others are reported."""
    meant: list[str] = []
    built = [tag for tag in found.texts("cuda") if tag != "cpu"]
    for key in found.keys("sm"):
        if key == "default" or key in built:
            meant.append(key)
        elif re.fullmatch(r"cu\d{3,}", key):
            found.report(f"sm.{key}", f"{key} is not in `cuda`, so this has no effect.", f"Add {key} there.")
        elif key == "cpu":
            found.report("sm.cpu", "a cpu wheel has no GPU targets.", "Remove the key.")
        else:
            found.report(f"sm.{key}", "there is no such key.", did_you_mean(key, ["default", *built]))
    return meant


def _sm_words(found: Document, key: str) -> tuple[str, ...]:
    text = found.text(key)
    return arch.split(text) if text else found.texts(key)


def _operators(found: Document) -> Operators | None:
    namespace = found.text("operators.namespace")
    return (
        Operators(namespace=namespace, samples=found.text("operators.samples") or None) if namespace else None
    )


def _default_gates(found: Document) -> tuple[str, ...]:
    static = ("audit", "cover")
    return (*static, "ops", "gradcheck", "sanitize") if found.text("operators.namespace") else static
