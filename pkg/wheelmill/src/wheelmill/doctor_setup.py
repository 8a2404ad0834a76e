"""What a setup.py says, by its syntax tree: it is never run."""

from __future__ import annotations

import ast
import contextlib
import itertools
import os
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from wheelmill.doctor_branches import here, imports, named
from wheelmill.doctor_facts import Architectures, Standard, Stated
from wheelmill.doctor_names import FLAG, MOST, STANDARD, WORDS, Name, choices, flags, names, strange, words
from wheelmill.project import COMPILED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

VALUES = {"03": 3, "98": 3, "0x": 11, "1y": 14, "1z": 17, "2a": 20, "2b": 23, "2c": 26}
TARGET = re.compile(r"(compute|sm|lto)_(\d{2,3}[af]?)(?!\d)")
CODE = re.compile(r"\bcode=[\"'\[]*((?:(?:compute|sm|lto)_\d{2,3}[af]?,?)+)")
FORCE = "FORCE_CUDA"
SEEN = "torch.cuda.is_available()"
LIST = "TORCH_CUDA_ARCH_LIST"
# What a condition on a GPU decides where it decides the build: sources, an extension, or that the build stops.
DECIDES = re.compile(r"(?i)extension|sources|\.cuh?\b|with_cuda|\braise\b|\bexit\(")
# What a setup.py may import that an isolated build has only where it is required.
MODULES = ("packaging", "pybind11", "numpy", "psutil", "Cython")


@dataclass(slots=True)
class Setup:
    """What a setup.py says. `extensions` are the sources of each extension, `computed` whether some are not literal.

    `imports_torch` is True, or None where a condition decides it. `conditional` is what decides whether CUDA code is
    built: FORCE_CUDA, or torch.cuda.is_available(). `builder` is whether torch's own build_ext compiles, `ninja`
    whether that may use ninja, `certain` whether it surely compiles CUDA code for targets that
    torch finds, `flagged` whether some flag names targets, `cmake` whether CMake is called. `guards` are the nodes
    under a condition that asks for TORCH_CUDA_ARCH_LIST, `listed` is whether the one that decides does, `modules` are
    those of MODULES that are surely imported.
    """

    imports_torch: bool | None = False
    cuda: bool = False
    certain: bool = False
    flagged: bool = False
    builder: bool = False
    ninja: bool = True
    cmake: bool = False
    computed: bool = False
    conditional: str | None = None
    extensions: list[tuple[str, ...]] = field(default_factory=list)
    standards: list[Standard] = field(default_factory=list)
    architectures: list[Architectures] = field(default_factory=list)
    install_requires: list[Stated] = field(default_factory=list)
    guards: set[int] = field(default_factory=set)
    listed: bool = False
    modules: tuple[str, ...] = ()


def standard(text: str) -> int | None:
    """The year of a C++ standard's name, `17` of `17`, `20` of `2a`; None for what is none."""
    return VALUES.get(text, int(text) if text.isdecimal() else None)


def targets(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(SASS, PTX) that nvcc's flags name: `-gencode=arch=compute_80,code=sm_80` → 80."""
    stated = CODE.findall(text)
    found = TARGET.findall(" ".join(stated) if stated else text)
    sass = tuple(dict.fromkeys(number for kind, number in found if kind == "sm"))
    ptx = tuple(dict.fromkeys(number for kind, number in found if kind == "compute"))
    # -arch=sm_80 alone is short for SASS and PTX of it.
    return sass, ptx if stated or ptx else sass


def read(source: bytes, name: str, root: Path) -> Setup:
    """The facts of a setup.py. Raises SyntaxError or ValueError where Python itself would not take it."""
    tree = ast.parse(source, name)
    told = Setup(cmake=bool(re.search(r"(?i)cmake|skbuild", ast.unparse(tree))))
    told.imports_torch = imports(tree, "torch")
    told.modules = tuple(one for one in MODULES if imports(tree, one))
    values = names(tree)
    aside = {*strange(tree), *words(tree)}
    chosen = choices(tree)
    groups: dict[object, list[Standard]] = {}
    for node, outer in here(tree):
        if isinstance(node, ast.Constant) and node.value == FORCE:
            told.conditional = FORCE
        if id(node) in aside:
            continue
        group = chosen.get(id(node), outer)
        match node:
            case ast.Call():
                _call(node, told, root, name, values)
                told.certain |= group is None and named(node.func) == "CUDAExtension"
            case ast.JoinedStr() | ast.List() | ast.Constant(value=str()):
                texts = [*flags(node, values)]
                aside |= {id(one) for one in ast.walk(node) if texts and isinstance(node, ast.JoinedStr)}
                for text in texts:
                    groups.setdefault(group, []).extend(_text(text, name, node.lineno, told, sure=group is None))
            case ast.If() | ast.IfExp() | ast.Assign() | ast.Return():
                _condition(node, told)
        _builder(node, told)
        _list(node, name, told, sure=group is None)
    # With a flag that names a target, torch looks for none itself.
    told.certain &= not told.flagged
    for stated in groups.values():
        # Of what a condition chooses from, a new torch gets the newest.
        newest = max((one.value for one in stated), default=0)
        told.standards += [one for one in stated if one.sure or one.value == newest]
    told.standards.sort(key=lambda one: one.line)
    if told.conditional == FORCE and any(_sets(node, FORCE) for node in ast.walk(tree)):
        told.conditional = None
    tests = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.BoolOp)]
    told.listed = any(LIST in test and (told.conditional or "") in test for test in tests)
    return told


