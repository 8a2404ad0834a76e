"""Whether a wheel has passed the dynamic gates that its matrix demands before it is published."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from wheelmill import gates
from wheelmill.store import file_sha256

if TYPE_CHECKING:
    from pathlib import Path

    from wheelmill.matrix import Matrix


def of_others(ran: tuple[str | None, str | None], wanted: tuple[str, str | None]) -> str | None:
    """Why a report is not of the operators and samples that are wanted, None where it is."""
    if ran == wanted:
        return None
    if ran[0] is None:
        return "its report does not say which operators it is of"
    return f"it was run on {ran[0]}:: by {ran[1]}, and the matrix's are {wanted[0]}:: by {wanted[1]}"


def missing_gates(wheel: Path, matrix: Matrix) -> tuple[tuple[str, str], ...]:
    """(gate, why) of each dynamic gate that the matrix demands and the report beside the wheel does not show passed."""
    demanded = [gate for gate in matrix.gates["publish"] if gate in gates.GATES]
    path = wheel.with_name(wheel.name + gates.REPORT)
    try:
        made = gates.from_json(json.loads(path.read_text()))
    except FileNotFoundError:
        return tuple((gate, "it was never run") for gate in demanded)
    except (OSError, ValueError) as error:
        said = " ".join(str(error).split())[:200]
        return tuple((gate, f"the report {path.name} cannot be read: {said}") for gate in demanded)
    if made.sha256 != file_sha256(wheel):
        return tuple((gate, f"the report {path.name} is of another file") for gate in demanded)
    wanted = matrix.operators
    if wanted and (why := of_others((made.namespace, made.samples), (wanted.namespace, wanted.samples))):
        return tuple((gate, why) for gate in demanded)
    if any(one.severity == "error" for one in made.findings):
        return tuple((gate, "the wheel could not be tested") for gate in demanded)
    verdicts = {gate: made.verdict_of(gate) for gate in demanded}
    return tuple((gate, f"it is {verdict}") for gate, verdict in verdicts.items() if verdict != "pass")
