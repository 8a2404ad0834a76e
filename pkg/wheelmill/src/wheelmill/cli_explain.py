"""`wheelmill explain`: from a failure's log, or a failing import, to its cause."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wheelmill import explain as explaining
from wheelmill import explain_log
from wheelmill.errors import InputError
from wheelmill.explain_mask import Masking

if TYPE_CHECKING:
    from wheelmill.explain_log import Log

SHOWN, LONGEST = 30, 400
PIPE = "name the file that holds what the failing command printed, or hand it on: `COMMAND 2>&1 | wheelmill explain -`"

EMPTY = """\
no cause is known: the log is empty

what to do: keep what the failing command writes to both streams: `COMMAND 2>&1 | tee build.log`."""
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
@click.argument("log", required=False, type=click.Path(path_type=Path, allow_dash=True))
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
        found, unknown = explaining.explain(io.BytesIO(told.text.encode())), f"{_shown(told.text)}\n\n{UNKNOWN}"
    else:
        read = _read(log)
        found, unknown = explaining.causes(read), UNKNOWN if any(line.text for line in read.lines) else EMPTY
    if as_json:
        click.echo(json.dumps(explaining.to_json(found), indent=1))
    else:
        click.echo("\n".join(explaining.text(found)) if found else unknown)


def _read(log: Path | None) -> Log:
    """The log, or standard input. Raises InputError where there is none to read."""
    try:
        if log is None or str(log) == "-":
            if sys.stdin is None:
                raise InputError("standard input is closed, so there is no log", remedy=PIPE)
            return explain_log.read(sys.stdin.buffer)
        with log.open("rb") as file:
            return explain_log.read(file)
    except OSError as error:
        raise InputError(f"{log} cannot be read, so nothing is explained: {error.strerror}", remedy=PIPE) from error


def _shown(text: str) -> str:
    """What an import printed, masked; of much the beginning and the end."""
    lines = text.splitlines()
    if len(lines) > 2 * SHOWN:
        left = len(lines) - 2 * SHOWN
        lines = [*lines[:SHOWN], f"… {left} lines more …", *lines[-SHOWN:]]
    mask = Masking()
    return "\n".join(mask(line[:LONGEST]) for line in lines)
