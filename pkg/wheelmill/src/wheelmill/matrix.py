"""matrix.yaml as a frozen value; what its names mean to torch and CUDA is for `resolve` to say."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from wheelmill import arch, choice, document
from wheelmill.choice import Choice
from wheelmill.errors import InputError
from wheelmill.names import did_you_mean
from wheelmill.schema import MatrixFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from wheelmill import schema
    from wheelmill.document import Document, Problem
    from wheelmill.model import PythonAbi
    from wheelmill.schema import BuildTorch, ToolkitMinor

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


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
class Waiver:
    """A rule of the audit that is waived, in the libraries that a glob names or in all, and why."""

    rule: str
    library: str | None
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """The oldest glibc; the largest wheel in bytes, as a file and unpacked (None: no limit).

    `fail_on` is the mildest finding that fails a wheel.
    """

    glibc: str
    size: int | None
    unpacked: int | None = None
    fail_on: Literal["error", "warning"] = "error"
    waive: tuple[Waiver, ...] = ()


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
    toolkit_dropped: bool
    facts: Path | None
    lines: Mapping[str, int]

    def line(self, key: str) -> int:
        """The line of `key`, or of the nearest key around it that the file has."""
        return document.line_of(self.lines, key)


def load(path: Path) -> Matrix:
    """Reads and checks the file, and the project's requires-python where the matrix leaves `python` out.

    Raises one InputError that tells every problem of the file, each with file, line, key and remedy; what
    depends on other keys and files is looked at once each key is right.
    """
    found = document.read(path, MatrixFile)
    stated, root = found.content, path.parent
    document.raise_all([*_wrong_files(found, root), *_wrong_targets(found)])
    abi, gates = stated.abi, tuple(stated.gates.publish)
    return Matrix(
        path=path,
        root=root,
        project=_project(stated.project),
        torch=_choice("torch", stated.torch),
        cuda=tuple(stated.cuda),
        python=_python(found, root),
        sm={"default": ("all-major",), **{key: _words(words) for key, words in stated.sm.items()}},
        stable_from=None if abi.torch == "per-release" else abi.torch.rpartition("=")[2].strip(),
        python_abi="version" if abi.python == "per-version" else abi.python,
        operators=_operators(stated.operators),
        policy=_policy(stated.policy),
        gates={"publish": gates or _default_gates(stated)},
        toolkit_minor=stated.toolkit.minor,
        toolkit_dropped=stated.toolkit.dropped == "accept",
        facts=None if stated.facts is None else root / stated.facts,
        lines=found.lines,
    )


def _wrong_files(found: Document[MatrixFile], root: Path) -> Iterator[Problem]:
    """Named folders and files that are not there."""
    folder = root / found.content.project.path
    if not folder.is_dir():
        remedy = "Name the project's folder, relative to the matrix."
        yield found.problem("project.path", f"{folder} is no folder.", remedy)
    facts = found.content.facts
    if facts is not None and not (root / facts).is_file():
        remedy = "Name the TOML file, relative to the matrix."
        yield found.problem("facts", f"{root / facts} is no file.", remedy)


def _wrong_targets(found: Document[MatrixFile]) -> Iterator[Problem]:
    """The keys under `sm` that can mean nothing."""
    built = [tag for tag in found.content.cuda if tag != "cpu"]
    for name in found.content.sm:
        key = f"sm.{name}"
        if name == "default" or name in built:
            continue
        if re.fullmatch(r"cu\d{3,}", name):
            yield found.problem(key, f"{name} is not in `cuda`, so this has no effect.", f"Add {name} there.")
        elif name == "cpu":
            yield found.problem(key, "a cpu wheel has no GPU targets.", "Remove the key.")
        else:
            yield found.problem(key, "there is no such key.", did_you_mean(name, ["default", *built]))


def _choice(key: str, stated: str | list[str]) -> Choice:
    return choice.ranged(stated, key) if isinstance(stated, str) else Choice(key=key, listed=tuple(stated))


def _words(stated: str | list[str]) -> tuple[str, ...]:
    return arch.split(stated) if isinstance(stated, str) else tuple(stated)


def _project(stated: schema.Project) -> Project:
    return Project(
        path=Path(stated.path),
        sources=tuple(stated.sources),
        name=stated.name,
        build_torch=stated.build_torch,
    )


def _operators(stated: schema.Operators | None) -> Operators | None:
    return None if stated is None else Operators(namespace=stated.namespace, samples=stated.samples)


def _policy(stated: schema.Policy) -> Policy:
    return Policy(
        glibc=stated.glibc,
        size=_size(stated.size),
        unpacked=_size(stated.unpacked),
        fail_on=stated.fail_on,
        waive=tuple(Waiver(rule=one.rule, library=one.library, reason=one.reason) for one in stated.waive),
    )


def _size(stated: str | None) -> int | None:
    if stated is None:
        return None
    from pydantic import ByteSize, TypeAdapter  # most matrices name no size

    return int(TypeAdapter(ByteSize).validate_python(stated))


def _default_gates(stated: MatrixFile) -> tuple[str, ...]:
    static = ("audit", "cover")
    return static if stated.operators is None else (*static, "ops", "gradcheck", "sanitize")


def _python(found: Document[MatrixFile], root: Path) -> Choice:
    """What the matrix says, else the project's own range; every Python that torch has where it states none."""
    stated = found.content
    if stated.python is not None:
        return _choice("python", stated.python)
    file = root / stated.project.path / "pyproject.toml"
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8")).get("project", {})
        required = table.get("requires-python", "") if isinstance(table, dict) else ""
        return choice.required(required) if isinstance(required, str) and required else Choice(key="")
    except FileNotFoundError:
        return Choice(key="")
    except (OSError, ValueError) as error:
        what = f"the key is left out, and requires-python cannot be read from {file}: {error}"
        remedy = 'Correct that file, or write python: ">=3.10" here.'
        problem = found.problem("python", what, remedy)
        raise InputError(f"{problem.where}: {what}", remedy=remedy) from error