def _sets(node: ast.AST, variable: str) -> bool:
    """Whether a statement sets a variable of the environment."""
    match node:
        case ast.Assign(targets=[ast.Subscript(slice=ast.Constant(value=key))]):
            return bool(key == variable)
    return False


def _builder(node: ast.AST, told: Setup) -> None:
    """Whether torch's own build_ext compiles, and may use ninja."""
    match node:
        case ast.ImportFrom(module="torch.utils.cpp_extension", names=names):
            told.builder |= any(one.name == "BuildExtension" for one in names)
        case ast.Attribute(attr="BuildExtension"):
            told.builder = True
        case ast.keyword(arg="use_ninja", value=ast.Constant(value=False)):
            told.ninja = False


def _condition(node: ast.If | ast.IfExp | ast.Assign | ast.Return, told: Setup) -> None:
    """Whether a condition on a GPU decides what is built: in its branches, or by a name that keeps it for later."""
    if isinstance(node, (ast.If, ast.IfExp)):
        asked: ast.AST | None = node.test
        branches = [*node.body, *node.orelse] if isinstance(node, ast.If) else [node.body, node.orelse]
        if not any(DECIDES.search(ast.unparse(one)) for one in branches if not _says(one)):
            return
    else:
        asked = node.value
    for one in ast.walk(asked) if asked is not None else ():
        if isinstance(one, ast.Attribute) and one.attr == "is_available" and named(one.value) == "cuda":
            told.conditional = told.conditional or SEEN


def _says(node: ast.AST) -> bool:
    """Whether a statement only says something to people."""
    said = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and named(node.value.func)
    return said in WORDS and said != "exit"


def _list(node: ast.AST, name: str, told: Setup, *, sure: bool) -> None:
    """A TORCH_CUDA_ARCH_LIST that is set in the environment, or a default for it; an empty one is no pin."""
    match node:
        case ast.If() if LIST in ast.unparse(node.test):
            told.guards |= {id(one) for one in ast.walk(node)}
        case ast.Call(func=function, args=[ast.Constant(value=key), ast.Constant(value=str(text))]) if key == LIST:
            if named(function) == "setdefault" and text.strip():
                told.architectures.append(replace(listed(text, name, node.lineno), sure=sure, default=True))
        case ast.Assign(targets=[ast.Subscript(slice=ast.Constant(value=key))], value=value) if key == LIST:
            default = id(node) in told.guards or LIST in ast.unparse(value)
            for one in ast.walk(value):
                if isinstance(one, ast.Constant) and isinstance(one.value, str) and re.match(r"\d+\.\d", one.value):
                    stated = listed(one.value, name, node.lineno)
                    told.architectures.append(replace(stated, sure=sure or default, default=default))


def listed(text: str, file: str, line: int) -> Architectures:
    """A TORCH_CUDA_ARCH_LIST that a file sets."""
    words = [word for word in re.split(r"[;\s]+", text) if word]
    plain = [word.removesuffix("+PTX").replace(".", "") for word in words]
    known = [word for word in plain if re.fullmatch(r"\d{2,3}[af]?", word)]
    ptx = tuple(one for word, one in zip(words, plain, strict=True) if word.endswith("+PTX") and one in known)
    return Architectures(text=f"{LIST}={text}", file=file, line=line, sass=tuple(known), ptx=ptx)


