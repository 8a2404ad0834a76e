"""`wheelmill ci`: the plan as jobs of a CI system, one job's stage, and the report of them all."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wheelmill import ci_change, ci_github, ci_jobs, ci_stage, facts, matrix
from wheelmill import plan as planning
from wheelmill.errors import GateError, InputError, WheelmillError

if TYPE_CHECKING:
    from wheelmill.ci_jobs import Build, Gpu, Part

CAPABILITY = re.compile(r"(?:sm_)?(\d{1,2})\.?(\d)")
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
OPTIONS = "wheelmill.ci.options"


class Jobs(click.Group):
    """The verb itself prints the jobs: what is no subcommand is a pattern or an option of that."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = ["jobs", *args]
        return super().parse_args(ctx, args)


class WithOptions(click.Command):
    """Keeps what follows `--` apart, for the verb that is called."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own, rest = args, list[str]()
        if "--" in args:
            at = args.index("--")
            own, rest = args[:at], args[at + 1 :]
        ctx.meta[OPTIONS] = tuple(rest)
        return super().parse_args(ctx, own)


matrix_option = click.option("--matrix", "matrix_path", type=FILE, default="matrix.yaml", show_default=True)


@click.group("ci", cls=Jobs)
def ci() -> None:
    """The matrix as jobs of GitHub Actions. Without a subcommand it prints the jobs: `ci [SELECT…]` is `ci jobs`."""


@ci.command("jobs")
@click.argument("select", nargs=-1)
@matrix_option
@click.option("--scope", type=click.Choice(["all", "change"]), default="all", show_default=True)
@click.option("--since", metavar="REF", help="change: the commit that the change is against.")
@click.option("--gpu", "gpus", multiple=True, metavar="SM", help="Test on GPUs of that SM too, such as 9.0 or sm_90.")
@click.option(
    "--jobs", type=click.IntRange(1, ci_jobs.MOST), default=ci_jobs.MOST, show_default=True, help="Jobs of a matrix."
)
@click.option("--per-job", type=click.IntRange(min=1), default=8, show_default=True, help="Wheels of a job at most.")
@click.option("--part", type=click.IntRange(min=1), default=1, show_default=True, help="Which workflow run's jobs.")
@click.option("--write", is_flag=True, help="Write the workflow of this project, and do nothing else.")
@click.option("--check", is_flag=True, help="Say whether the workflow is what this engine writes; 1 where it is not.")
@click.option("--json", "as_json", is_flag=True, help="Print the jobs as JSON.")
@click.option("--github", is_flag=True, help="Write them as outputs of this step of a workflow.")
def jobs(*, select: tuple[str, ...], matrix_path: Path, as_json: bool, github: bool, **asked: Any) -> None:
    """Print the jobs that build, and on GPUs test, the wheels that SELECT names (globs on ids; all without one).

    A pull request builds a small set of them: --scope change. Words in one argument count as several.
    """
    from wheelmill import ci_template

    if asked["write"] or asked["check"]:
        click.echo(ci_template.write(matrix_path) if asked["write"] else ci_template.check(matrix_path))
        return
    part = _part(matrix_path, _words(select), asked)
    if github:
        _, project = ci_template.place(matrix_path)
        ci_github.output(ci_jobs.outputs(part, ci_jobs.set_name(part.part, project, matrix_path.name, _words(select))))
        ci_github.summary(_markdown(part))
    if as_json:
        click.echo(json.dumps(ci_jobs.to_json(part), indent=1))
    elif not github:
        _show(part)


def _words(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for text in texts for word in text.split())


def _part(path: Path, select: tuple[str, ...], asked: dict[str, Any]) -> Part:
    from wheelmill import ci_known

    wanted = matrix.load(path)
    known = facts.load(wanted.facts)
    made = planning.make(wanted, known, select)
    inputs = ci_known.gather(wanted, list(dict.fromkeys(wheel.cuda for wheel in made.wheels)))
    if asked["scope"] == "change":
        from wheelmill import ci_since

        before, change = ci_since.read(wanted, asked["since"], inputs.sources)
        made = ci_change.narrowed(made, before, change)
    elif asked["since"]:
        raise InputError("--since says what a change is against", remedy="add --scope change, or leave it out")
    if not made.steps:
        raise InputError(f"{path} plans no wheel", remedy="`wheelmill plan --explain` says why each was dropped")
    options = ci_jobs.Options(gpus=capabilities(asked["gpus"]), jobs=asked["jobs"], per_job=asked["per_job"])
    found = ci_jobs.parts(made, ci_jobs.identities(made, known, inputs), options)
    if asked["part"] > len(found):
        raise InputError(
            f"there is no part {asked['part']}: these jobs are {len(found)} workflow runs",
            remedy=f"name a part from 1 to {len(found)}",
        )
    part: Part = found[asked["part"] - 1]
    return part


def capabilities(texts: tuple[str, ...]) -> tuple[str, ...]:
    """`9.0`, `sm_90`, `90`, several in one argument or a JSON list of them, as `9.0`. Raises InputError for others."""
    found: dict[str, None] = {}
    for word in (word for text in texts for word in re.split(r"[\s,\[\]\"']+", text) if word):
        match = CAPABILITY.fullmatch(word)
        if match is None:
            raise InputError(f"{word!r} is no SM", remedy="write it as 9.0 or sm_90, or as a JSON list of those")
        found[f"{match[1]}.{match[2]}"] = None
    return tuple(found)


def _show(part: Part) -> None:
    every: tuple[Build | Gpu, ...] = (*part.build, *part.gpu)
    for job in every:
        click.echo(f"{job.id}  {job.key}  {' '.join(job.wheels)}")
    click.echo(_counted(part))


def _counted(part: Part) -> str:
    which = f" (part {part.part} of {part.parts})" if part.parts > 1 else ""
    many = f"{len(part.build)} build jobs and {len(part.gpu)} GPU jobs{which}"
    return f"{many} of {part.wheels} wheels that serve {part.cells} cells"


def _markdown(part: Part) -> str:
    count: dict[str, list[int]] = {}
    for job in part.build:
        found = count.setdefault(job.cuda, [0, 0, 0])
        found[0], found[1] = found[0] + 1, found[1] + len(job.wheels)
        found[2] += sum(gpu.group == job.id for gpu in part.gpu)
    rows = [f"| {cuda} | {many[0]} | {many[1]} | {many[2]} |" for cuda, many in count.items()]
    head = ["| CUDA | build jobs | wheels | GPU jobs |", "|---|---|---|---|"]
    return "\n".join(["### Plan", "", _counted(part), "", *head, *rows, ""])


class StageError(WheelmillError):
    """Some wheels of a stage did not pass; carries the worst exit code of the verb."""


@ci.command("run", cls=WithOptions)
@click.argument("stage", type=click.Choice(ci_stage.STAGES))
@click.argument("wheels", nargs=-1, required=True, metavar="WHEEL-ID...")
@matrix_option
@click.option("--dist", type=FOLDER, default="dist", show_default=True, help="Where the wheels are, or go.")
@click.option("--out", type=FOLDER, default="ci", show_default=True, help="Where the stage file goes.")
@click.option("--id", "id_", metavar="ID", help="The job's id, which the stage file is named by. Default: the wheels'.")
@click.option("--options", "text", default="", metavar="TEXT", help="Options of the verb in one text, as a shell has.")
@click.pass_context
def run(ctx: click.Context, /, *, stage: ci_stage.StageName, wheels: tuple[str, ...], text: str, **asked: Any) -> None:
    """Run one stage for the wheels of a job, each whatever becomes of the others, and write what became of them.

    Options after -- go to the verb: build, audit, cover, or test for cpu and gpu.
    """
    from wheelmill import ci_report, ci_run
    from wheelmill.ci_secrets import Mask

    named = tuple(dict.fromkeys(_words(wheels)))
    if not named or not all(map(ID.fullmatch, named)):
        raise InputError(
            f"{' '.join(named)!r} is no list of wheels' ids",
            remedy="name each of the job's wheels by its id, as `wheelmill ci` prints them",
        )
    run_, attempt = ci_github.attempt()
    job = ci_run.Job(
        stage=stage,
        id=asked["id_"] or ci_jobs.group_id(named),
        wheels=named,
        matrix=asked["matrix_path"],
        dist=asked["dist"],
        out=asked["out"],
        options=(*_split(text), *ctx.meta[OPTIONS]),
        mask=Mask(os.environ),
        tell=lambda line: click.echo(line, err=True),
        run=run_,
        attempt=attempt,
    )
    try:
        code = ci_run.run(job)
    finally:  # a job that is stopped tells how far it came
        report = ci_report.join(ci_run.written(job))
        ci_github.summary(ci_report.markdown(report, f"{stage} {job.id}", ci_github.room()))
        click.echo(ci_report.text(report))
    if code:
        faults = report.faults
        failure = StageError(
            f"{stage} of {job.id}: {len(faults)} of {len(named)} wheels did not pass, first {faults[0].outcome.id}: "
            f"{faults[0].outcome.cause}",
            remedy=f"see each cause above; the logs are in {job.out}",
        )
        failure.exit_code = code  # type: ignore[misc]
        raise failure


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InputError(f"--options cannot be split as a shell would: {error}", remedy="close its quotes") from error


@ci.command("report")
@click.argument("folders", nargs=-1, required=True, type=FOLDER, metavar="DIR...")
@click.option("--plan", "plans", multiple=True, type=FILE, help="What `ci --json` printed, a part each.")
@click.option("--markdown", is_flag=True, help="Print the report as Markdown.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def report(*, folders: tuple[Path, ...], plans: tuple[Path, ...], markdown: bool, as_json: bool) -> None:
    """Join the stage files of any number of jobs and runs: the matrix as a grid, each failure with its log."""
    from wheelmill import ci_report, ci_run

    made = ci_report.join(ci_run.gathered(folders), [ci_report.planned(path) for path in plans])
    ci_github.summary(ci_report.markdown(made, "Wheels", ci_github.room()))
    if as_json:
        click.echo(json.dumps(ci_report.to_json(made), indent=1))
    elif markdown:
        click.echo(ci_report.markdown(made, "Wheels"))
    else:
        click.echo(ci_report.text(made))
    if not made.rows:
        raise GateError(
            f"{' '.join(map(str, folders))} holds no report of a stage, so nothing is known of any wheel",
            remedy="name the folders into which the artifacts ci-… were downloaded, and what is planned with --plan",
        )
    if made.verdict == "fail":
        raise GateError(
            f"{len(made.faults)} stages of wheels failed or are missing",
            remedy="see each cause above; run the failed jobs again",
        )


@ci.command("join")
@click.argument("folders", nargs=-1, required=True, type=FOLDER, metavar="DIR...")
@click.option("--dist", type=FOLDER, default="dist", show_default=True, help="Where the wheels are.")
def join(*, folders: tuple[Path, ...], dist: Path) -> None:
    """Put the reports that several jobs wrote of the wheels in DIST beside them: of several GPUs, one report of all."""
    from wheelmill import ci_proofs

    for line in ci_proofs.join(folders, dist):
        click.echo(line)
