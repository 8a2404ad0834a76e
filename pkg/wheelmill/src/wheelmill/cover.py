"""Where a wheel really loads and computes: tried cell by cell, and held against what the wheel promises."""

from __future__ import annotations

import shutil
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from wheelmill import claims, explain, index, interpreters, trial
from wheelmill.errors import GateError
from wheelmill.findings import Finding
from wheelmill.names import version_key
from wheelmill.store import write_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from wheelmill.claims import Place
    from wheelmill.index import File
    from wheelmill.store import Store
    from wheelmill.trial import Result, Subject

# One environment with torch and its CUDA libraries, and what one more torch adds to uv's cache; measured, rounded up.
ENVIRONMENT, DOWNLOAD = 6_000_000_000, 2_500_000_000
SPARE = 2_000_000_000
Verdict = Literal["pass", "fail", "unknown"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """The cells that were tried and what they say. The verdict is unknown where no claimed cell is available."""

    subject: Subject
    results: tuple[Result, ...]
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> Verdict:
        if any(finding.severity == "error" for finding in self.findings):
            return "fail"
        return "pass" if any(one.result == "pass" and one.unclaimed is None for one in self.results) else "unknown"

    @property
    def proof(self) -> dict[str, Any] | None:
        """The newest claimed cell in which the wheel computed, as a manifest states it."""
        for one in reversed(self.results):
            if one.result == "pass" and one.unclaimed is None:
                return {**(one.found or {}), "sha256": self.subject.file.sha256, "cell": one.cell}
        return None


def estimate(places: Sequence[Place], free: int, *, lean: bool) -> str:
    """What a run takes, for the user to know before it begins."""
    groups = _by_torch(places)
    most = DOWNLOAD * (max(map(len, groups)) if lean else len(places)) + ENVIRONMENT
    return (
        f"{len(places)} environments of {len(groups)} torch releases, one at a time: each is removed after its try and "
        f"takes up to {ENVIRONMENT / 1e9:.0f} GB, or next to nothing where uv's cache has its packages and can be "
        f"hard-linked. At most {most / 1e9:.0f} GB are taken at once{'' if lean else ', kept in that cache'}; "
        f"{free / 1e9:.0f} GB are free"
    )


def run(
    store: Store,
    subject: Subject,
    places: Sequence[Place],
    log: Path,
    *,
    tell: Callable[[Place, Result | None], None],
    lean: bool = False,
    first: bool = False,
) -> tuple[Result, ...]:
    """Try a wheel in each place in turn; what was tried before is not tried again.

    `tell` hears of each place before its try, with None, and after it. With `lean`, what is downloaded for one torch
    release is removed before the next one; with `first`, the first cell that is available is the last one tried.
    Raises GateError where the wheel holds nothing to import.
    """
    if not subject.claim.modules:
        raise GateError(
            f"{subject.file.path.name} holds no module, so there is nothing to import and nothing is proven",
            remedy="let the build put the extension or its Python package into the wheel",
        )
    todo = [place for place in places if trial.recorded(store, subject, place) is None]
    here = interpreters.probe(store, dict.fromkeys(place.cell.python for place in todo if not place.absent), log)
    results: list[Result] = []
    foreign = subject.claim.foreign
    for group in _by_torch(places):
        with store.work("downloads") as cache:
            for place in group:
                sought = replace(place, absent=foreign or here.get(place.cell.python) or place.absent or _full(store))
                known = trial.recorded(store, subject, place)
                if known is None:
                    tell(place, None)
                    known = trial.run(store, subject, sought, log, lean=cache if lean else None)
                tell(place, known)
                results.append(known)
                if first and known.result != "not-available":
                    return tuple(results)
    return tuple(results)


def recorded(store: Store, subject: Subject, places: Iterable[Place]) -> tuple[Result, ...]:
    """What earlier runs recorded of these places."""
    return tuple(one for place in places if (one := trial.recorded(store, subject, place)) is not None)


def _by_torch(places: Sequence[Place]) -> list[list[Place]]:
    """The places, those of one torch together, in the order in which each torch first comes."""
    groups: dict[str, list[Place]] = {}
    for place in places:
        groups.setdefault(place.cell.torch, []).append(place)
    return list(groups.values())


def _full(store: Store) -> str | None:
    """Why there is no room for another environment."""
    free = shutil.disk_usage(store.root).free
    if free > ENVIRONMENT + SPARE:
        return None
    return f"{free / 1e9:.1f} GB of disk are free, and an environment may take {(ENVIRONMENT + SPARE) / 1e9:.1f}"


def findings(results: Iterable[Result]) -> tuple[Finding, ...]:
    """What holds against the wheel, and what it could promise besides. A cell that is not available says nothing."""
    found = []
    for one in results:
        if one.result == "fail" and one.unclaimed is None:
            found.append(
                Finding(
                    rule="promise-not-kept",
                    severity="error",
                    library=None,
                    message=f"{one.cell}: the wheel's name and METADATA promise this environment, and there it "
                    f"fails: {one.error}",
                    remedy="narrow Requires-Dist, Requires-Python or the tags to what works, or correct the wheel",
                )
            )
        if one.result == "pass" and one.unclaimed is not None:
            found.append(
                Finding(
                    rule="unpromised-success",
                    severity="info",
                    library=None,
                    message=f"{one.cell}: the wheel works here, though {one.unclaimed}",
                    remedy="widen what it promises, if this is meant to work; else nothing",
                )
            )
    return tuple(found)


def ending(results: Iterable[Result]) -> tuple[str, str]:
    """What ends and begins an error about promises that are not kept, as `explain.ending` gives it."""
    broken = [one for one in results if one.result == "fail" and one.unclaimed is None]
    return explain.ending("\n".join(f"{one.cell}: {one.error}" for one in broken))


def report(subject: Subject, results: Iterable[Result]) -> Report:
    """A report of these results in the order of torch, CUDA and Python."""
    ordered = sorted(results, key=lambda one: (version_key(one.torch), one.cuda, version_key(one.python)))
    return Report(subject=subject, results=tuple(ordered), findings=findings(ordered))


def merged(subject: Subject, earlier: object, results: Sequence[Result]) -> tuple[Result, ...]:
    """These results, and of an earlier report of the same bytes and smoke call the cells that were measured since.

    A cell that was measured is not forgotten because it is not available now.
    """
    rows = earlier.get("cells", []) if isinstance(earlier, dict) and _same(subject, earlier) else []
    cells: dict[str, Result] = {}
    for row in rows:
        try:
            one = trial.Result(**row)
        except TypeError:
            continue
        if one.smoke == subject.smoke and one.result != "not-available":
            cells[one.cell] = one
    for one in results:
        if one.result != "not-available" or one.cell not in cells:
            cells[one.cell] = one
    return tuple(cells.values())


def _same(subject: Subject, earlier: dict[str, Any]) -> bool:
    return earlier.get("version") == 1 and earlier.get("sha256") == subject.file.sha256


def to_json(made: Report) -> dict[str, Any]:
    claim, passed = made.subject.claim, [one for one in made.results if one.result == "pass"]
    return {
        "version": 1,
        "file": made.subject.file.path.name,
        "sha256": made.subject.file.sha256,
        "verdict": made.verdict,
        "claim": {
            "torch": str(claim.torch) if claim.torch is not None else None,
            "python": str(claim.python) or None,
            "cuda": claim.cuda,
            "tags": sorted(map(str, claim.tags)),
        },
        "measured": {
            "torch": sorted({one.torch for one in passed}, key=version_key),
            "python": sorted({one.python for one in passed}, key=version_key),
            "cuda": sorted({one.cuda for one in passed}),
        },
        "cells": [asdict(one) for one in made.results],
        "findings": [asdict(finding) for finding in made.findings],
    }


def keep(store: Store, subject: Subject, results: Sequence[Result]) -> Report:
    """The report of a wheel so far: these results and what earlier runs measured, kept in the store by SHA-256."""
    known = store.record("cover", subject.file.sha256)
    made = report(subject, merged(subject, known, results))
    store.put_record("cover", subject.file.sha256, to_json(made))
    return made


def publish(made: Report, wheel: Path) -> None:
    """Write a report beside its wheel, whole or not at all."""
    write_json(wheel.with_name(wheel.name + index.COVER), to_json(made))


def subject_of(path: Path, *, file: File | None = None, **asked: Any) -> Subject:
    """A wheel to try: `file` where it is ours, else what the manifest beside it says."""
    claim = claims.read(path)
    found, ours = (file, True) if file is not None else index.any_wheel(path)
    return trial.Subject(file=found, claim=claim, ours=ours, **asked)
