"""A run: every step of a plan built, proven and indexed. One wheel's failure costs the others nothing."""

from __future__ import annotations

import contextlib
import datetime as dt
import errno
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from wheelmill import claims, cover, index, interpreters, recording, repro, steps
from wheelmill.errors import GateError, InputError, MissingError, WheelmillError
from wheelmill.names import listing
from wheelmill.store import copy_atomic, write_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from wheelmill.claims import Place
    from wheelmill.cover import Report
    from wheelmill.model import Plan, Step
    from wheelmill.report import Status
    from wheelmill.steps import Site
    from wheelmill.trial import Result

# The first cell that is available, one Python for each torch, or every cell.
Scope = Literal["first", "torches", "all"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What became of one wheel. `file` is its place in the output folder, None where it was not built."""

    wheel: str
    status: Status
    detail: str
    file: Path | None = None
    environment: str | None = None
    error: WheelmillError | None = None


def explained(error: OSError) -> WheelmillError | None:
    """The message for what the system refuses; None where nothing says which file it was about."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        where = f" that holds {error.filename}" if error.filename else ""
        return MissingError(f"the disk{where} is full", remedy="free some space and run the same command again")
    if error.filename is None:
        return None
    return MissingError(
        f"{error.filename}: {error.strerror}", remedy="name another place, or correct its permissions, and run again"
    )


def _publish(built: steps.Built, out: Path, made: Report) -> Path:
    """Put a wheel, its manifest and its reports into the output folder, in place of any earlier file of that wheel."""
    target = out / built.path.name
    copy_atomic(built.path, target)
    write_json(target.with_name(target.name + index.MANIFEST), {**built.manifest, "proof": made.proof})
    write_json(target.with_name(target.name + recording.AUDIT), built.audit)
    if made.results:
        cover.publish(made, target)
    for other in out.glob("*.whl"):
        with contextlib.suppress(InputError):
            if other.name != target.name and index.manifest_of(other).wheel == built.manifest["wheel"]:
                _withdraw(other)
    return target


def _withdraw(file: Path) -> None:
    for suffix in ("", index.MANIFEST, recording.AUDIT, index.COVER):
        file.with_name(file.name + suffix).unlink(missing_ok=True)


def _places(step: Step, site: Site, scope: Scope) -> tuple[Place, ...]:
    """The cells of the plan to try a wheel in."""
    places = claims.served(step.wheel.cells, site.facts)
    return places if scope == "all" else claims.one_a_torch(places, interpreters.ENGINE_PYTHON)


def _measure(built: steps.Built, step: Step, site: Site, scope: Scope | None) -> Report:
    """Where the wheel works, measured in this run, or without a scope as far as earlier runs measured."""
    row, operators = step.wheel.id, site.matrix.operators
    namespace, samples = (operators.namespace, operators.samples) if operators else (None, None)
    file = index.describe(built.path, index.Manifest.model_validate(built.manifest))
    subject = cover.subject_of(built.path, file=file, namespace=namespace, samples=samples)
    places = _places(step, site, scope or "all")
    if scope is None:
        return cover.keep(site.store, subject, cover.recorded(site.store, subject, places))

    def tell(place: Place, result: Result | None) -> None:
        if result is None:
            site.reporter.step(row, f"prove in {place.cell.id}")
        elif result.result == "not-available":
            site.reporter.note(f"note: {place.cell.id} is not available here: {result.error}")

    log = site.store.log(f"{row}.cover")
    results = cover.run(site.store, subject, places, log, tell=tell, first=scope == "first")
    return cover.keep(site.store, subject, results)


def _repeat(built: steps.Built, step: Step, site: Site) -> None:
    """Build the wheel a second time. Raises GateError where the bytes differ."""
    found = repro.again(built, step, site)
    if found is not None:
        raise GateError(f"{built.path.name} is not reproducible: {found.message}", remedy=found.remedy)


def _one(step: Step, site: Site, out: Path, *, scope: Scope | None, repeat: bool) -> Outcome:
    row = step.wheel.id
    built = steps.build(step, site)
    for finding in built.warnings:
        site.reporter.note(f"note: {row}: {finding.message}\n  {finding.remedy}")
    status: Status = "unchanged" if built.unchanged else "built"
    try:
        if repeat:
            _repeat(built, step, site)
        made = _measure(built, step, site, scope)
        _gate(made)
    except GateError:
        _withdraw(out / built.path.name)
        raise
    file, proof = _publish(built, out, made), made.proof
    if proof is None and scope is not None:
        site.reporter.note(
            f"note: {row}: no environment of its cells can be had here, so the wheel is not proven to load and is "
            "left out of the index\n  run the same command where torch's own wheel index can be reached"
        )
        return Outcome(wheel=row, status="unproven", detail=file.name, file=file)
    cells = [one.cell for one in made.results if one.result == "pass" and one.unclaimed is None]
    said = f"proven in {listing(cells, limit=6)}" if cells else "not tried"
    environment = proof["cell"].rsplit("-", 1)[0] if proof and scope is not None else None
    return Outcome(wheel=row, status=status, detail=f"{file.name}, {said}", file=file, environment=environment)


def _gate(made: Report) -> None:
    """Raises GateError for a promise that a wheel does not keep."""
    errors = [finding for finding in made.findings if finding.severity == "error"]
    if errors:
        why, remedy = cover.ending(made.results)
        raise GateError(
            f"{made.subject.file.path.name} does not keep what it promises:\n"
            + "\n".join(f"    {finding.message}" for finding in errors)
            + why,
            remedy=f"{remedy}{errors[0].remedy}; it is not put in the index",
        )


def run(plan: Plan, site: Site, out: Path, *, scope: Scope | None, repeat: bool = False) -> list[Outcome]:
    """Build every step in turn. A failed one is reported and the next begun; an interrupt stops the run.

    `scope` says in which of its cells each wheel is tried; with `repeat` it is built a second time and compared.
    """
    outcomes = []
    for step in plan.steps:
        row = step.wheel.id
        try:
            outcome = _one(step, site, out, scope=scope, repeat=repeat)
        except (WheelmillError, OSError) as raised:
            error = explained(raised) if isinstance(raised, OSError) else raised
            if error is None:
                raise
            outcome = Outcome(wheel=row, status="failed", detail=str(error).splitlines()[0], error=error)
        site.reporter.done(row, outcome.status, outcome.detail)
        outcomes.append(outcome)
    record = dt.datetime.now(dt.timezone.utc).strftime("%Y%m%dT%H%M%S.%f")
    site.store.put_record("runs", record, to_json(outcomes))
    return outcomes


def commands(outcomes: Sequence[Outcome], pages: dict[str, Path], project: str) -> list[str]:
    """The command that installs each proven wheel, for the user to copy."""
    return [
        shlex.join(["pip", "install", project, "--find-links", str(pages[outcome.environment].resolve())])
        for outcome in outcomes
        if outcome.environment in pages
    ]


def to_json(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    return {
        "version": 1,
        "wheels": [
            {
                "wheel": outcome.wheel,
                "status": outcome.status,
                "file": str(outcome.file) if outcome.file else None,
                "environment": outcome.environment,
                "error": str(outcome.error) if outcome.error else None,
            }
            for outcome in outcomes
        ],
    }
