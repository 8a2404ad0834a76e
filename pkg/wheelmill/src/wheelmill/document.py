"""A YAML file as values that know their lines, and the problems found in it, reported together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import yaml

from wheelmill.errors import InputError
from wheelmill.names import did_you_mean
from wheelmill.schema import Number, Section, Table, Text, Texts, described

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from wheelmill.schema import Kind

T = TypeVar("T")

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STR = "tag:yaml.org,2002:str"
_WORDS = {
    "tag:yaml.org,2002:int": "a number",
    "tag:yaml.org,2002:float": "a number",
    "tag:yaml.org,2002:bool": "true or false",
    "tag:yaml.org,2002:null": "empty",
    "tag:yaml.org,2002:timestamp": "a date",
}


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


@dataclass(kw_only=True, slots=True)
class Document:
    """A read file: scalars and lists by dotted key (`policy.glibc`, `sm.cu121`), lines by the same keys.

    List items have a line under `cuda[0]`. Only `read` and `convert` add to it.
    """

    file: str
    values: dict[str, str | int | tuple[str, ...]] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def report(self, key: str, what: str, remedy: str, *, line: int | None = None) -> None:
        self.problems.append(
            Problem(file=self.file, line=line or self.lines.get(key, 1), key=key, what=what, remedy=remedy)
        )

    def convert(self, key: str, function: Callable[[str], T], default: T) -> T:
        """`function` of the text at `key`; `default` where there is none, or where it raised InputError."""
        value = self.values.get(key)
        if not isinstance(value, str):
            return default
        try:
            return function(value)
        except InputError as error:
            self.report(key, str(error), error.remedy)
            return default

    def text(self, key: str, default: str = "") -> str:
        value = self.values.get(key, default)
        return value if isinstance(value, str) else default

    def texts(self, key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        value = self.values.get(key, default)
        return value if isinstance(value, tuple) else default

    def keys(self, prefix: str) -> list[str]:
        """The entries that the file gives under `prefix`, without the prefix, in its order."""
        return [key.removeprefix(prefix + ".") for key in self.values if key.startswith(prefix + ".")]


def read(path: Path, declaration: Section) -> Document:
    """The file's content, held against `declaration`. Problems of content are collected, not raised.

    Raises InputError when the file is missing, empty, or no YAML.
    """
    document = Document(file=str(path))
    root = _compose(path)
    _section(document, root, "", declaration)
    return document


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


def _visit(document: Document, node: yaml.Node, key: str, kind: Kind) -> None:
    """Reads `node`, at `key`, as `kind`."""
    document.lines[key] = _line(node)
    if isinstance(kind, Section):
        _section(document, node, key, kind)
    elif isinstance(kind, Table):
        _table(document, node, key, kind)
    elif isinstance(kind, Texts):
        _texts(document, node, key, kind)
    elif isinstance(kind, Text):
        value = _text(document, node, key, kind)
        if value is not None:
            document.values[key] = value
    else:
        _number(document, node, key, kind)


def _entries(document: Document, node: yaml.Node, key: str, kind: Kind) -> dict[str, yaml.Node]:
    """The mapping's entries; not a mapping, odd keys and repeated keys are reported."""
    if not isinstance(node, yaml.MappingNode):
        document.report(key, f"{_what(node)}, but {described(kind)} is needed.", kind.hint, line=_line(node))
        return {}
    found: dict[str, yaml.Node] = {}
    first: dict[str, int] = {}
    for name_node, value in node.value:
        line = _line(name_node)
        if not isinstance(name_node, yaml.ScalarNode):
            document.report(key, "a key must be a plain word.", "Write `key: value`.", line=line)
            continue
        name = str(name_node.value)
        full = f"{key}.{name}" if key else name
        if name in found:
            document.report(
                full, f"the key is given twice, on lines {first[name]} and {line}.", "Keep one.", line=line
            )
            continue
        found[name] = value
        first[name] = line
        document.lines[full] = line
    return found


def _section(document: Document, node: yaml.Node, key: str, kind: Section) -> None:
    given = _entries(document, node, key, kind)
    for name, value in given.items():
        full = f"{key}.{name}" if key else name
        field_kind = kind.fields.get(name)
        if field_kind is None:
            document.report(full, "there is no such key.", did_you_mean(name, list(kind.fields)))
        else:
            _visit(document, value, full, field_kind)
    for name in kind.required:
        if name not in given and isinstance(node, yaml.MappingNode):
            full = f"{key}.{name}" if key else name
            document.report(full, "the key is missing.", kind.fields[name].hint, line=_line(node))


def _table(document: Document, node: yaml.Node, key: str, kind: Table) -> None:
    for name, value in _entries(document, node, key, kind).items():
        _visit(document, value, f"{key}.{name}", kind.value)


def _texts(document: Document, node: yaml.Node, key: str, kind: Texts) -> None:
    if isinstance(node, yaml.ScalarNode) and kind.text is not None:
        value = _text(document, node, key, kind.text)
        if value is not None:
            document.values[key] = value
        return
    if not isinstance(node, yaml.SequenceNode):
        remedy = f"Write [{node.value}]." if node.tag == _STR else kind.hint
        document.report(key, f"{_what(node)}, but {described(kind)} is needed.", remedy)
        return
    if not node.value:
        document.report(key, "the list is empty.", f"Give at least one. {kind.hint}")
        return
    items: list[str] = []
    for position, item in enumerate(node.value):
        at = f"{key}[{position}]"
        document.lines[at] = _line(item)
        value = _text(document, item, at, kind.item)
        if value is not None and value in items:
            document.report(at, f'"{value}" is listed twice.', "Keep one.")
        items.append(value or "")  # a refused item keeps its place, so that the next one's key is right
    document.values[key] = tuple(items)


def _text(document: Document, node: yaml.Node, key: str, kind: Text) -> str | None:
    if not isinstance(node, yaml.ScalarNode):
        document.report(key, f"{_what(node)}, but {described(kind)} is needed.", kind.hint)
        return None
    value = str(node.value)
    if _WORDS.get(node.tag) == "a number" and kind.numeric:
        loses = " and drops its last zero" if node.tag.endswith("float") and value.endswith("0") else ""
        document.report(key, f"YAML reads {value} as a number{loses}.", f'Quote it: "{value}".')
        return None
    if node.tag != _STR:
        document.report(key, f"{_what(node)}, but {described(kind)} is needed.", kind.hint)
        return None
    if kind.choices and value not in kind.choices:
        document.report(key, f'"{value}" is not one of the values.', did_you_mean(value, kind.choices))
        return None
    if not value.strip():
        document.report(key, f"the text is empty, but {described(kind)} is needed.", kind.hint)
        return None
    return value


def _number(document: Document, node: yaml.Node, key: str, kind: Number) -> None:
    if isinstance(node, yaml.ScalarNode) and node.tag.endswith(":int") and node.value == str(kind.value):
        document.values[key] = kind.value
        return
    shown = node.value if isinstance(node, yaml.ScalarNode) else _what(node)
    document.report(key, f"{shown} is not a format that this release reads.", kind.hint)


def _what(node: yaml.Node) -> str:
    """What stands there, in a sentence's beginning."""
    if isinstance(node, yaml.MappingNode):
        return "this is a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "this is a list"
    if node.tag in _WORDS:
        return f"this is {_WORDS[node.tag]}"
    return "this is text" if node.tag == _STR else f"this carries the tag {node.tag}"
