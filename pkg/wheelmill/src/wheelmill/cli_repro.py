"""`wheelmill repro`: builds wheels twice and compares them, or compares two files."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wheelmill import compare, facts, matrix, plan, project, report
from wheelmill import repro as engine
from wheelmill.cli_build import FOLDER, executor_of
from wheelmill.cli_site import container_options, container_settings
from wheelmill.errors import GateError
from wheelmill.local import Local
from wheelmill.lock import NAME
from wheelmill.steps import Site
from wheelmill.store import Store, file_sha256

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wheelmill.findings import Finding
    from wheelmill.model import Plan
    from wheelmill.toolkit import Provider


@click.command("repro")
@click.argument("select", nargs=-1, metavar="[SELECT]... | WHEEL WHEEL")
@click.option("--matrix", "matrix_path", type=click.Path(path_type=Path), default="matrix.yaml", show_default=True)
@click.option("--store", type=FOLDER, envvar="WHEELMILL_STORE", help="Default: .wheelmill beside the matrix.")
@click.option("--executor", type=click.Choice(["auto", "local", "docker"]), default="auto", show_default=True)
@container_options
@click.option("--toolkit", type=click.Choice(["auto", "system", "pypi"]), default="auto", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print what was compared as JSON.")
def repro(
    *,
    select: tuple[str, ...],
    matrix_path: Path,
    store: Path | None,
    executor: str,
    toolkit: Provider,
    as_json: bool,
    **where: Any,
) -> None:
    """Build the wheels that SELECT names twice from scratch, in two folders one after the other, and compare the bytes.

    Or compare two wheel files. The first member that differs is named with its cause.
    """
    files = [Path(word) for word in select]
    if len(files) == len(("one", "other")) and all(path.suffix == ".whl" for path in files):
        rows = {files[1].name: _files(*files)}
    else:
        wanted = matrix.load(matrix_path)
        known = facts.load(wanted.facts)
        todo = plan.make(wanted, known, select)
        kept = Store(store or wanted.root / ".wheelmill")
        kept.lock_file = wanted.root / NAME
        stated, outputs = wanted.project, [kept.root, matrix_path, kept.lock_file]
        source = project.read(wanted.root / stated.path, stated.sources, stated.build_torch, outputs)
        with report.choose([step.wheel.id for step in todo.steps]) as reporter:
            site = Site(
                store=kept,
                facts=known,
                matrix=wanted,
                project=source,
                executor=executor_of(executor, Local(toolkit), container_settings(**where), kept),
                reporter=reporter,
                same_major=wanted.toolkit_minor == "same-major",
            )
            rows = _twice(todo, site)
    _tell(rows, as_json=as_json)


def _files(one: Path, other: Path) -> tuple[str, Finding | None]:
    difference = compare.first_difference(one, other)
    return file_sha256(one), engine.finding(difference) if difference else None


def _twice(todo: Plan, site: Site) -> dict[str, tuple[str, Finding | None]]:
    rows = {}
    for step in todo.steps:
        sha256, found = engine.twice(step, site)
        rows[step.wheel.id] = sha256, found
        site.reporter.done(step.wheel.id, "failed" if found else "built", found.message if found else "the same bytes")
    return rows


def _tell(rows: dict[str, tuple[str, Finding | None]], *, as_json: bool) -> None:
    """Raises GateError where two differ."""
    if as_json:
        listed: Sequence[dict[str, Any]] = [
            {"wheel": name, "sha256": sha256, "identical": found is None, "findings": [asdict(found)] if found else []}
            for name, (sha256, found) in rows.items()
        ]
        click.echo(json.dumps({"version": 1, "wheels": listed}, indent=1))
    else:
        for name, (sha256, found) in rows.items():
            click.echo(f"{name}: {'differs' if found else 'the same bytes twice'}, SHA-256 {sha256}")
    faults = [(name, found) for name, (_, found) in rows.items() if found is not None]
    if faults:
        raise GateError(
            "\n".join(f"{name}: {found.rule}: {found.message}" for name, found in faults),
            remedy="; ".join(dict.fromkeys(found.remedy for _, found in faults)),
        )
