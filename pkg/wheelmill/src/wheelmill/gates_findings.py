"""What is wrong with a wheel before any operator is called, and suppressions that suppressed nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wheelmill.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wheelmill.gates import Asked, Row, Subject


def _error(rule: str, message: str, remedy: str) -> Finding:
    return Finding(rule=rule, severity="error", library=None, message=message, remedy=remedy)


def of_probe(one: Subject, probe: dict[str, Any]) -> Iterable[Finding]:
    """What is wrong before any operator is called."""
    if probe["result"] != "pass":
        yield _error(
            "not-testable",
            f"the wheel cannot be looked at: {probe['reason']}",
            "see that it imports beside this torch (`wheelmill cover`)",
        )
    elif not one.namespace:
        return
    elif not probe["found"]["operators"]:
        yield _error("no-operators", f"it registers no operator under {one.namespace}::", "correct the namespace")
    elif unregistered := probe["found"].get("unregistered"):
        yield _error(
            "unregistered-operators",
            f"{one.samples} has samples of {', '.join(unregistered)}, which the wheel does not register",
            "remove them, or register the operators in every wheel",
        )
    elif one.targets and not any(
        "cuda" in row.get("devices", ["cuda"]) for row in probe["found"]["operators"].values()
    ):
        yield _error(
            "no-cuda-kernels",
            f"the wheel holds device code, and no operator of {one.namespace}:: has a CUDA kernel",
            "register the CUDA kernels in this wheel",
        )


def unused(asked: Asked, rows: Sequence[Row]) -> Iterable[Finding]:
    """Suppressions that suppressed nothing, where all that they could be for was run."""
    ran = [row for row in rows if row.gate == "sanitize"]
    if asked.operators or not ran or any(row.missing for row in ran):
        return
    used = {number for row in ran for number in row.found.get("suppressed", ())}
    for number, one in enumerate(asked.suppressions):
        if number not in used:
            yield Finding(
                rule="suppression-unused",
                severity="warning",
                library=None,
                message=f"nothing was reported that the suppression {one['reason']!r} is for",
                remedy="remove it from the file",
            )
