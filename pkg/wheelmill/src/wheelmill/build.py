"""A run: every step of a plan built, proven and indexed. One wheel's failure costs the others nothing."""

from __future__ import annotations

import contextlib
import datetime as dt
import errno
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wheelmill import index, prove, steps
from wheelmill.errors import GateError, InputError, MissingError, WheelmillError
from wheelmill.store import copy_atomic, write_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from wheelmill.model import Plan, Step
    from wheelmill.report import Status
    from wheelmill.steps import Site


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


def _publish(built: steps.Built, out: Path, proof: dict[str, Any] | None) -> Path:
    """Put a wheel and its manifest into the output folder, in place of any earlier file of the same wheel."""
    target = out / built.path.name
    copy_atomic(built.path, target)
    write_json(target.with_name(target.name + index.MANIFEST), {**built.manifest, "proof": proof})
    for other in out.glob("*.whl"):
        with contextlib.suppress(InputError):
            if other.name != target.name and index.manifest_of(other).wheel == built.manifest["wheel"]:
                _withdraw(other)
    return target


def _withdraw(file: Path) -> None:
    file.unlink(missing_ok=True)
    file.with_name(file.name + index.MANIFEST).unlink(missing_ok=True)


def _one(step: Step, site: Site, out: Path, *, proving: bool) -> Outcome:
    row = step.wheel.id
    built = steps.build(step, site)
    for finding in built.warnings:
        site.reporter.note(f"note: {row}: {finding.message}\n  {finding.remedy}")
    file = index.describe(built.path, index.Manifest.model_validate(built.manifest))
    status: Status = "unchanged" if built.unchanged else "built"
    if not proving:
        proof = prove.recorded(site.store, file, step.wheel, site.matrix)
        target = _publish(built, out, proof)
        return Outcome(wheel=row, status=status, detail=f"{file.path.name}, not tried", file=target)
    site.reporter.step(row, "prove")
    try:
        log = site.store.log(f"{row}.prove")
        proof = prove.prove(site.store, file, step.wheel, facts=site.facts, matrix=site.matrix, log=log)
    except prove.NoEnvironmentError as error:
        site.reporter.note(f"note: {error}\n  {error.remedy}")
        return Outcome(wheel=row, status="unproven", detail=file.path.name, file=_publish(built, out, None))
    except GateError:
        _withdraw(out / file.path.name)
        raise
    cell = proof["cell"]
    return Outcome(
        wheel=row,
        status=status,
        detail=f"{file.path.name}, proven in {cell}",
        file=_publish(built, out, proof),
        environment=cell.rsplit("-", 1)[0],
    )


def run(plan: Plan, site: Site, out: Path, *, proving: bool = True) -> list[Outcome]:
    """Build every step in turn. A failed one is reported and the next begun; an interrupt stops the run."""
    outcomes = []
    for step in plan.steps:
        row = step.wheel.id
        try:
            outcome = _one(step, site, out, proving=proving)
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
