"""What a setup.py says, by its syntax tree: it is never run."""

from __future__ import annotations

import ast
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wheelmill.doctor_facts import Architectures, Standard, Stated
from wheelmill.project import COMPILED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

STANDARD = re.compile(r"-std=(?:c|gnu)\+\+(\w+)")
VALUES = {"03": 3, "98": 3, "0x": 11, "1y": 14, "1z": 17, "2a": 20, "2b": 23, "2c": 26}
TARGET = re.compile(r"(compute|sm|lto)_(\d{2,3}[af]?)(?!\d)")
FLAG = re.compile(r"-?-(gencode|gpu-architecture|arch)\b|arch=(compute|sm)_|code=\[?(sm|compute|lto)_")
CODE = re.compile(r"\bcode=")
FORCE = "FORCE_CUDA"
LIST = "TORCH_CUDA_ARCH_LIST"
GLOBBED = 2000


@dataclass(slots=True)
class Setup:
    """What a setup.py says. `extensions` are the sources of each extension, `computed` whether some are not literal.

    `conditional` is what decides whether CUDA code is built: FORCE_CUDA, or torch.cuda.is_available.
    """

    imports_torch: bool = False
    cuda: bool = False
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
    stated = CODE.search(text)
    found = TARGET.findall(text[stated.end() :] if stated else text)
    sass = tuple(dict.fromkeys(number for kind, number in found if kind == "sm"))
    ptx = tuple(dict.fromkeys(number for kind, number in found if kind == "compute"))
    # -arch=sm_80 alone is short for SASS and PTX of it.
    return sass, ptx if stated or ptx else sass


def read(source: bytes, name: str, root: Path) -> Setup:
    """The facts of a setup.py. Raises SyntaxError or ValueError where Python itself would not take it."""
    tree = ast.parse(source, name)
    told = Setup(imports_torch=_imports(tree.body))
    for node in ast.walk(tree):
        match node:
            case ast.Call():
                _call(node, told, root, name)
            case ast.Attribute(attr="is_available", value=ast.Attribute(attr="cuda")):
                told.conditional = told.conditional or "torch.cuda.is_available()"
            case ast.Constant(value=str(text)) if text == FORCE:
                told.conditional = FORCE
            case ast.Constant(value=str(text)):
                _text(text, name, node.lineno, told)
            case ast.Assign(
                targets=[ast.Subscript(slice=ast.Constant(value=key))], value=ast.Constant(value=str(text))
            ):
                if key == LIST:
                    told.architectures.append(listed(text, name, node.lineno))
    return told


def _imports(body: Iterable[ast.stmt]) -> bool:
    """Whether these statements import torch whenever they run: not in a function, nor where its absence is caught."""
    for node in body:
        match node:
            case ast.Import(names=names):
                found = any(one.name.partition(".")[0] == "torch" for one in names)
            case ast.ImportFrom(module=str(module), level=0):
                found = module.partition(".")[0] == "torch"
            case ast.If(body=inner) | ast.With(body=inner):
                found = _imports(inner)
            case _:
                found = False
        if found:
            return True
    return False


def listed(text: str, file: str, line: int) -> Architectures:
    """A TORCH_CUDA_ARCH_LIST that a file sets."""
    words = [word for word in re.split(r"[;\s]+", text) if word]
    plain = [word.removesuffix("+PTX").replace(".", "") for word in words]
    known = [word for word in plain if re.fullmatch(r"\d{2,3}[af]?", word)]
    ptx = tuple(one for word, one in zip(words, plain, strict=True) if word.endswith("+PTX") and one in known)
    return Architectures(text=f"{LIST}={text}", file=file, line=line, sass=tuple(known), ptx=ptx)


def _text(text: str, name: str, line: int, told: Setup) -> None:
    if "\n" in text:  # a text for people
        return
    for match in STANDARD.finditer(text):
        value = standard(match[1])
        if value is not None:
            told.standards.append(Standard(text=match[0], file=name, line=line, value=value))
    if FLAG.search(text) and TARGET.search(text):
        sass, ptx = targets(text)
        told.architectures.append(Architectures(text=text[:200], file=name, line=line, sass=sass, ptx=ptx))


def _call(node: ast.Call, told: Setup, root: Path, name: str) -> None:
    function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    told.cuda |= function == "CUDAExtension"
    keywords = {one.arg: one.value for one in node.keywords}
    if function.endswith("Extension") and function != "BuildExtension":
        stated = keywords.get("sources") or (node.args[1] if len(node.args) > 1 else None)
        sources = tuple(dict.fromkeys(_sources(stated, root))) if stated is not None else ()
        told.computed |= not isinstance(stated, ast.List) or len(stated.elts) != len(sources)
        told.extensions.append(sources)
        told.cuda |= any(one.endswith(".cu") for one in sources)
    if function == "setup" and isinstance(wanted := keywords.get("install_requires"), (ast.List, ast.Tuple)):
        for one in wanted.elts:
            if isinstance(one, ast.Constant) and isinstance(one.value, str):
                told.install_requires.append(Stated(text=one.value, file=name, line=one.lineno))


def _sources(node: ast.AST, root: Path) -> Iterator[str]:
    """The files of compiled code that an expression names, those of a glob's pattern too."""
    for one in ast.walk(node):
        if not isinstance(one, ast.Constant) or not isinstance(one.value, str) or not one.value.endswith(COMPILED):
            continue
        text = os.path.normpath(one.value)
        if not {"*", "?", "["} & set(text) or os.path.isabs(text):  # noqa: PTH117
            yield text
            continue
        for count, path in enumerate(root.glob(text)):
            if count == GLOBBED:
                break
            yield path.relative_to(root).as_posix()


def collisions(sources: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Pairs of sources that setuptools and torch's BuildExtension give one object: the same path but for its suffix."""
    first: dict[str, str] = {}
    for one in sources:
        stem = os.path.splitext(one)[0]  # noqa: PTH122
        other = first.setdefault(stem, one)
        if other != one:
            yield other, one
