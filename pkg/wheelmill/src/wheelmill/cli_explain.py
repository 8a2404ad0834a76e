"""`wheelmill explain`: from a failure's log, or a failing import, to its cause."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import click

from wheelmill import explain as explaining

UNKNOWN = """\
no cause is known for what this log shows

what to do: read from the first complaint on, not from the last line; nothing here says what is wrong.
To have it looked at, send the whole log, not its end, with the output of `python -m torch.utils.collect_env`,
`nvcc --version`, `python -m pip list` and the command that failed. `wheelmill doctor` looks at this machine."""


def _write_page(context: click.Context, _: click.Parameter, path: Path | None) -> None:
    if path is not None:
        from wheelmill import explain_page

        explain_page.write(path, Path.cwd() / "tests" / "explain")
        context.exit()


@click.command("explain")
@click.argument("log", required=False, type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True))
@click.option("--import", "name", metavar="NAME", help="Import that package in a child process, and explain its error.")
@click.option(
    "--python", "program", help="The interpreter to import in. Default: the active environment's, else PATH's."
)
@click.option("--timeout", type=click.FloatRange(min=1), default=120.0, show_default=True, help="Seconds of an import.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@click.option(
    "--write-page",
    type=click.Path(path_type=Path, dir_okay=False),
    callback=_write_page,
    is_eager=True,
    expose_value=False,
    help="Write the page of all causes there, from the rules and their logs in tests/explain, and do nothing else.",
)
def explain(*, log: Path | None, name: str | None, program: str | None, timeout: float, as_json: bool) -> None:
    """The cause of what LOG shows (- is standard input), the lines that prove it, and what to do.

    The status is 0 whether a cause is known or not.
    """
    if (log is None) == (name is None):
        raise click.UsageError("give either a LOG or --import NAME")
    if name is not None:
        from wheelmill import explain_import

        told = explain_import.attempt(name, program, timeout)
        if told.imported:
            click.echo(json.dumps(explaining.to_json([]), indent=1) if as_json else f"{name} imports: {told.note}")
            return
        found, unknown = explaining.explain(io.BytesIO(told.text.encode())), f"{told.text}\n\n{UNKNOWN}"
    else:
        found, unknown = _of_log(log), UNKNOWN
    if as_json:
        click.echo(json.dumps(explaining.to_json(found), indent=1))
    else:
        click.echo("\n".join(explaining.text(found)) if found else unknown)


def _of_log(log: Path | None) -> list[explaining.Cause]:
    if log is None or str(log) == "-":
        return explaining.explain(sys.stdin.buffer)
    with log.open("rb") as file:
        return explaining.explain(file)