def _text(text: str, name: str, line: int, told: Setup, *, sure: bool) -> Iterator[Standard]:
    """The standards that a text of setup.py pins; its targets go to what is told."""
    if "\n" in text:  # a text for people
        return
    for match in STANDARD.finditer(text):
        value = standard(match[1])
        if value is not None:
            yield Standard(text=match[0], file=name, line=line, value=value, sure=sure)
    told.flagged |= "arch" in text and bool(FLAG.search(text))
    if FLAG.search(text) and TARGET.search(text):
        sass, ptx = targets(text)
        told.architectures.append(Architectures(text=text[:200], file=name, line=line, sure=sure, sass=sass, ptx=ptx))


def _call(node: ast.Call, told: Setup, root: Path, name: str, values: dict[str, Name]) -> None:
    function = named(node.func)
    told.cuda |= function == "CUDAExtension"
    keywords = {one.arg: one.value for one in node.keywords}
    if function.endswith("Extension") and function != "BuildExtension":
        stated = keywords.get("sources") or (node.args[1] if len(node.args) > 1 else None)
        every = [*_sources(stated, root, values)]
        sources = tuple(one for one in every if one is not None)
        told.computed |= None in every
        told.extensions.append(sources)
        told.cuda |= any(one.endswith(".cu") for one in sources)
    if function in {"setup", "dict"}:
        for text, line in _texts(keywords.get("install_requires"), values):
            told.install_requires.append(Stated(text=text, file=name, line=line))


def _texts(node: ast.expr | None, values: dict[str, Name]) -> Iterator[tuple[str, int]]:
    """(text, line) of each text in a list, also by a name, and in lists that are added."""
    match node:
        case ast.Constant(value=str(text)):
            yield text, node.lineno
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            for one in parts:
                yield from _texts(one, values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield from _texts(left, values)
            yield from _texts(right, values)
        case ast.Name(id=identifier):
            known = values.get(identifier, Name())
            for value in (*known.given, *known.added):
                yield from _texts(value, {**values, identifier: Name()})


def _sources(node: ast.expr | None, root: Path, values: dict[str, Name]) -> Iterator[str | None]:
    """The files of compiled code that an expression names, those of a glob's pattern too; None for what is computed.

    A name counts that is given a value once; of several values each may be for another case.
    """
    match node:
        case ast.Name(id=identifier) if identifier in values:
            known = values[identifier]
            for one in (*known.given, *known.added) if len(known.given) == 1 else (None,):
                yield from _sources(one, root, {**values, identifier: Name()})
        case ast.Constant(value=str(text)):
            if text.endswith(COMPILED):
                yield os.path.normpath(text)
        case (
            ast.List(elts=parts)
            | ast.Tuple(elts=parts)
            | ast.Call(func=ast.Name(id="sorted" | "list" | "str"), args=parts)
        ):
            for one in parts:
                yield from _sources(one, root, values)
        case ast.BinOp(left=left, op=ast.Add(), right=right) if not isinstance(left, ast.Constant):
            for one in (left, right):
                yield from _sources(one, root, values)
        case ast.Call(func=function, args=parts) if named(function) in {"join", "glob", "iglob"}:
            yield from _called(named(function), parts, root)
        case _:
            yield None


def _called(function: str, parts: list[ast.expr], root: Path) -> Iterator[str | None]:
    """What os.path.join or a glob makes of literal texts."""
    texts = [one.value for one in parts if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    if len(texts) != len(parts):
        yield None
    elif function == "join":
        yield os.path.normpath("/".join(texts))
    else:
        yield from _globbed(texts[0] if texts else "", root)


def _globbed(pattern: str, root: Path) -> Iterator[str]:
    with contextlib.suppress(ValueError, NotImplementedError):  # what pathlib does not take, and files outside
        for path in itertools.islice(root.glob(os.path.normpath(pattern)), MOST):
            if path.name.endswith(COMPILED):
                yield path.relative_to(root).as_posix()


def collisions(sources: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Pairs of sources that setuptools and torch's BuildExtension give one object: the same path but for its
    suffix, or one source twice.
    """
    first: dict[str, str] = {}
    for one in sources:
        stem = os.path.splitext(one)[0]  # noqa: PTH122
        if stem in first:
            yield first[stem], one
        first.setdefault(stem, one)
