"""The parts of a setup.py that may run on this system, and whether a condition decides it. Nothing is run."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Words of a condition that holds on another system, or with another maker's GPUs.
ELSEWHERE = frozenset({"win32", "windows", "nt", "darwin", "cygwin", "hip", "rocm", "mps", "musa", "npu", "mlu", "xpu"})
LINUX = frozenset({"linux", "posix"})
WORD = re.compile(r"[a-z0-9]+")
STOPS = frozenset({"exit", "_exit", "abort", "quit"})
Block = list[ast.stmt]


def named(function: ast.expr) -> str:
    """The last part of a function's name, empty where it has none."""
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def here(tree: ast.Module) -> Iterator[tuple[ast.AST, int | None]]:
    """(node, the line of the outermost condition that decides whether it runs, None where it always does).

    In the order of the text; what runs only on another system, or for another maker's GPUs, and functions that nothing
    names are left out.
    """
    used = {named(one) for one in ast.walk(tree) if isinstance(one, (ast.Name, ast.Attribute))}
    waiting: list[tuple[ast.AST, int | None]] = [(tree, None)]
    while waiting:
        node, group = waiting.pop()
        if isinstance(node, ast.FunctionDef) and node in tree.body and node.name not in used:
            continue
        yield node, group
        under = group if group is not None else getattr(node, "lineno", None)
        inner: Iterable[tuple[ast.AST, int | None]]
        match node:
            case ast.If() | ast.IfExp():
                other = elsewhere(node.test)
                under = group if other is not None else under
                inner = [(node.test, group)]
                inner += [(one, under) for one in _list(node.body) if other is not True]
                inner += [(one, under) for one in _list(node.orelse) if other is not False]
            case ast.Match():
                inner = [(node.subject, group)]
                inner += [
                    (one, under) for case in node.cases if not _words(case.pattern) & ELSEWHERE for one in case.body
                ]
            case ast.Try(handlers=[_, *_]):
                inner = [(one, under) for one in (*node.body, *node.handlers, *node.orelse)]
                inner += [(one, group) for one in node.finalbody]
            case ast.Subscript(value=ast.Dict()):  # a choice from a table
                inner = [(node.slice, group), (node.value, under)]
            case _:
                inner = [(one, group) for one in ast.iter_child_nodes(node)]
        waiting += reversed([*inner])


def _list(body: ast.expr | Block) -> list[ast.AST]:
    return [*body] if isinstance(body, list) else [body]


def _words(node: ast.AST) -> set[str]:
    return set(WORD.findall(ast.unparse(node).lower()))


def elsewhere(test: ast.expr) -> bool | None:
    """True where a condition holds only elsewhere, False where it always holds here, None where that is not known."""
    known: bool | None
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            known = _not(elsewhere(inner))
        case ast.BoolOp(op=operator, values=values):
            told = [elsewhere(one) for one in values]
            decides = isinstance(operator, ast.And)
            known = decides if decides in told else None if None in told else not decides
        case ast.Compare(ops=[ast.NotEq() | ast.NotIn() as operator]):
            same = ast.In() if isinstance(operator, ast.NotIn) else ast.Eq()
            known = _not(elsewhere(ast.Compare(left=test.left, ops=[same], comparators=test.comparators)))
        case ast.Compare(ops=[ast.In()]) if _words(test.comparators[0]) & LINUX:
            known = False
        case ast.Compare(ops=[ast.Is() | ast.Eq()], comparators=[ast.Constant(value=None | False)]):
            known = False if _foreign(test) else None
        case _:
            known = False if _linux(test) else True if _foreign(test) else None
    return known


def _not(known: bool | None) -> bool | None:  # noqa: FBT001
    return None if known is None else not known


def _foreign(test: ast.expr) -> bool:
    return not ELSEWHERE.isdisjoint(_words(test))


def _linux(test: ast.expr) -> bool:
    """Whether a condition asks for Linux, and for nothing else."""
    words = _words(test)
    return bool(words & LINUX) and bool(words & {"platform", "system", "os"}) and not words & ELSEWHERE


