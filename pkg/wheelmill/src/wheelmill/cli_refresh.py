"""`wheelmill refresh`: the tables of facts and the image pins, brought up to what the servers say."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wheelmill import facts, images, refresh_read
from wheelmill.errors import GateError, InputError, MissingError
from wheelmill.refresh_answers import Unreached
from wheelmill.store import write_atomic
from wheelmill.web import Web

if TYPE_CHECKING:
    from wheelmill.refresh import Result
    from wheelmill.refresh_answers import Answers

FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)


@click.command("refresh")
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 where something would change.")
@click.option(
    "--summary",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write what changed and what is left to a person, as Markdown for a pull request.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--pypi", default=refresh_read.PYPI, show_default=True, help="PyPI's simple index, or a mirror of it.")
@click.option("--torch-index", metavar="URL", help="torch's own index, with {cuda}. Default: the one in the tables.")
@click.option("--tables", type=FOLDER, default=facts.DATA, help="The folder of the tables. Default: this engine's.")
@click.option("--images/--no-images", "with_images", default=True, help="Refresh the pins of the container images too.")
def refresh(
    *,
    check: bool,
    summary: Path | None,
    as_json: bool,
    pypi: str,
    torch_index: str | None,
    tables: Path,
    with_images: bool,
) -> None:
    """Bring the tables of facts, then the image pins, up to what PyPI, torch's index and the registries say.

    A row is changed only to say more, by its own source. Where a server contradicts a row, or cannot be read, the
    row stays and that is told; where none can be read, the exit code is 3.
    """
    from wheelmill import refresh as refreshing
    from wheelmill import refresh_tables, refresh_view

    today = dt.datetime.now(dt.timezone.utc).date().isoformat()
    old = refresh_tables.texts(tables)
    known = facts.load(tables=tables)
    places = refresh_read.Places(pypi=pypi, torch=_template(torch_index or known.index))
    said = refresh_read.read(known, places, Web())
    result = refreshing.compare(known, said, today)
    new = refresh_tables.changed(old, result, today)
    if not check:
        refresh_tables.write(tables, old, new)
    pinned: tuple[str, ...] = ()
    if with_images:
        pinned, result = _images(result, today, check=check)
    if summary is not None:
        write_atomic(summary, refresh_view.markdown(result, pinned))
    if as_json:
        click.echo(json.dumps(refresh_view.to_json(result, pinned, written=not check), indent=1))
    else:
        for line in refresh_view.lines(result, pinned):
            click.echo(line)
    _end(said, pinned, refresh_view.changes_of(result, pinned), check=check)


def _template(index: str) -> str:
    try:
        if index.format(cuda="cpu") != index:
            return index
    except (AttributeError, KeyError, IndexError, ValueError):
        pass
    raise InputError(f"--torch-index {index[:200]} holds no {{cuda}}", remedy="write https://HOST/whl/{cuda}")


def _images(result: Result, date: str, *, check: bool) -> tuple[tuple[str, ...], Result]:
    """The files of docker/ that change, and the result with why nobody knows where the servers gave no answer."""
    from wheelmill import image_refresh

    try:
        with tempfile.TemporaryDirectory(prefix="wheelmill-refresh-") as folder:
            # A bad answer then leaves docker/ as it is, and so does a look.
            copy = images.load(Path(shutil.copytree(images.FOLDER, Path(folder) / "docker")))
            changed = image_refresh.refresh(copy, date=date)
            if not check:
                _take(copy.folder, changed)
            return changed, result
    except (MissingError, InputError) as error:
        unreached = Unreached(source="the image pins", why=str(error))
        return (), replace(result, unreached=(*result.unreached, unreached))


def _take(folder: Path, changed: tuple[str, ...]) -> None:
    """The changed files into docker/; one that belongs to no pin any more leaves it."""
    for name in changed:
        if (folder / name).exists():
            write_atomic(images.FOLDER / name, (folder / name).read_bytes())
        else:
            (images.FOLDER / name).unlink()


def _end(said: Answers, pinned: tuple[str, ...], changes: int, *, check: bool) -> None:
    nothing = said.torch is None and said.toolkits is None and said.variants is None and not said.runtimes
    if nothing and not pinned:
        raise MissingError(
            "no server gave an answer, so nothing is known of new releases and nothing changed",
            remedy="run it where PyPI can be reached, or name a mirror with --pypi",
        )
    if check and changes:
        raise GateError(
            f"{changes} facts or pins are behind what the servers say", remedy="run `wheelmill refresh` without --check"
        )
