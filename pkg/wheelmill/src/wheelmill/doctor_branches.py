"""The parts of a setup.py that may run on this system, and whether a condition decides it. Nothing is run."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Words of a condition that holds on another system, or with another maker's GPUs.
ELSEWHERE = frozenset({"win32", "windows", "nt", "darwin", "cygwin", "hip", "rocm", "mps", "musa", "npu", "mlu", "xpu"})
WORD = re.compile(r"[a-z0-9]+")


def here(tree: ast.AST) -> Iterator[tuple[ast.AST, int | None]]:
    """(node, the line of the outermost condition that decides whether it runs, None where it always does).

    In the order of the text; what runs only on another system, or for another maker's GPUs, is left out.
    """
    waiting: list[tuple[ast.AST, int | None]] = [(tree, None)]
    while waiting:
        node, group = waiting.pop()
        yield node, group
        inner: Iterable[tuple[ast.AST, int | None]]
        if isinstance(node, (ast.If, ast.IfExp)):
            other = elsewhere(node.test)
            under = group if group is not None or other is not None else node.lineno
            inner = [(node.test, group)]
            inner += [(one, under) for one in _list(node.body) if other is not True]
            inner += [(one, under) for one in _list(node.orelse) if other is not False]
        else:
            inner = [(one, group) for one in ast.iter_child_nodes(node)]
        waiting += reversed(inner)


def _list(body: ast.expr | list[ast.stmt]) -> list[ast.AST]:
    return [*body] if isinstance(body, list) else [body]


def elsewhere(test: ast.expr) -> bool | None:
    """True where a condition holds only elsewhere, False where it always holds here, None where that is not known."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            known = elsewhere(inner)
            return None if known is None else not known
        case ast.BoolOp(op=operator, values=values):
            told = [elsewhere(one) for one in values]
            decides = isinstance(operator, ast.And)
            if decides in told:
                return decides
            return None if None in told else not decides
        case ast.Compare(ops=[ast.NotEq()], comparators=[ast.Constant(value=str())]):
            return False if _foreign(test) else None
        case ast.Compare(ops=[ast.Is() | ast.Eq()], comparators=[ast.Constant(value=None | False)]):
            return False if _foreign(test) else None
        case _:
            return True if _foreign(test) else None


def _foreign(test: ast.expr) -> bool:
    return not ELSEWHERE.isdisjoint(WORD.findall(ast.unparse(test).lower()))


def imports(body: Iterable[ast.stmt], module: str, *, sure: bool = True) -> bool:
    """Whether these statements import a module whenever they run, or (not `sure`) where a condition holds.

    An import whose absence is caught is none, nor is one in a function that is not called here.
    """
    statements = [*body]
    functions = {one.name: one.body for one in statements if isinstance(one, ast.FunctionDef)}
    for node in statements:
        match node:
            case ast.Import(names=names):
                found = any(one.name.partition(".")[0] == module for one in names)
            case ast.ImportFrom(module=str(name), level=0):
                found = name.partition(".")[0] == module
            case ast.If(test=test, body=inner):
                found = (not sure or _always(test)) and imports(inner, module, sure=sure)
            case ast.With(body=inner):
                found = imports(inner, module, sure=sure)
            case ast.FunctionDef() | ast.ClassDef() | ast.Try():
                found = False
            case _:
                called = _called(node, sure=sure) & set(functions)
                found = any(imports(functions[name], module, sure=sure) for name in called)
        if found:
            return True
    return False


def _always(test: ast.expr) -> bool:
    """Whether a condition holds in every build: a constant, or `__name__ == "__main__"`."""
    return isinstance(test, ast.Constant) or "__name__" in ast.unparse(test) or elsewhere(test) is False


def _called(node: ast.stmt, *, sure: bool) -> set[str]:
    """The functions that a statement calls itself; those that a condition may keep from it only where not `sure`."""
    found, waiting = set(), [*ast.iter_child_nodes(node)]
    while waiting:
        one = waiting.pop()
        if isinstance(one, (ast.Lambda, ast.stmt)) or (sure and isinstance(one, ast.IfExp)):
            continue
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name):
            found.add(one.func.id)
        waiting += ast.iter_child_nodes(one)
    return found
