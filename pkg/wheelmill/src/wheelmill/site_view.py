"""What a wheel's page shows, as plain values; the template only lays them out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from wheelmill import site_rows as rows
from wheelmill.findings import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wheelmill.records import Cell, Gates, Record, Time

WORDS = {"pass": "pass", "fail": "fail", "incomplete": "incomplete", "unknown": "not measured", "not-available": "n/a"}
MARKS = {"pass": "✓", "fail": "✗", "incomplete": "~", "unknown": "○", "not-available": "○"}
UNITS = ("B", "kB", "MB", "GB")
STEP, EXACT = 1000, 100  # a unit to the next, and from where no decimal is shown
BAR = 200  # units of a bar's drawing


def size_words(size: int) -> str:
    """`12.3 MB`, in powers of 1000 as an index's users count downloads."""
    amount, unit = float(size), 0
    while amount >= STEP and unit < len(UNITS) - 1:
        amount, unit = amount / STEP, unit + 1
    return f"{amount:.0f} {UNITS[unit]}" if amount >= EXACT or not unit else f"{amount:.1f} {UNITS[unit]}"


def mark(status: str) -> dict[str, str]:
    """A status as a symbol, a word and a class: colour is never all that tells it."""
    return {"status": status, "symbol": MARKS.get(status, "○"), "word": WORDS.get(status, status)}


def wheel(record: Record) -> dict[str, Any]:
    """All that the page of one wheel shows."""
    sass, ptx = rows.targets(record)
    environments = sorted(record.environments, key=rows.environment_key, reverse=True)
    return {
        "record": record,
        "href": quote(record.file),
        "public": record.release.partition("+")[0],
        "size": size_words(record.size),
        "environments": [(name, rows.environment_words(name)) for name in environments],
        "cuda": sorted({rows.cuda_words(name.partition("-")[0]) for name in environments}, key=rows.natural),
        "torches": sorted({name.partition("-torch")[2] for name in environments}, key=rows.natural),
        "sass": sass,
        "ptx": ptx,
        "libraries": _libraries(record),
        "build": mark("pass" if record.build else "unknown"),
        "audit": mark(rows.audit_status(record)),
        "cover": mark(cover_status(record)),
        "gates": mark(rows.gates_status(record)),
        "verdicts": [(name, mark(verdict)) for name, verdict in sorted(_verdicts(record.gates).items())],
        "measured": measured(record),
        "findings": sorted(record.audit.findings, key=lambda f: (SEVERITIES.index(f.severity), f.rule))
        if record.audit
        else [],
        "plots": plots(record),
    }


def cover_status(record: Record) -> rows.Status:
    """The worst of the cells that the wheel promises."""
    found = {cell.result for cell in record.cover or () if cell.unclaimed is None}
    if "fail" in found:
        return "fail"
    return "pass" if "pass" in found else "unknown"


def _verdicts(gates: Gates | None) -> dict[str, str]:
    return dict(gates.verdicts) if gates else {}


def _libraries(record: Record) -> list[dict[str, Any]]:
    found = record.audit.libraries if record.audit else {}
    return [
        {
            "path": path,
            "library": library,
            "sass": [rows.capability(one) for one in sorted(library.sass, key=rows.natural)],
            "ptx": [rows.capability(one) for one in sorted(library.ptx, key=rows.natural)],
        }
        for path, library in sorted(found.items())
    ]


def measured(record: Record) -> dict[str, Any]:
    """The cover cells as a table, torch and CUDA by Python, with each different reason once below it."""
    cells = record.cover or ()
    pythons = sorted({cell.python for cell in cells}, key=rows.natural)
    names = sorted({f"{c.cuda}-torch{c.torch}" for c in cells}, key=rows.environment_key, reverse=True)
    notes: dict[str, int] = {}
    table = []
    for name in names:
        found = [_cell(rows.cell_of(record, name, python), notes) for python in pythons]
        table.append((name, rows.environment_words(name), found))
    return {"pythons": pythons, "rows": table, "notes": list(notes)}


def _cell(cell: Cell | None, notes: dict[str, int]) -> dict[str, Any] | None:
    if cell is None:
        return None
    note = None
    if cell.error:
        note = notes.setdefault(" ".join(cell.error.split()), len(notes) + 1)
    return {**mark(cell.result), "outside": cell.unclaimed, "note": note}


def plots(record: Record) -> list[dict[str, Any]]:
    """A card's operators, each with its time and its reference's as lengths of one scale."""
    found: dict[str, list[Time]] = {}
    for time in rows.times(record):
        found.setdefault(time.card, []).append(time)
    return [{"card": card, "rows": _bars(times)} for card, times in found.items()]


def _bars(times: Sequence[Time]) -> list[dict[str, Any]]:
    reference = [time.milliseconds / time.of_reference if time.of_reference else None for time in times]
    most = max([time.milliseconds for time in times] + [one for one in reference if one is not None])
    return [
        {
            "operator": time.operator,
            "sample": time.sample,
            "milliseconds": f"{time.milliseconds:.3g}",
            "reference": None if other is None else f"{other:.3g}",
            "ratio": None if time.of_reference is None else f"{time.of_reference:.2f}",
            "width": f"{max(1.0, BAR * time.milliseconds / most):.1f}",
            "other": None if other is None else f"{max(1.0, BAR * other / most):.1f}",
        }
        for time, other in zip(times, reference, strict=True)
    ]
