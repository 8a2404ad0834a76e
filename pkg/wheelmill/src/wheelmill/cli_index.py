"""`wheelmill index`: writes the static index of a folder of wheels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wheelmill import index as engine
from wheelmill.errors import GateError

if TYPE_CHECKING:
    from wheelmill.index import File


@click.command("index")
@click.argument("dist", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--out", "site", type=click.Path(path_type=Path, file_okay=False), required=True)
@click.option("--require-gates", is_flag=True, help="Refuse a wheel without the gates that the matrix demands.")
@click.option("--matrix", "matrix_path", type=click.Path(path_type=Path), default="matrix.yaml", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print the pages and their wheels as JSON.")
def index(*, dist: Path, site: Path, require_gates: bool, matrix_path: Path, as_json: bool) -> None:
    """Index the proven wheels of DIST, one find-links page an environment; the others are named and left out."""
    files, faults = engine.collect(dist)
    if faults:
        raise faults[0]
    proven = [file for file in files if file.proven]
    unproven = [file for file in files if not file.proven]
    if not proven:
        raise GateError(
            f"no wheel of {dist} was proven to load, so there is nothing to index",
            remedy="run `wheelmill build` where the torch of its cells can be had",
        )
    if require_gates:
        _require_gates(proven, matrix_path)
    pages = engine.write(proven, site)
    if as_json:
        listing = {name: [f.path.name for f in proven if name in f.environments] for name in pages}
        left = [file.path.name for file in unproven]
        click.echo(json.dumps({"version": 1, "pages": listing, "left_out": left}, indent=1))
        return
    for file in unproven:
        click.echo(f"left out, not proven to load: {file.path.name}")
    for name, page in pages.items():
        click.echo(f"{name}: {page}")


def _require_gates(files: list[File], matrix_path: Path) -> None:
    """Raises GateError that tells each wheel without a dynamic gate that the matrix demands, and why."""
    from wheelmill import gates_demand, matrix

    wanted = matrix.load(matrix_path)
    rows = [
        (file.path.name, gate, why) for file in files for gate, why in gates_demand.missing_gates(file.path, wanted)
    ]
    if rows:
        raise GateError(
            "wheels lack gates that the matrix demands before they are published:\n"
            + "\n".join(f"    {name}: {gate}: {why}" for name, gate, why in rows),
            remedy="run `wheelmill test` on each where there is a GPU of its CUDA",
        )
