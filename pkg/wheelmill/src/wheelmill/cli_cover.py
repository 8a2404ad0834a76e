"""`wheelmill cover`: where a wheel, anyone's, really loads and computes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wheelmill import claims, cover_view, facts, interpreters, matrix, trial
from wheelmill import cover as engine
from wheelmill.errors import GateError, InputError, MissingError
from wheelmill.names import did_you_mean
from wheelmill.store import Store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wheelmill.claims import Place
    from wheelmill.cover import Report
    from wheelmill.matrix import Matrix
    from wheelmill.trial import Result

WHEEL = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command("cover")
@click.argument("wheels", nargs=-1, required=True, type=WHEEL)
@click.option("--torch", "torches", multiple=True, help="Minors to try, such as 2.13 or 2.9-2.15. Default: the claim.")
@click.option("--python", "pythons", multiple=True, help="Pythons to try, such as 3.11 or 3.10-3.13.")
@click.option(
    "--matrix", "matrix_path", type=click.Path(path_type=Path), help="Default: matrix.yaml where there is one."
)
@click.option(
    "--namespace", help="The operators' namespace. Default: the matrix's, for a wheel that holds its samples."
)
@click.option("--samples", help="The module of samples, as `operators` of the matrix states it.")
@click.option("--store", type=click.Path(path_type=Path, file_okay=False), envvar="WHEELMILL_STORE")
@click.option(
    "--timeout", type=click.FloatRange(min=1), default=trial.TIMEOUT, show_default=True, help="Seconds a cell."
)
@click.option(
    "--lean", is_flag=True, help="Keep nothing that is downloaded: for one torch at a time, and then removed."
)
@click.option("--markdown", is_flag=True, help="Print the table as Markdown.")
@click.option("--json", "as_json", is_flag=True, help="Print the reports as JSON.")
def cover(
    *,
    wheels: tuple[Path, ...],
    torches: tuple[str, ...],
    pythons: tuple[str, ...],
    matrix_path: Path | None,
    namespace: str | None,
    samples: str | None,
    store: Path | None,
    timeout: float,
    lean: bool,
    markdown: bool,
    as_json: bool,
) -> None:
    """Install each WHEEL into a clean environment for each torch and Python it claims, and beside those; import and
    compute with it there; and hold what was measured against what it promises.

    The report lies beside the wheel as WHEEL.cover.json. What was measured is not measured again.
    """
    path = matrix_path or Path("matrix.yaml")
    wanted = matrix.load(path) if matrix_path or path.exists() else None
    known = facts.load(wanted.facts if wanted else None)
    kept = Store(store or (wanted.root if wanted else Path()) / ".wheelmill")
    asked = _expand(torches, list(known.torch)), _expand(pythons, list(known.pythons))
    reports = []
    for wheel in wheels:
        subject = _subject(wheel, wanted, namespace=namespace, samples=samples, timeout=timeout)
        places = claims.places(subject.claim, known, *asked, own=interpreters.ENGINE_PYTHON)
        said = engine.estimate(places, shutil.disk_usage(kept.root).free, lean=lean)
        click.echo(f"{wheel.name}: {said}", err=True)
        log = kept.log(f"{wheel.name}.cover")
        made = engine.keep(kept, subject, engine.run(kept, subject, places, log, tell=_tell, lean=lean))
        engine.publish(made, wheel)
        reports.append(made)
        if not as_json:
            _show(made, markdown=markdown)
    if as_json:
        click.echo(json.dumps({"version": 1, "wheels": [engine.to_json(made) for made in reports]}, indent=1))
    _judge(reports)


def _expand(words: Sequence[str], known: list[str]) -> list[str]:
    """`2.13`, `2.9-2.15` and `2.9,2.10` as the minors that the tables know. Raises InputError for any other word."""
    out: list[str] = []
    for word in (part for text in words for part in text.split(",")):
        first, _, last = word.partition("-")
        for end in (first, last or first):
            if end not in known:
                raise InputError(f"{end} is not in the table of facts", remedy=did_you_mean(end, known))
        out += known[known.index(first) : known.index(last or first) + 1]
    return [name for name in dict.fromkeys(out) if not name.endswith("t") or name in ",".join(words).split(",")]


def _subject(
    wheel: Path, wanted: Matrix | None, *, namespace: str | None, samples: str | None, timeout: float
) -> trial.Subject:
    """The wheel with the smoke call that is known of it: what was asked, else the matrix's, if the wheel is its."""
    subject = engine.subject_of(wheel, timeout=timeout, namespace=namespace, samples=samples)
    operators = wanted.operators if wanted else None
    if namespace or samples or operators is None:
        return subject
    module = operators.samples or operators.namespace
    if module.split(".")[0] not in subject.claim.modules:
        return subject
    return engine.subject_of(wheel, timeout=timeout, namespace=operators.namespace, samples=operators.samples)


def _tell(place: Place, result: Result | None) -> None:
    if result is None:
        click.echo(f"{place.cell.id}: trying", err=True)
        return
    why = f": {' '.join(result.error.split())[:200]}" if result.error else f" in {result.seconds} s"
    click.echo(f"{place.cell.id}: {result.result}{why}", err=True)


def _show(made: Report, *, markdown: bool) -> None:
    if markdown:
        click.echo(cover_view.markdown(made))
        return
    from rich.console import Console

    console = Console(highlight=False)
    console.print(made.subject.file.path.name, markup=False, soft_wrap=True)
    console.print(cover_view.table(made))
    for note in cover_view.notes(made):
        console.print(f"  {note}", markup=False, soft_wrap=True)
    for finding in made.findings:
        console.print(f"{finding.severity}: {finding.rule}: {finding.message}", markup=False, soft_wrap=True)


def _judge(reports: Sequence[Report]) -> None:
    """Raises GateError for a promise that is not kept, MissingError where nothing promised could be measured."""
    broken = [made for made in reports if made.verdict == "fail"]
    if broken:
        lines = [f"    {one.message}" for made in broken for one in made.findings if one.severity == "error"]
        names = ", ".join(made.subject.file.path.name for made in broken)
        why, remedy = engine.ending(one for made in broken for one in made.results)
        raise GateError(
            f"{names} does not keep what it promises:\n" + "\n".join(lines) + why,
            remedy=f"{remedy}{broken[0].findings[0].remedy}",
        )
    unknown = [
        made.subject.file.path.name
        for made in reports
        if made.verdict == "unknown" and any(one.unclaimed is None for one in made.results)
    ]
    if unknown:
        raise MissingError(
            f"no environment that {', '.join(unknown)} promises can be had here, so nothing is known of it",
            remedy="run it where torch's own wheel index and those Pythons can be reached, or name others with --torch",
        )
