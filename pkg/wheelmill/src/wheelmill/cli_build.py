"""`wheelmill build`: runs the steps of a plan and says how to install what came out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from packaging.utils import parse_wheel_filename

from wheelmill import auto, container, facts, folder, matrix, plan, project, report, sandbox
from wheelmill import build as engine
from wheelmill import compiler_cache as caching
from wheelmill.cli_site import container_options, container_settings
from wheelmill.errors import WheelmillError
from wheelmill.local import Local
from wheelmill.lock import NAME
from wheelmill.steps import Site
from wheelmill.storage import Folder
from wheelmill.store import Store

if TYPE_CHECKING:
    from wheelmill.build import Outcome
    from wheelmill.steps import Executor
    from wheelmill.toolkit import Provider


class FailedError(WheelmillError):
    """Some wheels failed; carries the exit code of the first one's cause."""


def _raise_failures(outcomes: list[Outcome]) -> None:
    errors = [(outcome.wheel, outcome.error) for outcome in outcomes if outcome.error is not None]
    if not errors:
        return
    text = "\n".join(f"{wheel}: {error}\n  what to do: {error.remedy}" for wheel, error in errors)
    failure = FailedError(f"{len(errors)} of {len(outcomes)} wheels failed\n{text}")
    failure.exit_code = errors[0][1].exit_code  # type: ignore[misc]
    raise failure


PATH = click.Path(path_type=Path)
FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command("build")
@click.argument("select", nargs=-1)
@click.option("--matrix", "matrix_path", type=PATH, default="matrix.yaml", show_default=True)
@click.option("--out", type=FOLDER, default="dist", show_default=True, help="Where wheels and manifests go.")
@click.option("--site", type=FOLDER, default="site", show_default=True, help="Where the index goes.")
@click.option("--store", type=FOLDER, envvar="WHEELMILL_STORE", help="Default: .wheelmill beside the matrix.")
@click.option("--executor", type=click.Choice(["auto", "local", "docker"]), default="auto", show_default=True)
@container_options
@click.option("--toolkit", type=click.Choice(["auto", "system", "pypi"]), default="auto", show_default=True)
@click.option("--lock", is_flag=True, help="Pin in the lock file what `local` resolves too, as `docker` always does.")
@click.option("--lock-file", type=PATH, envvar="WHEELMILL_LOCK", help="Default: wheelmill.lock beside the matrix.")
@click.option("--same-major", is_flag=True, help="Let another minor of the CUDA's major build, as toolkit.minor does.")
@click.option(
    "--prove/--no-prove", default=True, help="Install each wheel and compute with it; else it is not indexed."
)
@click.option(
    "--in",
    "scope",
    type=click.Choice(["first", "torches", "all"]),
    default="torches",
    show_default=True,
    help="Prove in the first cell that is available, in one for each torch, or in all.",
)
@click.option("--repro", is_flag=True, help="Build each wheel a second time too; other bytes are an error.")
@click.option(
    "--compiler-cache",
    type=PATH,
    envvar="WHEELMILL_COMPILER_CACHE",
    help="A folder that keeps what compilers made, for later builds; at most 2 GiB.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what became of each wheel as JSON.")
def build(  # noqa: PLR0913  a verb has as many as it has options
    *,
    select: tuple[str, ...],
    matrix_path: Path,
    out: Path,
    site: Path,
    store: Path | None,
    executor: str,
    toolkit: Provider,
    lock: bool,
    lock_file: Path | None,
    same_major: bool,
    prove: bool,
    scope: engine.Scope,
    repro: bool,
    compiler_cache: Path | None,
    as_json: bool,
    **where: Any,
) -> None:
    """Build, check and prove the wheels that SELECT names (globs on ids; all without one), and index them.

    A wheel whose inputs did not change is not built again; an interrupted run goes on where it was.
    """
    wanted = matrix.load(matrix_path)
    known = facts.load(wanted.facts)
    todo = plan.make(wanted, known, select)
    kept = Store(store or wanted.root / ".wheelmill")
    kept.lock_file, kept.adds_to_lock = lock_file or wanted.root / NAME, lock
    sandbox.sweep_left(kept)
    stated = wanted.project
    outputs = [
        kept.root,
        out,
        site,
        matrix_path,
        kept.lock_file,
        *([compiler_cache / caching.NAME] if compiler_cache else []),
    ]
    source = project.read(wanted.root / stated.path, stated.sources, stated.build_torch, outputs)
    settings = container_settings(**where)
    with report.choose([step.wheel.id for step in todo.steps]) as reporter:
        shared = Site(
            store=kept,
            facts=known,
            matrix=wanted,
            project=source,
            executor=executor_of(executor, Local(toolkit), settings, kept),
            reporter=reporter,
            same_major=same_major or wanted.toolkit_minor == "same-major",
            cache=caching.open_folder(compiler_cache, kept.root, reporter.note),
        )
        outcomes = engine.run(todo, shared, out, scope=scope if prove else None, repeat=repro)
        if shared.cache is not None:
            reporter.note(shared.cache.told())
    pages = _index(outcomes, out, site)
    if as_json:
        cached = {"compiler_cache": shared.cache.to_json() if shared.cache else None} if compiler_cache else {}
        click.echo(json.dumps({**engine.to_json(outcomes), **cached}, indent=1))
    elif pages:
        click.echo(f"\nThe index is {site}; install with\n")
        for command in engine.commands(outcomes, pages, _name(outcomes)):
            click.echo(f"    {command}")
        click.echo()
    _raise_failures(outcomes)


def executor_of(name: str, local: Local, settings: container.Settings, store: Store) -> Executor:
    """The executor of that name, ready to build."""
    match name:
        case "local":
            return local
        case "docker":
            return container.start(settings, store)
        case _:
            return auto.Auto(local, settings)


def _index(outcomes: list[Outcome], out: Path, site: Path) -> dict[str, Path]:
    """Index what the output folder holds when this run proved something; the pages by environment."""
    if not any(outcome.environment for outcome in outcomes):
        return {}

    def tell(found: folder.Scan) -> None:
        for fault in found.faults:
            click.echo(f"left out of the index: {fault}", err=True)

    _, written = folder.write(out, Folder(site), gate=tell)
    return {name: site / path for name, path in written.pages.items()}


def _name(outcomes: list[Outcome]) -> str:
    """The project's name as its wheels' files give it."""
    names = (parse_wheel_filename(outcome.file.name)[0] for outcome in outcomes if outcome.file)
    return next(names, "")
