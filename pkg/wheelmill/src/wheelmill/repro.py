"""A wheel built a second time from the same inputs, in another folder and at another time, gives the same bytes."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from wheelmill import compare, steps
from wheelmill.findings import Finding
from wheelmill.store import file_sha256

if TYPE_CHECKING:
    from pathlib import Path

    from wheelmill.compare import Difference
    from wheelmill.model import Step
    from wheelmill.steps import Built, Site

RULE = "not-reproducible"


def finding(difference: Difference) -> Finding:
    where = f"{difference.member}: " if difference.member else ""
    return Finding(
        rule=RULE,
        severity="error",
        library=difference.member,
        message=f"two builds of the same inputs differ, first in {where}{difference.cause}",
        remedy=difference.remedy,
    )


def again(built: Built, step: Step, site: Site) -> Finding | None:
    """Build a wheel of the store once more from scratch, and hold the two against each other.

    The answer is recorded by the step's key and the wheel's bytes, so unchanged inputs are not built again. A compiler
    cache would answer the second build with the first one's objects, and is left out.
    """
    key = built.manifest["key"]
    known = site.store.record("repro", key)
    if isinstance(known, dict) and known.get("sha256") == built.manifest["sha256"]:
        return Finding(**known["finding"]) if known["finding"] else None
    site.reporter.step(step.wheel.id, "build once more")
    with site.store.work("second") as work:
        found = _compared(built.path, steps.scratch(step, replace(site, cache=None), work))
    site.store.put_record("repro", key, record(built.manifest["sha256"], found))
    return found


def twice(step: Step, site: Site) -> tuple[str, Finding | None]:
    """(SHA-256 of the first, what differs): two builds from scratch, neither of which the store keeps."""
    with site.store.work("first") as one, site.store.work("second") as other:
        first = steps.scratch(step, site, one)
        site.reporter.step(step.wheel.id, "build once more")
        return file_sha256(first), _compared(first, steps.scratch(step, site, other))


def record(sha256: str, found: Finding | None) -> dict[str, Any]:
    return {"version": 1, "sha256": sha256, "finding": asdict(found) if found else None}


def _compared(one: Path, other: Path) -> Finding | None:
    difference = compare.first_difference(one, other)
    return finding(difference) if difference else None