def imports(tree: ast.Module, module: str) -> bool | None:
    """Whether a setup.py imports a module whenever it runs; None where a condition, or its absence, decides it."""
    functions = {node.name: node.body for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
            functions |= {f"{node.name}.{one.name}": one.body for one in methods}
    if _sure(tree.body, module, functions, frozenset()):
        return True
    return None if _maybe(tree.body, module, functions, frozenset()) else False


def _imports(node: ast.AST, module: str) -> bool:
    match node:
        case ast.Import(names=names):
            return any(one.name.partition(".")[0] == module for one in names)
        case ast.ImportFrom(module=str(name), level=0):
            return name.partition(".")[0] == module
        case ast.Call(func=function, args=[ast.Constant(value=str(name)), *_]):
            return named(function) in {"import_module", "__import__"} and name.partition(".")[0] == module
    return False


def _sure(body: Iterable[ast.stmt], module: str, functions: dict[str, Block], entered: frozenset[str]) -> bool:
    """Whether these statements import a module whenever they run, in functions that they call too."""

    def within(inner: Iterable[ast.stmt]) -> bool:
        return _sure(inner, module, functions, entered)

    for node in body:
        match node:
            case ast.If(test=test, body=then, orelse=other):
                known = False if _always(test) else elsewhere(test)
                if known is not None:
                    found = within(other if known else then)
                else:
                    # A branch that stops leaves the other one as what a build runs.
                    branches = [one for one in (then, other) if not _stops(one)]
                    found = bool(branches) and all(map(within, branches))
            case ast.Try(body=inner, handlers=handlers, finalbody=last):
                needed = all(_stops(one.body) for one in handlers)
                found = (needed and within(inner)) or within(last)
            case ast.With(body=inner) | ast.ClassDef(body=inner):
                found = within(inner)
            case ast.FunctionDef() | ast.For() | ast.While():
                found = False
            case _:
                imported, called = _does(node, module, _run(node))
                names = [name for name in called if name in functions and name not in entered]
                found = imported or any(_sure(functions[name], module, functions, entered | {name}) for name in names)
        if found:
            return True
    return False


def _maybe(body: Iterable[ast.stmt], module: str, functions: dict[str, Block], entered: frozenset[str]) -> bool:
    """Whether these statements may import a module, and what is built depends on it."""
    for node in body:
        match node:
            case ast.If(test=test, body=then, orelse=other):
                known = elsewhere(test)
                inner = [*(then if known is not True else ()), *(other if known is not False else ())]
            case ast.Try():
                # An import whose absence is caught matters where the extensions are made beside it.
                inner = [*node.body, *node.orelse] if "Extension" in ast.unparse(node) else []
                inner += node.finalbody
            case ast.ClassDef(bases=bases):  # a command of setuptools that a build runs
                inner = [one for part in node.body for one in (part.body if isinstance(part, ast.FunctionDef) else ())]
                inner = inner if bases else []
            case ast.With(body=inner) | ast.For(body=inner) | ast.While(body=inner):
                pass
            case ast.FunctionDef():
                inner = []
            case _:
                imported, called = _does(node, module, _run(node, choices=True))
                if imported:
                    return True
                names = [name for name in called if name in functions and name not in entered]
                if any(_maybe(functions[name], module, functions, entered | {name}) for name in names):
                    return True
                continue
        if _maybe(inner, module, functions, entered):
            return True
    return False


def _does(node: ast.stmt, module: str, run: Iterable[ast.AST]) -> tuple[bool, set[str]]:
    """(whether a statement imports a module itself, what it calls) of the expressions that it runs."""
    every = [node, *run]
    calls = {ast.unparse(one.func) for one in every if isinstance(one, ast.Call)}
    return any(_imports(one, module) for one in every), calls


def _stops(body: Block) -> bool:
    """Whether statements end the build: by what they raise, or by leaving the program."""
    match body[-1:]:
        case [ast.Raise()]:
            return True
        case [ast.Expr(value=ast.Call(func=function))]:
            return named(function) in STOPS
    return False


def _always(test: ast.expr) -> bool:
    """Whether a condition holds in every build: a constant, or `__name__ == "__main__"`."""
    return isinstance(test, ast.Constant) or "__name__" in ast.unparse(test)


def _run(node: ast.stmt, *, choices: bool = False) -> Iterator[ast.AST]:
    """The expressions that a statement surely evaluates, or (`choices`) may evaluate."""
    waiting = [*ast.iter_child_nodes(node)]
    while waiting:
        one = waiting.pop()
        if not isinstance(one, (ast.Lambda, ast.stmt)) and (choices or not isinstance(one, ast.IfExp)):
            yield one
            waiting += ast.iter_child_nodes(one)
