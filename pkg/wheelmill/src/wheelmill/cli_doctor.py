"""`wheelmill doctor`: what on this machine, in a project or in an installed package stands in the way."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import click

from wheelmill import doctor as doctoring
from wheelmill import doctor_view, facts, which_read
from wheelmill.errors import GateError, InputError, MissingError

NARROWEST = 60


@click.command()
@click.argument("project", required=False, type=click.Path(path_type=Path))
@click.option("--package", metavar="NAME", help="Look at this installed package too.")
@click.option("--python", "program", help="The interpreter to ask. Default: the active environment's, else PATH's.")
@click.option("--json", "as_json", is_flag=True, help="Print the facts and the findings as JSON.")
def doctor(*, project: Path | None, package: str | None, program: str | None, as_json: bool) -> None:
    """Check this machine, and the folder PROJECT or an installed package: what will happen, and what mends it.

    Nothing is imported, built or changed. The status is 0 where nothing stands in the way, else 1.
    """
    if project is not None and package is not None:
        raise InputError("PROJECT and --package exclude one another", remedy="ask twice")
    if package is not None and not package.strip():
        raise InputError("--package names no package", remedy="write --package NAME")
    try:
        asked = which_read.interpreter(program)
        answer = doctoring.examine(asked, facts.load(), project=project, package=package)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise MissingError(
            f"this machine cannot be looked at: {error.strerror or error}{where}",
            remedy="stand in a folder that exists, and let TMPDIR name one that can be written to",
        ) from error
    if as_json:
        click.echo(json.dumps(doctor_view.to_json(answer), indent=1))
    else:
        _show(answer)
    errors = [one for one in answer.findings if one.severity == "error"]
    if errors:
        count = f"{len(errors)} things stand" if len(errors) > 1 else "one thing stands"
        raise GateError(f"{count} in the way; first: {errors[0].so}", remedy=errors[0].mend)


def _show(answer: doctoring.Answer) -> None:
    from rich.console import Console  # slow to import, and JSON needs none of it

    width = max(shutil.get_terminal_size((120, 24)).columns, NARROWEST)
    doctor_view.show(answer, Console(width=width, highlight=False, markup=False))
