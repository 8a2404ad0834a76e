"""Matrix and facts → the cells that exist, and why the others do not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelmill.document import Problem, raise_all
from wheelmill.model import Cell, Drop, python_tag
from wheelmill.names import cuda_key, did_you_mean, listing
from wheelmill.targets import check_sm

if TYPE_CHECKING:
    from wheelmill.choice import Choice
    from wheelmill.facts import Facts, Torch
    from wheelmill.matrix import Matrix


@dataclass(frozen=True, kw_only=True, slots=True)
class Resolved:
    """Cells and drops, in canonical order: CUDA with cpu first, then torch, then Python."""

    cells: tuple[Cell, ...]
    drops: tuple[Drop, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Span:
    """What the matrix spans, each in canonical order."""

    cuda: tuple[str, ...]
    torch: tuple[Torch, ...]
    python: tuple[str, ...]


def resolve(matrix: Matrix, facts: Facts) -> Resolved:
    """The cells of the matrix that torch offers. A combination inside a range that does not exist is dropped.

    Raises one InputError that tells every problem: a name that does not exist; a range with nothing in it;
    a value that the matrix names and no cell has; a GPU target that a toolkit does not compile for.
    """
    problems = _unknown(matrix, facts)
    raise_all(problems)
    span = _span(matrix, facts)
    problems = _empty_ranges(matrix, facts, span) or _unserved(matrix, facts, span)
    problems += check_sm(matrix, facts)
    raise_all(problems)
    return _combine(span)


def _span(matrix: Matrix, facts: Facts) -> _Span:
    torch = tuple(facts.torch[minor] for minor in matrix.torch.among(facts.torch))
    offered = facts.pythons
    return _Span(cuda=tuple(sorted(matrix.cuda, key=cuda_key)), torch=torch, python=matrix.python.among(offered))


def _combine(span: _Span) -> Resolved:
    cells: list[Cell] = []
    drops: list[Drop] = []
    for cuda in span.cuda:
        for torch in span.torch:
            if cuda not in torch.cuda:
                drops.append(Drop(id=f"{cuda}-torch{torch.minor}", reason=_no_cuda(torch, cuda)))
                continue
            offered = frozenset(torch.python)
            for python in span.python:
                if python in offered:
                    cells.append(Cell(cuda=cuda, torch=torch.minor, python=python))
                else:
                    at = f"{cuda}-torch{torch.minor}-{python_tag(python)}"
                    drops.append(Drop(id=at, reason=_no_python(torch, python)))
    return Resolved(cells=tuple(cells), drops=tuple(drops))


def _no_cuda(torch: Torch, cuda: str) -> str:
    has = listing(tag for tag in torch.cuda if tag != "cpu")
    return f"torch {torch.minor} has no {cuda} build (it has {has})"


def _no_python(torch: Torch, python: str) -> str:
    return f"torch {torch.minor} has no build for Python {python} (it has {listing(torch.python)})"


def _problem(matrix: Matrix, key: str, what: str, remedy: str) -> Problem:
    return Problem(file=str(matrix.path), line=matrix.line(key), key=key, what=what, remedy=remedy)


def _unknown(matrix: Matrix, facts: Facts) -> list[Problem]:
    """Names that the tables do not know."""
    tags = tuple(tag for tag in facts.tags if tag == "cpu" or tag in facts.cuda)
    named = (
        ("torch", "torch release", matrix.torch.listed, tuple(facts.torch)),
        ("cuda", "CUDA variant", matrix.cuda, tags),
        ("python", "Python", matrix.python.listed, facts.pythons),
    )
    found = [
        _problem(
            matrix,
            f"{key}[{position}]",
            f'the tables of facts know no {what} "{name}".',
            f"{did_you_mean(name, known)} More can be named under `facts`.",
        )
        for key, what, names, known in named
        for position, name in enumerate(names)
        if name not in known
    ]
    floor = matrix.stable_from
    if floor is not None and floor not in facts.torch:
        remedy = f"{did_you_mean(floor, tuple(facts.torch))} The wheel is built with that release's headers."
        found.append(_problem(matrix, "abi.torch", f'the tables of facts know no torch release "{floor}".', remedy))
    return found


def _empty_ranges(matrix: Matrix, facts: Facts, span: _Span) -> list[Problem]:
    """Ranges that nothing lies in."""
    found: list[Problem] = []
    for choice, chosen, known, what in (
        (matrix.torch, span.torch, tuple(facts.torch), "torch release"),
        (matrix.python, span.python, facts.pythons, "Python that torch was built for"),
    ):
        if not chosen:
            origin = "" if choice.key else " (the project's requires-python)"
            key = choice.key or "python"
            message = f'no {what} lies in "{choice.range}"{origin}.'
            found.append(_problem(matrix, key, message, f"Known: {listing(known)}."))
    return found


def _unserved(matrix: Matrix, facts: Facts, span: _Span) -> list[Problem]:
    """Values that the matrix names one by one and that are in no cell; each cause is told once."""
    tags = {tag for torch in span.torch for tag in torch.cuda}
    pythons = {python for torch in span.torch for python in torch.python}
    found = [
        _cuda_unserved(matrix, facts, span, position) for position, tag in enumerate(matrix.cuda) if tag not in tags
    ]
    found += [
        _python_unserved(matrix, facts, span, position)
        for position, python in enumerate(matrix.python.listed)
        if python not in pythons
    ]
    return found or _torches_unserved(matrix, facts, span) or _pairs_unserved(matrix, facts, span)


def _torches_unserved(matrix: Matrix, facts: Facts, span: _Span) -> list[Problem]:
    """Releases listed that have no CUDA variant and no Python of the matrix."""
    found: list[Problem] = []
    for position, minor in enumerate(matrix.torch.listed):
        torch = facts.torch[minor]
        key = f"torch[{position}]"
        if set(span.cuda).isdisjoint(torch.cuda):
            asked = listing(matrix.cuda)
            has = listing(torch.cuda)
            what = f"torch {minor} has none of the CUDA variants asked for ({asked}); it has {has}."
            remedy = f"Add one of these to `cuda`, or remove torch {minor}."
            found.append(_problem(matrix, key, what, remedy))
        elif set(span.python).isdisjoint(torch.python):
            what = f"no Python in {_range(matrix.python)} has a build of torch {minor}."
            remedy = f"It has {listing(torch.python)}: widen `python`, or remove torch {minor}."
            found.append(_problem(matrix, key, what, remedy))
    return found


def _pairs_unserved(matrix: Matrix, facts: Facts, span: _Span) -> list[Problem]:
    """CUDA variants and Pythons that each exist for some release, but not for the same one."""
    usable = [torch for torch in span.torch if not set(span.python).isdisjoint(torch.python)]
    served = [torch for torch in usable if not set(span.cuda).isdisjoint(torch.cuda)]
    found: list[Problem] = []
    for position, tag in enumerate(matrix.cuda):
        if any(tag in torch.cuda for torch in usable):
            continue
        having = [torch for torch in span.torch if tag in torch.cuda]
        pythons = listing(dict.fromkeys(python for torch in having for python in torch.python))
        named = listing(torch.minor for torch in having)
        asked = _range(matrix.python)
        what = f"{tag} exists for torch {named} alone, which no Python in {asked} has a build of."
        remedy = f"Widen `python` (there are builds for {pythons}), or remove {tag}."
        found.append(_problem(matrix, f"cuda[{position}]", what, remedy))
    for position, python in enumerate(matrix.python.listed):
        if not found and not any(python in torch.python for torch in served):
            found.append(_python_unserved(matrix, facts, span, position))
    return found


def _cuda_unserved(matrix: Matrix, facts: Facts, span: _Span, position: int) -> Problem:
    cuda = matrix.cuda[position]
    having = [minor for minor, torch in facts.torch.items() if cuda in torch.cuda]
    chosen = [torch.minor for torch in span.torch]
    if len(chosen) == 1:
        what = _no_cuda(span.torch[0], cuda)
    else:
        what = f"none of the chosen torch releases ({listing(chosen)}) has a {cuda} build"
    remedy = f"{cuda} was built for torch {listing(having)}: choose one of these under `torch`, or remove {cuda}."
    return _problem(matrix, f"cuda[{position}]", f"{what}.", remedy)


def _python_unserved(matrix: Matrix, facts: Facts, span: _Span, position: int) -> Problem:
    python = matrix.python.listed[position]
    having = [minor for minor, torch in facts.torch.items() if python in torch.python]
    if len(span.torch) == 1:
        what = _no_python(span.torch[0], python)
    else:
        what = f"no cell of the chosen torch releases and CUDA variants has Python {python}"
    remedy = f"Python {python} is served by torch {listing(having)}: choose one of these, or remove {python}."
    return _problem(matrix, f"python[{position}]", f"{what}.", remedy)


def _range(choice: Choice) -> str:
    """The Pythons chosen, in a message's words."""
    if choice.listed:
        return listing(choice.listed)
    if not choice.range:
        return "any version"
    return f'"{choice.range}"' if choice.key else f'"{choice.range}" (the project\'s requires-python)'
