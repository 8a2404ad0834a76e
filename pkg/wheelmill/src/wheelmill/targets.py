"""Which GPU targets a wheel is built for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelmill import arch
from wheelmill.document import Problem
from wheelmill.names import did_you_mean, listing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wheelmill.facts import Cuda, Facts
    from wheelmill.matrix import Matrix

_SETS = ("all", "all-major")


def sm_of(matrix: Matrix, facts: Facts, cuda: str, torches: Iterable[str]) -> tuple[str, ...]:
    """The targets of a wheel that serves `torches`, ascending; empty for cpu.

    `all` and `all-major` span the targets that the toolkit compiles for and that the torch builds served
    have kernels for; where no list of those is known, the toolkit's alone. Targets of one architecture or
    family may stand beside them (`[all-major, 9.0a]`). Expects a checked matrix.
    """
    if cuda == "cpu":
        return ()
    words = matrix.sm[_key(matrix, cuda)]
    named = [target for word in words for target in _named(facts, word)]
    if spans(matrix, cuda):
        toolkit = facts.cuda[cuda].sm
        known = {target.name for torch in torches for target in facts.torch[torch].sm.get(cuda, ())}
        both = [target for target in toolkit if target.name in known] if known else list(toolkit)
        whole = arch.all_of(both) if "all" in words else arch.all_major(both)
        named += filter(None, map(arch.parse, whole))
    return arch.merge(named)


def spans(matrix: Matrix, cuda: str) -> bool:
    """Whether the targets for `cuda` hold `all` or `all-major`, and so depend on what torch has."""
    return cuda != "cpu" and any(word in _SETS for word in matrix.sm[_key(matrix, cuda)])


def unknown_sm(facts: Facts, cuda: str, torches: Iterable[str]) -> tuple[str, ...]:
    """Those of `torches` whose own targets for `cuda` no table states."""
    return () if cuda == "cpu" else tuple(torch for torch in torches if cuda not in facts.torch[torch].sm)


def check_sm(matrix: Matrix, facts: Facts) -> list[Problem]:
    """Every word under `sm` that is no target, or that a toolkit of the matrix does not compile for."""
    found: list[Problem] = []
    for key, words in matrix.sm.items():
        for position, word in enumerate(words):
            at = f"sm.{key}[{position}]" if f"sm.{key}[{position}]" in matrix.lines else f"sm.{key}"
            others = map(arch.parse, (*words[:position], *words[position + 1 :]))
            wrong = _wrong_word(facts, word, whole=all(other is not None and other.suffix for other in others))
            if wrong is not None:
                found.append(_problem(matrix, at, *wrong))
                continue
            if word not in _SETS:
                found += _not_compiled(matrix, facts, key, at, word)
    return found


def _key(matrix: Matrix, cuda: str) -> str:
    return cuda if cuda in matrix.sm else "default"


def _named(facts: Facts, word: str) -> list[arch.Arch]:
    """The targets that a word or a generation's name stands for; none for an unknown word."""
    plain = word.removesuffix("+PTX")
    name = word if word in facts.arch_names else plain
    words = arch.split(facts.arch_names.get(name, word))
    return [target for target in map(arch.parse, words) if target is not None]


def _wrong_word(facts: Facts, word: str, *, whole: bool) -> tuple[str, str] | None:
    """What is wrong with the word whatever the toolkit, and the remedy. `whole`: nothing beside it is in a set."""
    if word == "native":
        return (
            "native means the GPU of the machine that builds, so the wheel would depend on the machine.",
            'Name the targets, such as "8.0" or "9.0+PTX", or write all-major.',
        )
    if word in _SETS:
        remedy = "Give it alone, or with targets such as 9.0a, which it does not hold, or list the targets."
        return None if whole else (f"{word} stands for a whole list.", remedy)
    if word in facts.arch_names or arch.parse(word) is not None:
        return None
    known = [*_SETS, *facts.arch_names, *_every_target(facts)]
    forms = 'Write a number such as "8.0", "9.0a" or "9.0+PTX", a name such as Hopper, all, or all-major.'
    near = did_you_mean(word, known)
    return f'"{word}" is no GPU target.', f"{near.split(' Known: ')[0]} {forms}" if "Did" in near else forms


def _every_target(facts: Facts) -> list[str]:
    return list(dict.fromkeys(target.name for cuda in facts.cuda.values() for target in cuda.sm))


def _not_compiled(matrix: Matrix, facts: Facts, key: str, at: str, word: str) -> list[Problem]:
    found: list[Problem] = []
    for cuda in matrix.cuda:
        if cuda == "cpu" or _key(matrix, cuda) != key:
            continue
        toolkit = facts.cuda[cuda]
        for target in _named(facts, word):
            if target.name not in toolkit.names:
                found.append(_problem(matrix, at, *_refusal(facts, toolkit, target, word, key)))
                break
    return found


def _refusal(facts: Facts, toolkit: Cuda, target: arch.Arch, word: str, key: str) -> tuple[str, str]:
    low, high = toolkit.sm[0].name, max(one for one in toolkit.sm if not one.suffix).name
    said = f'"{word}"' if word in (target.name, str(target)) else f'"{word}" ({target})'
    what = (
        f"CUDA {toolkit.minor} ({toolkit.tag}) does not compile for {said}: it knows {low} to {high} "
        f"({listing((one.name for one in toolkit.sm), limit=40)})."
    )
    compiling = [tag for tag in facts.tags if tag in facts.cuda and target.name in facts.cuda[tag].names]
    if not compiling:
        near = min(toolkit.sm, key=lambda one: (abs(one.order - target.order), one.suffix != target.suffix, one))
        return what, f"No CUDA variant of torch has it. The nearest here is {near.name}."
    own = f"give {toolkit.tag} its own list (sm: {{{toolkit.tag}: [...]}})"
    act = f"Remove it for {toolkit.tag}" if key == toolkit.tag else f"Remove it, or {own}"
    return what, f"{act}; CUDA variants that have it: {listing(compiling)}."


def _problem(matrix: Matrix, key: str, what: str, remedy: str) -> Problem:
    return Problem(file=str(matrix.path), line=matrix.line(key), key=key, what=what, remedy=remedy)
