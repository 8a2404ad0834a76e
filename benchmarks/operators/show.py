"""A report as text, and as the documentation's table. Without torch."""

from __future__ import annotations

from math import floor, log10
from typing import TYPE_CHECKING, Any

from .rows import OURS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

UNITS = {"ms": "ms", "us": "µs"}
RATES = {"byte": (1e-9, "GB/s"), "operation": (1e-12, "TFLOP/s")}
SECONDS = {"ms": 1e-3, "us": 1e-6}


def number(value: float) -> str:
    """Three digits that count."""
    return f"{value:.{min(6, max(0, 2 - floor(log10(value))))}f}" if value > 0 else "0"


def span(values: Sequence[float], shown: Any) -> str:
    """One number, or the least and the most of several."""
    low, high = shown(min(values)), shown(max(values))
    return low if low == high else f"{low}–{high}"


def state(target: dict[str, Any]) -> str:
    return {None: "not timed", True: "met", False: "MISSED"}[target["met"]]


def row_text(row: dict[str, Any]) -> str:
    """One row in a line, or why it has no time."""
    if row["result"] != "measured":
        return f"{row['name']}: {row['result']}: {row['reason']}"
    own, unit = row["times"][OURS], row["unit"]
    parts = [f"{number(own['median'])} {UNITS[unit]} ({number(own['q1'])}–{number(own['q3'])})"]
    if row["amount"] in RATES and OURS in row["amounts"]:
        factor, rate = RATES[row["amount"]]
        parts.append(f"{number(row['amounts'][OURS] / (own['median'] * SECONDS[unit]) * factor)} {rate}")
    for target in row["targets"]:
        ratio = "?" if target["ratio"] is None else f"{target['ratio']:.2f}"
        parts.append(f"{ratio} × {target['against']} (at least {target['at_least']:.2f}: {state(target)})")
    parts += [f"shrunk: {row['shrunk']}"] if row["shrunk"] else []
    parts += [f"without {name}: {why}" for name, why in row["left_out"].items()]
    return f"{row['name']}: " + "; ".join(parts)


def counted(rows: Iterable[dict[str, Any]]) -> str:
    """The last line: how many rows have which result, and how many targets are met."""
    results: dict[str, int] = {}
    states: dict[str, int] = {}
    for row in rows:
        results[row["result"]] = results.get(row["result"], 0) + 1
        for target in row["targets"]:
            states[state(target)] = states.get(state(target), 0) + 1
    both = (results, {f"targets {name}": count for name, count in states.items()})
    return "; ".join(", ".join(f"{count} {name}" for name, count in one.items()) for one in both if one)


def text(report: dict[str, Any]) -> str:
    """The table that ends a run."""
    rows = report["rows"]
    unrun: dict[str, list[str]] = {}
    lines = []
    for row in rows:
        if row["result"] == "not-run":
            unrun.setdefault(row["reason"] or "it was not asked for", []).append(row["name"])
        else:
            lines.append(row_text(row))
    lines += [f"not run, {why}: {len(names)} rows, {names[0]} the first" for why, names in unrun.items()]
    return "\n".join([*lines, counted(rows)])


def lines_of(report: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The rows with a time or a fault, by the line of the table that they belong to."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in report["rows"]:
        if row["result"] != "not-run" and row["targets"]:
            found.setdefault(row["line"], []).append(row)
    return found


def together(rows: Sequence[dict[str, Any]]) -> dict[str, tuple[float, list[float]]]:
    """Of the rows of a line, by what they are held against: the target and the ratio of each row that has one."""
    found: dict[str, tuple[float, list[float]]] = {}
    for row in rows:
        for target in row["targets"]:
            _, ratios = found.setdefault(target["against"], (target["at_least"], []))
            ratios.extend([] if target["ratio"] is None else [target["ratio"]])
    return found


def markdown(report: dict[str, Any]) -> str:
    """A table of a line an operator and size; of several operators or inputs the least and the most."""
    machine = report["machine"]
    table = ["| work | time | beside, and at least |", "|---|---|---|"]
    for line, rows in lines_of(report).items():
        wrong = [row for row in rows if row["result"] != "measured"]
        if wrong:
            table.append(f"| {line} | **{wrong[0]['result']}** | {wrong[0]['operator']} |")
            continue
        unit = rows[0]["unit"]
        time = span([row["times"][OURS]["median"] for row in rows], number)
        cells = []
        for against, (least, ratios) in together(rows).items():
            if not ratios:
                cells.append(f"{against}: not timed")
                continue
            cell = f"{span(ratios, '{:.2f}'.format)} × {against} ({least:.2f})"
            cells.append(cell if min(ratios) >= least else f"**{cell}**")
        shrunk = next((f", {row['shrunk']}" for row in rows if row["shrunk"]), "")
        table.append(f"| {line}{shrunk} | {time} {UNITS[unit]} | {', '.join(cells)} |")
    wheel = report["wheel"]
    where = machine["card"] or machine["processor"]
    of = f", wheel `{wheel['sha256'][:16]}…`" if wheel else ""
    driver = f", driver {machine['driver']}" if machine["driver"] else ""
    table += ["", f"{where}{driver}, torch {machine['torch']}{of}; medians. Bold: what is less than its target."]
    return "\n".join(table)
