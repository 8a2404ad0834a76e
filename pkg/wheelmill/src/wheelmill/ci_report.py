"""Stage files of any number of jobs and runs, joined: the matrix as a grid, what failed, what was never reported."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict

from wheelmill import ci_limits, ci_stage
from wheelmill.ci_stage import Outcome
from wheelmill.cover_view import escaped
from wheelmill.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from wheelmill.ci_stage import Stage

WORST = ("fail", "missing", "skipped", "pass")
MARKS = {"pass": "✓", "fail": "✗ fail", "missing": "missing", "skipped": "skipped", "": ""}
SM = re.compile(r"sm_\d{2,3}")
# What a runner would take for a command of the step that prints it.
COMMAND = re.compile(r"^(\s*):(?=:)|##(?=\[)", re.MULTILINE)
NEVER = "no job reported it"


class _Build(BaseModel):
    model_config = ConfigDict(frozen=True)

    id: str
    wheels: tuple[ci_stage.WheelId, ...]


class _Gpu(_Build):
    sm: str


class Planned(BaseModel):
    """What a report needs of a plan, as `wheelmill ci --json` prints it."""

    model_config = ConfigDict(frozen=True)

    version: Literal[1]
    part: int
    parts: int
    build: tuple[_Build, ...]
    gpu: tuple[_Gpu, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One wheel in one column: a stage, for `gpu` with the GPU."""

    column: str
    outcome: Outcome


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """`rows` are wheels, `columns` stages. `cells` lacks what was not reached, and what nobody asked for."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: dict[tuple[str, str], Outcome]

    @property
    def faults(self) -> list[Cell]:
        """What failed, and what is missing, in order."""
        found = [(column, self.cells.get((row, column))) for row in self.rows for column in self.columns]
        return [Cell(column=column, outcome=one) for column, one in found if one and one.result in ("fail", "missing")]

    @property
    def verdict(self) -> Literal["pass", "fail"]:
        return "fail" if self.faults or not self.rows else "pass"


def planned(path: Path) -> Planned:
    """Raises InputError where the file is no plan."""
    try:
        return Planned.model_validate_json(path.read_bytes())
    except (OSError, ValueError) as error:
        reason = ci_stage.reason_of(error)
        raise InputError(
            f"{path} is no plan, so what is missing cannot be told: {reason}",
            remedy="write it with `wheelmill ci --json > FILE`",
        ) from error


def join(stages: Iterable[Stage], plans: Sequence[Planned] = ()) -> Report:
    """One report. Of two that tell of the same, the later run's or attempt's counts; of one attempt the worse."""
    cells: dict[tuple[str, str], Outcome] = {}
    order = sorted(stages, key=lambda one: (one.run, one.attempt))
    since: dict[tuple[str, str], tuple[int, int]] = {}
    for stage in order:
        column, when = _column(stage), (stage.run, stage.attempt)
        for outcome in stage.wheels:
            at = (outcome.id, column)
            if since.get(at) != when or _worse(outcome, cells[at]):
                cells[at] = outcome
            since[at] = when
    columns = _columns([*(column for _, column in cells), *(_gpu_column(one.sm) for plan in plans for one in plan.gpu)])
    if plans and "build" not in columns:
        columns = ("build", *columns)
    rows = tuple(
        dict.fromkeys(
            [*(wheel for plan in plans for job in plan.build for wheel in job.wheels), *(wheel for wheel, _ in cells)]
        )
    )
    return Report(rows=rows, columns=columns, cells=_reached(cells | _unreported(cells, columns, plans)))


def _reached(cells: dict[tuple[str, str], Outcome]) -> dict[tuple[str, str], Outcome]:
    """The cells, where a later stage that misses what was not built is skipped: one fault is told once."""
    unbuilt = {wheel for (wheel, column), one in cells.items() if column == "build" and one.result != "pass"}
    return {
        at: one.model_copy(update={"result": "skipped"})
        if at[0] in unbuilt and at[1] != "build" and one.result == "missing"
        else one
        for at, one in cells.items()
    }


def _worse(one: Outcome, other: Outcome) -> bool:
    return WORST.index(one.result) < WORST.index(other.result)


def _column(stage: Stage) -> str:
    return _gpu_column(stage.id.rpartition(".")[2]) if stage.stage == "gpu" else stage.stage


def _gpu_column(sm: str) -> str:
    return f"gpu {sm}" if SM.fullmatch(sm) else "gpu"


def _columns(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(dict.fromkeys(found), key=lambda one: (ci_stage.STAGES.index(one.split()[0]), len(one), one)))


def _unreported(
    cells: dict[tuple[str, str], Outcome], columns: Sequence[str], plans: Sequence[Planned]
) -> dict[tuple[str, str], Outcome]:
    """What the plan holds and no stage file tells of: a stage counts where an earlier one did not end the wheel."""
    gpu = {(wheel, _gpu_column(job.sm)) for plan in plans for job in plan.gpu for wheel in job.wheels}
    found: dict[tuple[str, str], Outcome] = {}
    for wheel in dict.fromkeys(wheel for plan in plans for job in plan.build for wheel in job.wheels):
        for column in columns:
            at = (wheel, column)
            wanted = at in gpu if column.startswith("gpu") else True
            if at not in cells and wanted:
                found[at] = Outcome(id=wheel, result="missing", cause=NEVER)
            outcome = cells.get(at) or found.get(at)
            if outcome is not None and column == "build" and outcome.result != "pass":
                break
    return found


def to_json(report: Report) -> dict[str, Any]:
    return {
        "version": 1,
        "verdict": report.verdict,
        "stages": list(report.columns),
        "wheels": [
            {
                "id": row,
                "stages": {
                    column: report.cells[row, column].model_dump(exclude={"id"})
                    for column in report.columns
                    if (row, column) in report.cells
                },
            }
            for row in report.rows
        ],
        "faults": [{"id": one.outcome.id, "stage": one.column, "cause": one.outcome.cause} for one in report.faults],
    }


def lines(report: Report) -> list[list[str]]:
    """The grid: its head, then a line a wheel."""
    body = [[row, *(_mark(report.cells.get((row, column))) for column in report.columns)] for row in report.rows]
    return [["wheel", *report.columns], *body]


def _mark(outcome: Outcome | None) -> str:
    return MARKS[outcome.result if outcome else ""]


def summary(report: Report) -> str:
    results = [report.cells[at].result for at in report.cells]
    counted = ", ".join(f"{results.count(word)} {word}" for word in reversed(WORST) if word in results)
    return f"{len(report.rows)} wheels: {counted or 'nothing was reported'}"


def text(report: Report) -> str:
    """For a terminal."""
    grid = lines(report)
    widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
    out = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in grid]
    for fault in report.faults:
        out += ["", f"{fault.outcome.id}: {fault.column} {fault.outcome.result}: {fault.outcome.cause}"]
        out += [f"    {line}" for line in fault.outcome.excerpt.splitlines()]
    return _inert(ci_stage.plain("\n".join([*out, "", summary(report)])))


def _inert(text: str) -> str:
    """The text with no line that a CI system's runner acts on: it holds what other jobs wrote."""
    return COMMAND.sub(lambda found: f"{found[1]}: " if found[1] is not None else "# #", text)


