"""A YAML file held against a pydantic model: its content, its lines, and all its problems at once.

pydantic checks the values. What it cannot see is checked here: repeated keys and items, and the source text
of a number that was meant to be quoted.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from wheelmill.errors import InputError
from wheelmill.words import INT, STR, Words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pydantic_core import ErrorDetails

M = TypeVar("M", bound=BaseModel)

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# Root, section, list, and a waiver in it: no key is nested deeper. What is deeper stays a node, which no type
# accepts; so an alias that holds itself ends.
_DEPTH = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One thing wrong in a file; `line` counts from 1."""

    file: str
    line: int
    key: str
    what: str
    remedy: str

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}: {self.key}" if self.key else f"{self.file}:{self.line}"


def raise_all(problems: list[Problem]) -> None:
    """Raises one InputError that tells every problem, by line; returns when there is none."""
    ordered = sorted(problems, key=lambda problem: problem.line)
    match ordered:
        case []:
            return
        case [one]:
            raise InputError(f"{one.where}: {one.what}", remedy=one.remedy)
        case [first, *_]:
            told = (f"{one.where}: {one.what}\n  what to do: {one.remedy}" for one in ordered)
            raise InputError(f"{first.file} has {len(ordered)} problems.\n" + "\n".join(told))


@dataclass(frozen=True, kw_only=True, slots=True)
class Document(Generic[M]):
    """A read file, and the line of each key by its dotted name, as `policy.glibc` or `cuda[0]`."""

    file: str
    content: M
    lines: Mapping[str, int]

    def problem(self, key: str, what: str, remedy: str) -> Problem:
        return Problem(file=self.file, line=line_of(self.lines, key), key=key, what=what, remedy=remedy)


def line_of(lines: Mapping[str, int], key: str) -> int:
    """The line of `key`, or of the nearest key around it that the file has."""
    while key and key not in lines:
        key = re.sub(r"(\[\d+\]|\.?[^.\[]+)$", "", key)
    return lines.get(key, 1)


def read(path: Path, model: type[M]) -> Document[M]:
    """The file's content as `model`; the words of a problem come from the model's JSON Schema.

    Raises InputError when the file is missing, empty, or no YAML, and one that tells every problem of content.
    """
    source = _Source(file=str(path))
    values = source.plain(_compose(path), "", _DEPTH)
    try:
        content = model.model_validate(values)
    except ValidationError as error:
        words = Words(model.model_json_schema())
        raise_all([*source.problems, *(source.problem(detail, values, words) for detail in error.errors())])
        raise
    raise_all(source.problems)
    return Document(file=source.file, content=content, lines=source.lines)


def _compose(path: Path) -> yaml.Node:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        why = error.strerror or str(error)
        raise InputError(
            f"{path} cannot be read: {why}.", remedy="Run where the matrix is, or name it with --matrix PATH."
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: {error}.", remedy="Save the file as UTF-8.") from error
    try:
        root = yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise _not_yaml(path, text, error) from error
    if root is None:
        raise InputError(
            f"{path}:1: the file is empty.",
            remedy='The smallest matrix is\n  version: 1\n  torch: ">=2.10"\n  cuda: [cpu, cu130]',
        )
    return root


def _not_yaml(path: Path, text: str, error: yaml.YAMLError) -> InputError:
    mark = getattr(error, "problem_mark", None)
    line = mark.line + 1 if mark is not None else 1
    rows = text.splitlines()
    row = rows[line - 1] if line <= len(rows) else ""
    if "\t" in row[: len(row) - len(row.lstrip())]:
        return InputError(
            f"{path}:{line}: the line is indented with a tab, which YAML forbids.",
            remedy="Indent with spaces.",
        )
    said = [getattr(error, "context", None), getattr(error, "problem", None)]
    what = ", ".join(part for part in said if part) or str(error).splitlines()[0]
    begun = getattr(error, "context_mark", None)
    since = f" (begun on line {begun.line + 1})" if begun is not None and begun.line + 1 != line else ""
    return InputError(f"{path}:{line}: this is not YAML: {what}{since}.", remedy="Correct that place.")


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


@dataclass(frozen=True, kw_only=True, slots=True)
class _Source:
    """A file's nodes and lines by dotted key, and what is wrong with it whatever the model."""

    file: str
    nodes: dict[str, yaml.Node] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def plain(self, node: yaml.Node, key: str, depth: int) -> object:
        """The node at `key` in Python's own types; what is no mapping, list, text or integer stays a node."""
        self.nodes[key] = node
        self.lines.setdefault(key, _line(node))
        if depth and isinstance(node, yaml.MappingNode):
            return self._mapping(node, key, depth)
        if depth and isinstance(node, yaml.SequenceNode):
            return self._list(node, key, depth)
        if node.tag == STR:
            return str(node.value)
        with suppress(ValueError):
            return int(node.value) if node.tag == INT else node
        return node

    def _mapping(self, node: yaml.MappingNode, key: str, depth: int) -> dict[str, object]:
        values: dict[str, object] = {}
        for name_node, value in node.value:
            line = _line(name_node)
            if not isinstance(name_node, yaml.ScalarNode):
                self._report(line, key, "a key must be a plain word.", "Write `key: value`.")
                continue
            name = str(name_node.value)
            full = _joined([key, name] if key else [name])
            if name in values:
                twice = f"the key is given twice, on lines {self.lines[full]} and {line}."
                self._report(line, full, twice, "Keep one.")
                continue
            self.lines[full] = line
            values[name] = self.plain(value, full, depth - 1)
        return values

    def _list(self, node: yaml.SequenceNode, key: str, depth: int) -> list[object]:
        values: list[object] = []
        for position, item in enumerate(node.value):
            at = f"{key}[{position}]"
            value = self.plain(item, at, depth - 1)
            if isinstance(value, str) and value in values:
                self._report(self.lines[at], at, f'"{value}" is listed twice.', "Keep one.")
            values.append(value)
        return values

    def _report(self, line: int, key: str, what: str, remedy: str) -> None:
        self.problems.append(Problem(file=self.file, line=line, key=key, what=what, remedy=remedy))

    def problem(self, detail: ErrorDetails, values: object, words: Words) -> Problem:
        """What pydantic found in `values`, at its place in the file."""
        path = _path(detail, values)
        key = _joined(path)
        what, remedy = words.told(detail, path, self.nodes.get(key))
        return Problem(file=self.file, line=line_of(self.lines, key), key=key, what=what, remedy=remedy)


def _path(detail: ErrorDetails, values: Any) -> list[str | int]:
    """The keys and positions in pydantic's `loc`, which also names members of unions."""
    path: list[str | int] = []
    for part in detail["loc"]:
        with suppress(LookupError, TypeError):
            values = values[part]
            path.append(part)
    return [*path, detail["loc"][-1]] if detail["type"] == "missing" else path


def _joined(path: Sequence[str | int]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
