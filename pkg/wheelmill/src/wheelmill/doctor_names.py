"""What the names of a setup.py stand for, and which of its texts are flags. It is never run."""

from __future__ import annotations

import ast
import itertools
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wheelmill.doctor_branches import named

if TYPE_CHECKING:
    from collections.abc import Iterator

STANDARD = re.compile(r"-std=(?:c|gnu)\+\+(\w+)")
FLAG = re.compile(r"-?-(gencode|gpu-architecture|arch)\b|arch=(compute|sm)_|code=\[?(sm|compute|lto)_")
NAMED = frozenset({"-arch", "--gpu-architecture", "-gencode"})
OF_TORCH = frozenset({"CUDAExtension", "CppExtension"})
MOST = 2000  # files of a glob, texts of loops
# Calls whose texts are for people, or are looked for; `replace` and `remove` name what is not to be.
WORDS = frozenset(
    {
        *("print", "warn", "warning", "info", "debug", "error", "critical", "exception", "log", "add_argument"),
        *("replace", "remove", "removeprefix", "removesuffix", "index", "startswith", "endswith", "find", "count"),
        *("compile", "search", "match", "fullmatch", "discard", "strip", "exit", "split", "has_flag"),
    }
)
FOR_PEOPLE = frozenset({"help", "description", "long_description", "epilog", "message", "classifiers", "metavar"})


@dataclass(slots=True)
class Name:
    """What a name is given anywhere, what is added to it, and what loops over literal lists give it."""

    given: list[ast.expr] = field(default_factory=list)
    added: list[ast.expr] = field(default_factory=list)
    looped: list[ast.expr] = field(default_factory=list)


def names(tree: ast.Module) -> dict[str, Name]:
    """What each name of a setup.py is given, by its name."""
    found: dict[str, Name] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    if isinstance(target, ast.Name):
                        found.setdefault(target.id, Name()).given.append(value)
            case ast.AugAssign(target=ast.Name(id=identifier), value=value):
                found.setdefault(identifier, Name()).added.append(value)
            case ast.For(target=ast.Name(id=identifier), iter=ast.List(elts=parts) | ast.Tuple(elts=parts)) | (
                ast.comprehension(target=ast.Name(id=identifier), iter=ast.List(elts=parts) | ast.Tuple(elts=parts))
            ):
                found.setdefault(identifier, Name()).looped += parts
            case ast.Call(func=ast.Attribute(value=ast.Name(id=identifier), attr="append" | "extend"), args=[value]):
                found.setdefault(identifier, Name()).added.append(value)
    return found


def flags(node: ast.expr, values: dict[str, Name]) -> Iterator[str]:
    """The texts that an expression is: its own, with names put in, or a flag and its value as neighbours in a list."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.List(elts=parts):
            for flag, given in itertools.pairwise(parts):
                match flag, given:
                    case ast.Constant(value=str(word)), ast.Constant(value=str(text)) if word in NAMED:
                        yield from () if FLAG.search(text) else (f"{word}={text}",)
        case ast.JoinedStr(values=parts):
            every = [_known(one.value if isinstance(one, ast.FormattedValue) else one, values) for one in parts]
            yield from map("".join, itertools.islice(itertools.product(*every), MOST))


def _known(node: ast.expr, values: dict[str, Name]) -> list[str]:
    """What a part of a text is, or each of what a loop gives it; nothing where that is not known."""
    match node:
        case ast.Constant(value=str() | int() as value):
            return [f"{value!s}"]
        case ast.Name(id=identifier):
            known = values.get(identifier, Name())
            single = known.given if len(known.given) == 1 and not known.added else []
            return [f"{one.value!s}" for one in known.looped or single if isinstance(one, ast.Constant)]
    return []


def words(tree: ast.Module) -> frozenset[int]:
    """Texts that are no flags: for people, or compared with, looked for, or taken out."""
    found: set[int] = set()
    for node in ast.walk(tree):
        parts: list[ast.AST] = []
        match node:
            case ast.Compare() | ast.Raise() | ast.Assert() | ast.Expr(value=ast.Constant()):
                parts = [node]
            case ast.Call(func=function, args=[first, *_]) if named(function) in {"replace", "sub"}:
                parts = [first]
            case ast.Call(func=function, args=args) if named(function) in WORDS:
                parts = [*args]
            case ast.keyword(arg=str(name), value=value) if name in FOR_PEOPLE:
                parts = [value]
        found |= {id(one) for part in parts for one in ast.walk(part)}
    return frozenset(found)


def strange(tree: ast.Module) -> frozenset[int]:
    """What is of setuptools' own extensions alone, beside which there are torch's: their calls, and the values of the
    names that only these use.
    """
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    plain = {
        one.asname or one.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("setuptools", "distutils"))
        for one in node.names
        if one.name == "Extension"
    }
    assigned = {one.id for one in ast.walk(tree) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and any(named(base) in plain for base in node.bases):
            plain.add(node.name)
    plain -= assigned
    if not any(named(call.func) in OF_TORCH for call in calls):
        return frozenset()
    theirs = [call for call in calls if named(call.func) in plain]
    inside = {id(one) for call in theirs for one in ast.walk(call)}
    loads = [one for one in ast.walk(tree) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)]
    only = {one.id for one in loads if id(one) in inside} - {one.id for one in loads if id(one) not in inside}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(isinstance(one, ast.Name) and one.id in only for one in node.targets):
            inside |= {id(one) for one in ast.walk(node.value)}
    return frozenset(inside)


def choices(tree: ast.Module) -> dict[int, object]:
    """Standards of which one counts at a time: those that one name is given, or one function returns."""
    groups: dict[object, list[ast.Constant]] = {}
    for name, values in names(tree).items():
        if len(values.given) > 1:
            groups[name] = [one for value in values.given for one in _pinning(value)]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            returned = [one.value for one in ast.walk(node) if isinstance(one, ast.Return) and one.value]
            if len(returned) > 1:
                groups[id(node)] = [one for value in returned for one in _pinning(value)]
    return {id(one): group for group, texts in groups.items() if len(texts) > 1 for one in texts}


def _pinning(value: ast.expr) -> Iterator[ast.Constant]:
    for one in ast.walk(value):
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and STANDARD.search(one.value):
            yield one
