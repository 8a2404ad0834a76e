"""A report as an SVG: each ratio as a part of its target. Needs matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .show import lines_of, together

if TYPE_CHECKING:
    from pathlib import Path

MET, MISSED = "#2a7f62", "#c0392b"
MOST = 3.0  # of a target; a longer bar ends here, with its number


def bars(report: dict[str, Any]) -> list[tuple[str, float, str]]:
    """(label, ratio over target, what the bar says) of each line and target; of several rows the least."""
    made = []
    for line, rows in lines_of(report).items():
        for against, (least, ratios) in together(rows).items():
            if ratios:
                said = f"{min(ratios):.2f} × {against}, at least {least:.2f}"
                made.append((line, min(ratios) / least, said))
    return made


def write(report: dict[str, Any], path: Path) -> None:
    """Draw a bar a target, whose line is at 1. Raises ImportError where matplotlib is not installed."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    # The same bytes from the same report.
    mpl.rcParams.update({"svg.hashsalt": "operators", "font.size": 8})
    made = bars(report)
    figure = Figure(figsize=(11, 0.9 + 0.24 * len(made)), layout="constrained")
    axes = figure.add_subplot()
    heights = range(len(made))
    axes.barh(
        heights,
        [min(ratio, MOST) for _, ratio, _ in made],
        0.72,
        color=[MET if ratio >= 1 else MISSED for _, ratio, _ in made],
    )
    for height, (_, ratio, said) in enumerate(made):
        inside = ratio > MOST * 0.7
        axes.text(
            min(ratio, MOST) - 0.02 if inside else max(ratio, 1) + 0.02,
            height,
            said,
            va="center",
            ha="right" if inside else "left",
            color="white" if inside else "black",
            fontsize=7,
        )
    # A line with several targets is named once.
    labels = [line if not place or made[place - 1][0] != line else "" for place, (line, _, _) in enumerate(made)]
    axes.set_yticks(list(heights), labels)
    axes.invert_yaxis()
    axes.set_xlim(0, MOST)
    axes.axvline(1, color="black", linewidth=0.8)
    where = report["machine"]["card"] or report["machine"]["processor"]
    axes.set_xlabel(f"fusedops' speed over the target, on {where}; the line is the target")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(path, format="svg", metadata={"Date": None})
