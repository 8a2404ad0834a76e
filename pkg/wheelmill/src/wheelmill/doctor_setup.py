"""What a setup.py says, by its syntax tree: it is never run."""

from __future__ import annotations

import ast
import contextlib
import itertools
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wheelmill.doctor_branches import here, imports
from wheelmill.doctor_facts import Architectures, Standard, Stated
from wheelmill.project import COMPILED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

STANDARD = re.compile(r"-std=(?:c|gnu)\+\+(\w+)")
VALUES = {"03": 3, "98": 3, "0x": 11, "1y": 14, "1z": 17, "2a": 20, "2b": 23, "2c": 26}
TARGET = re.compile(r"(compute|sm|lto)_(\d{2,3}[af]?)(?!\d)")
FLAG = re.compile(r"-?-(gencode|gpu-architecture|arch)\b|arch=(compute|sm)_|code=\[?(sm|compute|lto)_")
CODE = re.compile(r"\bcode=[\"'\[]*((?:(?:compute|sm|lto)_\d{2,3}[af]?,?)+)")
FORCE = "FORCE_CUDA"
SEEN = "torch.cuda.is_available()"
LIST = "TORCH_CUDA_ARCH_LIST"
# What a condition on a GPU decides where it decides the build: sources, an extension, or that the build stops.
DECIDES = re.compile(r"(?i)extension|sources|\.cuh?\b|with_cuda|\braise\b|\bexit\(")
OF_TORCH = frozenset({"CUDAExtension", "CppExtension"})
GLOBBED = 2000


@dataclass(slots=True)
class Setup:
    """What a setup.py says. `extensions` are the sources of each extension, `computed` whether some are not literal.

    `imports_torch` is True, or None where a condition decides it. `conditional` is what decides whether CUDA code is
    built: FORCE_CUDA, or torch.cuda.is_available(). `builder` is whether torch's own build_ext compiles, `ninja`
    whether that may use ninja, `certain` whether it surely compiles CUDA code for targets that
    torch finds, `flagged` whether some flag names targets, `cmake` whether CMake is called.
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
    told = Setup(cmake=bool(re.search(rb"(?i)cmake|skbuild", source)))
    told.imports_torch = imports(tree.body, "torch") or (None if imports(tree.body, "torch", sure=False) else False)
    values = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    strange = _strange(tree)
    groups: dict[int, list[Standard]] = {}
    for node, group in here(tree):
        if id(node) in strange:
            continue
        match node:
            case ast.Call():
                _call(node, told, root, name, values)
                told.certain |= group is None and _named(node.func) == "CUDAExtension"
            case ast.Constant(value=str(text)):
                groups.setdefault(group or 0, []).extend(_text(text, name, node.lineno, told, sure=group is None))
            case ast.If() | ast.IfExp() | ast.Assign() | ast.Return():
                _condition(node, told)
        _builder(node, told)
        _list(node, name, told)
    # With a flag that names a target, torch looks for none itself.
    told.certain &= not told.flagged
    for stated in groups.values():
        # Of what a condition chooses from, a new torch gets the newest.
        newest = max((one.value for one in stated), default=0)
        told.standards += [one for one in stated if one.sure or one.value == newest]
    told.standards.sort(key=lambda one: one.line)
    return told


def _builder(node: ast.AST, told: Setup) -> None:
    """Whether torch's own build_ext compiles, and may use ninja."""
    match node:
        case ast.ImportFrom(module="torch.utils.cpp_extension", names=names):
            told.builder |= any(one.name == "BuildExtension" for one in names)
        case ast.Attribute(attr="BuildExtension"):
            told.builder = True
        case ast.keyword(arg="use_ninja", value=ast.Constant(value=False)):
            told.ninja = False


def _named(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _strange(tree: ast.Module) -> frozenset[int]:
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
        if isinstance(node, ast.ClassDef) and any(_named(base) in plain for base in node.bases):
            plain.add(node.name)
    plain -= assigned
    if not any(_named(call.func) in OF_TORCH for call in calls):
        return frozenset()
    theirs = [call for call in calls if _named(call.func) in plain]
    inside = {id(one) for call in theirs for one in ast.walk(call)}
    loads = [one for one in ast.walk(tree) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)]
    only = {one.id for one in loads if id(one) in inside} - {one.id for one in loads if id(one) not in inside}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(isinstance(one, ast.Name) and one.id in only for one in node.targets):
            inside |= {id(one) for one in ast.walk(node.value)}
    return frozenset(inside)


