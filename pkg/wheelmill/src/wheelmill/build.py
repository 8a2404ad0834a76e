"""A run: every step of a plan built, proven and indexed. One wheel's failure costs the others nothing."""

from __future__ import annotations

import datetime as dt
import errno
import json
import shlex
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wheelmill import index, local, prove
from wheelmill.errors import MissingError, WheelmillError
from wheelmill.store import write_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from wheelmill.local import Site
    from wheelmill.model import Plan, Step
    from wheelmill.report import Status


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What became of one wheel. `file` is its place in the output folder, None where it was not built."""

    wheel: str
    status: Status
    detail: str
    file: Path | None = None
    environment: str | None = None
    error: WheelmillError | None = None


def disk_full(error: OSError) -> WheelmillError | None:
    """The message for a full disk or quota; None for any other error."""
    if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
        return None
    where = f" that holds {error.filename}" if error.filename else ""
    return MissingError(f"the disk{where} is full", remedy="free some space and run the same command again")


def _publish(folder: Path, out: Path, proof: dict[str, Any] | None) -> Path:
    """Copy a wheel and its manifest from the store into the output folder."""
    (wheel,) = folder.glob("*.whl")
    manifest = json.loads((folder / "manifest.json").read_text())
    out.mkdir(parents=True, exist_ok=True)
    part = out / f".{wheel.name}.part"
    shutil.copyfile(wheel, part)
    part.replace(out / wheel.name)
    write_json(out / (wheel.name + index.MANIFEST), {**manifest, "proof": proof})
    return out / wheel.name


def _one(step: Step, site: Site, out: Path, *, proving: bool) -> Outcome:
    folder, there = local.build(step, site)
    row = step.wheel.id
    file = _publish(folder, out, None)
    if not proving:
        return Outcome(
            wheel=row, status="unchanged" if there else "built", detail=f"{file.name}, not proven", file=file
        )
    site.reporter.step(row, "prove")
    log = site.store.log(f"{row}.prove")
    try:
        proof = prove.prove(site.store, index.read(file), step.wheel, site.facts, site.matrix, log)
    except prove.NoEnvironmentError as error:
        site.reporter.note(f"note: {error}\n  {error.remedy}")
        return Outcome(wheel=row, status="unproven", detail=file.name, file=file)
    except WheelmillError:
        file.unlink()
        file.with_name(file.name + index.MANIFEST).unlink()
        raise
    _publish(folder, out, proof)
    return Outcome(
        wheel=row,
        status="unchanged" if there else "built",
        detail=f"{file.name}, proven in {proof['cell']}",
        file=file,
        environment=proof["cell"].rsplit("-", 1)[0],
    )


def run(plan: Plan, site: Site, out: Path, *, proving: bool = True) -> list[Outcome]:
    """Build every step in turn. A failed one is reported and the next begun; an interrupt stops the run."""
    outcomes = []
    for step in plan.steps:
        row = step.wheel.id
        try:
            outcome = _one(step, site, out, proving=proving)
        except WheelmillError as error:
            outcome = Outcome(wheel=row, status="failed", detail=str(error).splitlines()[0], error=error)
        except OSError as error:
            full = disk_full(error)
            if full is None:
                raise
            outcome = Outcome(wheel=row, status="failed", detail=str(full), error=full)
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
