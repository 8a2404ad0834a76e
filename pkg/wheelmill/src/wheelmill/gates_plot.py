"""Times of the bench gate as an SVG, where matplotlib is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from wheelmill.gates import Report


def write(made: Report, path: Path) -> str:
    """Draw each operator's median and quartiles beside its reference's; what was done, or why not."""
    rows = [row for row in made.rows if "milliseconds" in row.found and made.is_of_now(row)]
    if not rows:
        return "no plot: no time was measured"
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return "no plot: matplotlib is not installed (pip install matplotlib)"
    figure = Figure(figsize=(7, 1 + 0.5 * len(rows)), layout="constrained")
    axes = figure.add_subplot()
    for place, (name, label) in enumerate((("milliseconds", "operator"), ("reference", "reference"))):
        found = [row.found[name] for row in rows]
        medians = [one["median"] for one in found]
        spread = [[one["median"] - one["q1"] for one in found], [one["q3"] - one["median"] for one in found]]
        heights = [number + 0.4 * place for number in range(len(rows))]
        axes.barh(heights, medians, 0.36, xerr=spread, label=label)
    axes.set_yticks([number + 0.2 for number in range(len(rows))], [row.operator for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel(f"milliseconds on {rows[0].found['card']}: median and quartiles, cold L2")
    axes.legend()
    figure.savefig(path, format="svg")
    return f"times drawn in {path}"
