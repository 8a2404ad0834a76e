"""`wheelmill index`: writes the static index of a folder of wheels, and yanks files of it."""

from __future__ import annotations

import datetime as dt
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wheelmill import folder, pages, writer, yanks
from wheelmill.errors import GateError, InputError
from wheelmill.storage import Folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from wheelmill.change import Amend
    from wheelmill.folder import Scan
    from wheelmill.writer import Written

UNITS = {"d": "days", "h": "hours", "m": "minutes"}


def duration(_: click.Context, __: click.Parameter, value: str) -> dt.timedelta:
    """`7d`, `12h`, `30m` or `0d`."""
    found = re.fullmatch(r"(\d{1,5})([dhm])", value)
    if found is None:
        raise click.BadParameter(f"{value!r} is no duration: write a number and d, h or m, such as 7d")
    return dt.timedelta(**{UNITS[found[2]]: int(found[1])})


def _reasons(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """The parts of each FILE=REASON."""
    found = []
    for value in values:
        file, _sign, reason = value.partition("=")
        if not file or not reason.strip() or not reason.isprintable():
            raise click.BadParameter(
                f"{value!r} gives no reason, which pip shows to users: write FILE=REASON on one line"
            )
        found.append((file, reason.strip()))
    return tuple(found)


GRACE = click.option(
    "--grace",
    metavar="DURATION",
    default="7d",
    show_default=True,
    callback=duration,
    help="How long a file stays that is listed no more.",
)


@click.command("index")
@click.argument("dist", required=False, type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--out", "site", type=click.Path(path_type=Path, file_okay=False), required=True)
@click.option("--add", is_flag=True, help="Keep what the index lists besides; else it lists DIST and nothing else.")
@click.option("--full", is_flag=True, help="Read every file and write every page, whatever seems unchanged.")
@click.option(
    "--yank",
    "yanked",
    multiple=True,
    metavar="FILE=REASON",
    callback=_reasons,
    help="Installers leave FILE out unless it is pinned.",
)
@click.option("--unyank", "unyanked", multiple=True, metavar="FILE", help="End the yank of FILE.")
@GRACE
@click.option("--variants/--no-variants", default=None, help="Write variant metadata (PEP 825, a draft) too.")
@click.option("--require-gates", is_flag=True, help="Refuse a wheel without the gates that the matrix demands.")
@click.option("--matrix", "matrix_path", type=click.Path(path_type=Path), default="matrix.yaml", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print the pages and their wheels as JSON.")
def index(
    *,
    dist: Path | None,
    site: Path,
    add: bool,
    full: bool,
    yanked: tuple[tuple[str, str], ...],
    unyanked: tuple[str, ...],
    grace: dt.timedelta,
    variants: bool | None,
    require_gates: bool,
    matrix_path: Path,
    as_json: bool,
) -> None:
    """Index the proven wheels of DIST, a find-links page and a simple index an environment beside the complete one.

    The others are named and left out. Without DIST, yank files of the index.
    """
    amend = _amend(yanked, unyanked)
    options: dict[str, Any] = {"amend": amend, "grace": grace, "variants": variants, "full": full}
    storage = Folder(site)
    if dist is None:
        if not amend and not full and variants is None:
            raise InputError("there is nothing to do without DIST", remedy="name the folder of wheels, or use --yank")
        _report(_rewrite(storage, options), None, site, as_json=as_json)
        return
    gate = _gate(dist, matrix_path) if require_gates else folder.first_fault
    found, written = folder.write(dist, storage, add=add, gate=gate, **options)
    _report(written, found, site, as_json=as_json)


def _amend(yanked: tuple[tuple[str, str], ...], unyanked: tuple[str, ...]) -> dict[str, Amend]:
    now = dt.datetime.now(dt.timezone.utc)
    amend = {file: yanks.yank(reason, now) for file, reason in yanked}
    if both := amend.keys() & set(unyanked):
        raise InputError(f"{min(both)} is to be yanked and its yank ended", remedy="choose one of the two")
    return amend | {file: yanks.unyank(now) for file in unyanked}


def _rewrite(storage: Folder, options: dict[str, Any]) -> Written:
    """Change an index without a folder of wheels."""
    if storage.read("simple/index.json") is None:
        raise InputError(f"{storage.root} holds no index", remedy="write it with `wheelmill index DIST --out SITE`")
    seen: list[bytes | None] = []
    return writer.update(
        storage,
        [],
        {},
        check=lambda _: seen.append(storage.read(writer.SEEN)),
        done=lambda written: folder.keep_seen(storage, seen[0], written),
        **options,
    )


def _report(written: Written, found: Scan | None, site: Path, *, as_json: bool) -> None:
    if as_json:
        left = found.unproven if found else []
        listing = {name: _listed(site / path, name) for name, path in written.pages.items()}
        changed = {"changed": written.changed, "removed": written.removed, "expired": written.expired}
        click.echo(json.dumps({"version": 1, "pages": listing, "left_out": left, **changed}, indent=1))
        return
    for wheel in found.wheels if found else ():
        for note in wheel.notes:
            click.echo(f"note: {note}")
    for file in found.unproven if found else ():
        click.echo(f"left out, not proven to load: {file}")
    for file in written.dropped:
        click.echo(f"left out, an interrupted update changed its bytes: {file}\n  add the wheel again")
    for name, path in written.pages.items():
        click.echo(f"{name}: {site / path}")


def _listed(page: Path, environment: str) -> list[str]:
    return pages.files(pages.lines(page.read_bytes(), pages.environment_top(environment)) or [])


def _gate(dist: Path, matrix_path: Path) -> Callable[[Scan], None]:
    """Raises GateError that tells each wheel without a dynamic gate that the matrix demands, and why."""
    from wheelmill import gates_demand, matrix

    wanted = matrix.load(matrix_path)

    def gate(found: Scan) -> None:
        folder.first_fault(found)
        rows = [(file, *row) for file in found.proven for row in gates_demand.missing_gates(dist / file, wanted)]
        if rows:
            raise GateError(
                "wheels lack gates that the matrix demands before they are published:\n"
                + "\n".join(f"    {name}: {gate}: {why}" for name, gate, why in rows),
                remedy="run `wheelmill test` on each where there is a GPU of its CUDA",
            )

    return gate
