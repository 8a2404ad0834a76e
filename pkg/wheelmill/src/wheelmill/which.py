"""The decision: an environment and the candidates of an index → which wheel, and the reasons for and against each.

Pure: everything that is read was read before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from wheelmill import which_fit, which_gpu, which_torch
from wheelmill.names import listing, version_key
from wheelmill.reasons import Reason, reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wheelmill.facts import Facts
    from wheelmill.which_candidate import Candidate
    from wheelmill.which_env import Environment

SHOWN = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """What of a project is asked for. `strict` takes no wheel of which something that decides is unknown."""

    project: str
    specifier: SpecifierSet = field(default_factory=SpecifierSet)
    pre: bool = False
    strict: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """A candidate and every reason about it."""

    candidate: Candidate
    reasons: tuple[Reason, ...]
    accepted: bool

    @property
    def against(self) -> tuple[Reason, ...]:
        return tuple(one for one in self.reasons if one.kind == "no")

    @property
    def distance(self) -> int:
        """How far the environment is from this wheel."""
        return sum(one.weight for one in self.against)

    def of(self, kind: str) -> tuple[Reason, ...]:
        return tuple(one for one in self.reasons if one.kind == kind)


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """The judged candidates, the best first; `choice` is the first where one is accepted."""

    environment: Environment
    wanted: Wanted
    judged: tuple[Judged, ...]

    @property
    def choice(self) -> Judged | None:
        return self.judged[0] if self.judged and self.judged[0].accepted else None


def decide(env: Environment, candidates: Sequence[Candidate], known: Facts, wanted: Wanted) -> Answer:
    """Judge every candidate: the accepted come first, by release, then measured, then nearest CUDA, then native code;
    where those are equal, as pip ranks tags.
    """
    judged = [judge(env, candidate, known, wanted) for candidate in candidates]
    ranked = sorted(judged, key=lambda one: _rank(env, one), reverse=True)
    return Answer(environment=env, wanted=wanted, judged=tuple(ranked))


def judge(env: Environment, candidate: Candidate, known: Facts, wanted: Wanted) -> Judged:
    """Every reason about one candidate. It is accepted where none is against it."""
    found = tuple(_reasons(env, candidate, known, wanted))
    refusing = {"no", "unknown"} if wanted.strict else {"no"}
    return Judged(candidate=candidate, reasons=found, accepted=not any(one.kind in refusing for one in found))


def _reasons(env: Environment, candidate: Candidate, known: Facts, wanted: Wanted) -> Iterator[Reason]:
    if candidate.broken is not None:
        yield reason("unreadable", why=candidate.broken)
        return
    yield from _offered(candidate, wanted)
    yield from which_fit.reasons(env, candidate)
    yield from which_torch.reasons(env, candidate, known)
    yield from which_gpu.reasons(env, candidate, known)
    yield from _measured(env, candidate)
    for what, why in candidate.unread.items():
        yield reason("not-read", what=what, why=f": {why}" if why else "")


def _offered(candidate: Candidate, wanted: Wanted) -> Iterator[Reason]:
    pinned = any(one.operator in ("==", "===") and "*" not in one.version for one in wanted.specifier)
    yanked = candidate.link.yanked
    if yanked is None and candidate.record is not None:
        yanked = candidate.record.yanked
    if yanked is not None and not pinned:
        yield reason("yanked", why=yanked or "no reason is given")
    if not wanted.specifier.contains(candidate.version, prereleases=True):
        yield reason("specifier", wanted=wanted.specifier)
    elif candidate.version.is_prerelease and not wanted.pre and not wanted.specifier.prereleases:
        yield reason("pre-release")


def _measured(env: Environment, candidate: Candidate) -> Iterator[Reason]:
    here, minor = env.id, which_fit.cell_python(env.python) if env.python else None
    for cell in candidate.cover:
        if f"{cell.cuda}-torch{cell.torch}" == here and cell.python == minor and cell.result == "fail":
            yield reason("failed-there", where=f"{here} with Python {minor}", error=_line(cell.error))
            return
    if candidate.measured is None:
        return
    if env.measured_id is not None and env.measured_id in candidate.measured:
        yield reason("measured", where=env.measured_id)
    elif candidate.measured:
        where = listing(sorted(candidate.measured, key=_environment), limit=SHOWN)
        alone = f"{where} alone" if len(candidate.measured) == 1 else where
        version = env.torch.version if env.torch else None
        beside = f", and nobody measured it beside your torch {version}" if version else ""
        yield reason("claimed", where=f"{alone}{beside}")
    else:
        yield reason("claimed-alone")


def _line(text: str | None) -> str:
    return " ".join((text or "no error was kept").split())[:200]


def _environment(name: str) -> tuple[tuple[int, ...], str]:
    cuda, _, torch = name.partition("-torch")
    return version_key(torch), cuda


def _rank(env: Environment, one: Judged) -> tuple[object, ...]:
    """Sort key, the best last. Of the rejected, the nearest of the newest release."""
    candidate = one.candidate
    exact = env.torch is not None and candidate.cuda == env.torch.tag
    minor = version_key(candidate.minor) if candidate.minor else ()
    measured = env.measured_id is not None and env.measured_id in (candidate.measured or ())
    return (
        one.accepted,
        0 if one.accepted else -one.distance,
        Version(candidate.version.public),
        measured,
        exact,
        which_gpu.native(env, candidate),
        minor,
        # Of files of one version pip takes the closest, whatever is known of it.
        which_fit.closeness(env, candidate),
        -len(one.of("unknown")),
        candidate.file,
    )
