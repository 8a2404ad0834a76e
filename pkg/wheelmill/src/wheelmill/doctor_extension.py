"""The tables of torch's own utils/cpp_extension.py, parsed and not run: its targets, the host compilers it takes."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


@dataclass(frozen=True, kw_only=True, slots=True)
class Tables:
    """The targets that TORCH_CUDA_ARCH_LIST may name, each with +PTX too, and the names that stand for some of them;
    the newest GCC and clang that the build takes, by the CUDA of its nvcc. Empty where the file holds none.
    """

    arches: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    gcc: Mapping[str, int] = field(default_factory=dict)
    clang: Mapping[str, int] = field(default_factory=dict)


def read(text: str) -> Tables:
    """The tables of that text; what is not of their form is left out."""
    try:
        found = dict(_assigned(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Tables()
    named = found.get("named_arches")
    pairs = _literal(named.args[0] if isinstance(named, ast.Call) and named.args else named)
    return Tables(
        arches=tuple(map(str, _literal(found.get("supported_arches")))),
        names={str(pair[0]): str(pair[1]) for pair in pairs if isinstance(pair, tuple) and len(pair) > 1},
        gcc=dict(_newest(found.get("CUDA_GCC_VERSIONS"))),
        clang=dict(_newest(found.get("CUDA_CLANG_VERSIONS"))),
    )


def _assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value


def _literal(node: ast.expr | None) -> Sequence[Any]:
    """The list that an expression spells out; else an empty one."""
    try:
        value = ast.literal_eval(node) if node is not None else ()
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return ()
    return value if isinstance(value, (list, tuple)) else ()


def _newest(node: ast.expr | None) -> Iterator[tuple[str, int]]:
    """(a CUDA, the newest major version of the compiler) of a table whose rows are `'13.0': (lowest, bound)`."""
    for key, row in zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ():
        match key, row:
            case ast.Constant(value=str(cuda)), ast.Tuple(elts=[_, bound]):
                major, *rest = (*_literal(bound), 0)
                # 14.0 is the first that is refused; 11.5, of torches before 2.0, the last that is taken.
                if isinstance(major, int) and major:
                    yield cuda, major if any(rest) else major - 1