def markdown(report: Report, title: str, room: int | None = None) -> str:
    """For a step's summary of at most `room` bytes: the grid, then what failed, as far as there is room."""
    most = ci_limits.number("step-summary") if room is None else room
    head, *body = lines(report)
    out = [f"### {escaped(title)}", "", escaped(summary(report)), ""]
    table = ["| " + " | ".join(map(escaped, head)) + " |", "|---" * len(head) + "|"]
    out += [*table, *("| " + " | ".join(map(escaped, line)) + " |" for line in body)]
    # Half is for the grid, so that what failed is told whatever the matrix's size.
    told = _within(out, most // 2, "| … | more rows than a summary holds |")
    return _within([told, *_told(report)], most, "\n…and more, which the logs and the report's JSON tell.")


def _told(report: Report) -> Iterator[str]:
    for fault in report.faults:
        outcome = fault.outcome
        cause = " ".join(ci_stage.plain(outcome.cause).split())
        yield f"\n**{escaped(outcome.id)}**: {fault.column} {outcome.result}: {escaped(cause)}"
        if outcome.excerpt:
            inside = ci_stage.plain(outcome.excerpt).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
            # <pre> begins its line: else a blank line ends it for Markdown, and what follows is no text any more.
            yield f"\n<details><summary>log</summary>\n\n<pre>\n{inside}\n</pre>\n</details>"


def _within(parts: Iterable[str], room: int, rest: str) -> str:
    """The parts, a line each, as far as there is room for them and `rest`, which stands for those left out."""
    out: list[str] = []
    size = len(rest.encode()) + 1
    for part in parts:
        size += len(part.encode()) + 1
        if size > room:
            out.append(rest)
            break
        out.append(part)
    return "\n".join(out) + "\n"