def _condition(node: ast.If | ast.IfExp | ast.Assign | ast.Return, told: Setup) -> None:
    """Whether a condition on a GPU decides what is built: in its branches, or by a name that keeps it for later."""
    if isinstance(node, (ast.If, ast.IfExp)):
        asked: ast.AST | None = node.test
        branches = [*node.body, *node.orelse] if isinstance(node, ast.If) else [node.body, node.orelse]
        if not any(DECIDES.search(ast.unparse(one)) for one in branches):
            return
    else:
        asked = node.value
    for one in ast.walk(asked) if asked is not None else ():
        if isinstance(one, ast.Attribute) and one.attr == "is_available" and _named(one.value) == "cuda":
            told.conditional = told.conditional or SEEN


def _list(node: ast.AST, name: str, told: Setup) -> None:
    """A TORCH_CUDA_ARCH_LIST that is set in the environment; an empty one is no pin."""
    match node:
        case ast.Assign(
            targets=[ast.Subscript(slice=ast.Constant(value=key))], value=ast.Constant(value=str(text))
        ) if key == LIST and text.strip():
            told.architectures.append(listed(text, name, node.lineno))


def listed(text: str, file: str, line: int) -> Architectures:
    """A TORCH_CUDA_ARCH_LIST that a file sets."""
    words = [word for word in re.split(r"[;\s]+", text) if word]
    plain = [word.removesuffix("+PTX").replace(".", "") for word in words]
    known = [word for word in plain if re.fullmatch(r"\d{2,3}[af]?", word)]
    ptx = tuple(one for word, one in zip(words, plain, strict=True) if word.endswith("+PTX") and one in known)
    return Architectures(text=f"{LIST}={text}", file=file, line=line, sass=tuple(known), ptx=ptx)


def _text(text: str, name: str, line: int, told: Setup, *, sure: bool) -> Iterator[Standard]:
    """The standards that a text of setup.py pins; its targets go to what is told."""
    if text == FORCE:
        told.conditional = FORCE
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


def _call(node: ast.Call, told: Setup, root: Path, name: str, values: dict[str, ast.expr]) -> None:
    function = _named(node.func)
    told.cuda |= function == "CUDAExtension"
    keywords = {one.arg: one.value for one in node.keywords}
    if function.endswith("Extension") and function != "BuildExtension":
        stated = keywords.get("sources") or (node.args[1] if len(node.args) > 1 else None)
        every = [*_sources(stated, root)]
        sources = tuple(dict.fromkeys(one for one in every if one is not None))
        told.computed |= None in every
        told.extensions.append(sources)
        told.cuda |= any(one.endswith(".cu") for one in sources)
    if function == "setup":
        wanted = keywords.get("install_requires")
        wanted = values.get(wanted.id) if isinstance(wanted, ast.Name) else wanted
        for one in wanted.elts if isinstance(wanted, (ast.List, ast.Tuple)) else ():
            if isinstance(one, ast.Constant) and isinstance(one.value, str):
                told.install_requires.append(Stated(text=one.value, file=name, line=one.lineno))


def _sources(node: ast.expr | None, root: Path) -> Iterator[str | None]:
    """The files of compiled code that an expression names, those of a glob's pattern too; None for what is computed."""
    match node:
        case ast.Constant(value=str(text)):
            if text.endswith(COMPILED):
                yield os.path.normpath(text)
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            for one in parts:
                yield from _sources(one, root)
        case ast.BinOp(left=left, op=ast.Add(), right=right) if not isinstance(left, ast.Constant):
            yield from _sources(left, root)
            yield from _sources(right, root)
        case ast.Call(func=function, args=[one]) if _named(function) in {"sorted", "list", "str"}:
            yield from _sources(one, root)
        case ast.Call(func=function, args=parts) if _named(function) in {"join", "glob", "iglob"}:
            texts = [one.value for one in parts if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            if len(texts) != len(parts):
                yield None
            elif _named(function) == "join":
                yield os.path.normpath("/".join(texts))
            else:
                yield from _globbed(texts[0] if texts else "", root)
        case _:
            yield None


def _globbed(pattern: str, root: Path) -> Iterator[str]:
    with contextlib.suppress(ValueError, NotImplementedError):  # what pathlib does not take, and files outside
        for path in itertools.islice(root.glob(os.path.normpath(pattern)), GLOBBED):
            if path.name.endswith(COMPILED):
                yield path.relative_to(root).as_posix()


def collisions(sources: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Pairs of sources that setuptools and torch's BuildExtension give one object: the same path but for its suffix."""
    first: dict[str, str] = {}
    for one in sources:
        stem = os.path.splitext(one)[0]  # noqa: PTH122
        other = first.setdefault(stem, one)
        if other != one:
            yield other, one
