"""`wheelmill plan`: what the matrix comes to, without doing any of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wheelmill import facts, matrix, targets
from wheelmill import plan as planning
from wheelmill.names import listing, version_key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from wheelmill.facts import Facts
    from wheelmill.matrix import Matrix
    from wheelmill.model import Plan, Step

# Rendering a table costs about a millisecond a row; beyond this many rows the text is one line a wheel.
TABLE_ROWS = 500


@click.command("plan")
@click.argument("select", nargs=-1)
@click.option(
    "--matrix", "matrix_path", type=click.Path(path_type=Path), default=Path("matrix.yaml"), show_default=True
)
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
@click.option("--explain", is_flag=True, help="Also say which combinations were dropped, and what was not known.")
@click.option(
    "--against",
    type=click.File("rb"),
    help="Print what changed since an earlier `plan --json` of that file (- for standard input), as Markdown.",
)
def plan(*, select: tuple[str, ...], matrix_path: Path, as_json: bool, explain: bool, against: BinaryIO | None) -> None:
    """Show the cells, wheels and steps of a matrix that SELECT names (globs on ids; all without one)."""
    wanted = matrix.load(matrix_path)
    known = facts.load(wanted.facts)
    made = planning.make(wanted, known, select)
    if against is not None:
        if explain:
            raise click.UsageError("--explain tells of one plan, and --against of two: give one of them")
        _compare(made, against, as_json=as_json)
    elif as_json:
        notes = list(_notes(made, wanted, known)) if explain else None
        click.echo("\n".join(_json_lines(made, notes)))
    else:
        _show(made)
        if explain:
            _explain(made, wanted, known)


def _compare(made: Plan, against: BinaryIO, *, as_json: bool) -> None:
    from wheelmill import plan_change

    now = plan_change.of(made)
    difference = plan_change.compare(plan_change.parse(against.read(), getattr(against, "name", "<stdin>")), now)
    if as_json:
        click.echo(json.dumps(plan_change.to_json(difference), indent=1))
    else:
        click.echo(plan_change.markdown(difference, now), nl=False)


def _json_lines(made: Plan, notes: list[str] | None) -> Iterator[str]:
    """The plan's JSON, one cell, drop, wheel or step a line, so that two plans can be compared with diff."""
    content = planning.to_json(made)
    if notes is not None:
        content["notes"] = notes
    yield "{"
    last = len(content) - 1
    for position, (key, value) in enumerate(content.items()):
        text = _one_a_line(value) if isinstance(value, list) else json.dumps(value)
        yield f"{json.dumps(key)}: {text}{'' if position == last else ','}"
    yield "}"


def _one_a_line(values: list[object]) -> str:
    """`values` as JSON with a line each.

    Objects are encoded in one go and parted afterwards, which is three times as fast as one by one. What is
    looked for cannot lie within a string, where a quote has a backslash before it or ends the string.
    """
    match values:
        case []:
            return "[]"
        case [dict() as first, *_]:
            start = f"{{{json.dumps(next(iter(first)))}: "
            return "[\n" + json.dumps(values)[1:-1].replace(f"}}, {start}", f"}},\n{start}") + "\n]"
        case _:
            return "[\n" + ",\n".join(map(json.dumps, values)) + "\n]"


def _show(made: Plan) -> None:
    if len(made.steps) > TABLE_ROWS:
        for step in made.steps:
            click.echo("  ".join(_row(step)))
    else:
        _table(made)
    dropped = f"; {len(made.drops)} combinations do not exist (--explain)" if made.drops else ""
    click.echo(f"{len(made.wheels)} wheels serve {len(made.cells)} cells{dropped}")


def _table(made: Plan) -> None:
    from rich.console import Console  # slow to import, and JSON needs none of it
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("wheel", "torch", "CUDA", "Python", "GPU targets", "serves torch", "serves Python"):
        table.add_column(name, overflow="fold", no_wrap=name == "wheel")
    for step in made.steps:
        table.add_row(*_row(step))
    width = shutil.get_terminal_size((140, 24)).columns
    Console(width=width, highlight=False, markup=False).print(table)


def _row(step: Step) -> tuple[str, ...]:
    """A wheel's line: its id, what it is built with, its targets, what it serves."""
    cells = step.wheel.cells
    return (
        step.wheel.id,
        step.torch_release,
        step.toolkit or "-",
        step.python,
        " ".join(step.wheel.sm) or "-",
        _runs({cell.torch for cell in cells}),
        _runs({cell.python for cell in cells}),
    )


def _runs(minors: set[str]) -> str:
    """Minors in order, three or more in a row as `3.10-3.14`."""
    runs: list[list[str]] = []
    for minor in sorted(minors, key=lambda one: (one.endswith("t"), version_key(one))):
        before = version_key(runs[-1][-1]) if runs else ()
        after = version_key(minor)
        if before and (before[0], before[1] + 1, before[2]) == after:
            runs[-1].append(minor)
        else:
            runs.append([minor])
    return " ".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else " ".join(run) for run in runs)  # noqa: PLR2004


def _explain(made: Plan, wanted: Matrix, known: Facts) -> None:
    if made.drops:
        click.echo("\nDropped:")
    width = max((len(drop.id) for drop in made.drops), default=0)
    for drop in made.drops:
        click.echo(f"  {drop.id:{width}}  {drop.reason}")
    notes = list(_notes(made, wanted, known))
    if notes:
        click.echo("\nNot known:")
    for note in notes:
        click.echo(f"  {note}")


def _notes(made: Plan, wanted: Matrix, known: Facts) -> Iterator[str]:
    """What the tables of facts leave open for these wheels."""
    for wheel in made.wheels:
        served = tuple(dict.fromkeys(cell.torch for cell in wheel.cells))
        unknown = targets.unknown_sm(known, wheel.cuda, served)
        if not unknown or not targets.spans(wanted, wheel.cuda):
            continue
        base = "the toolkit's list alone counts" if unknown == served else "the other releases' lists count"
        yield (
            f"{wheel.id}: the GPU targets of torch {listing(unknown)} built for {wheel.cuda} "
            f"are not in the tables, so for all and all-major {base}"
        )
