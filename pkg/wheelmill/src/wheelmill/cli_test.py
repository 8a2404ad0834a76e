"""`wheelmill test`: the dynamic gates, on the very file that will be published."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wheelmill import explain, gates, gates_files, gates_host, gates_view
from wheelmill.errors import GateError, InputError, MissingError
from wheelmill.gates import Asked
from wheelmill.names import did_you_mean
from wheelmill.store import Store

if TYPE_CHECKING:
    from wheelmill.claims import Place
    from wheelmill.gates import Report, Subject
    from wheelmill.gates_docker import Docker
    from wheelmill.gates_host import Beside
    from wheelmill.matrix import Matrix

FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
DEFAULT = "ops,gradcheck,robust,sanitize,bench"
WIDE = 160  # of a log or a file
UNIT, SANITIZE = 300.0, 600.0


@click.command("test")
@click.argument("wheel", type=FILE)
@click.option("--gates", "gates_text", help=f"Some of {', '.join(gates.GATES)}. Default: all, and pytest with --tests.")
@click.option("--operator", "operators", multiple=True, help="Only these operators.")
@click.option("--executor", type=click.Choice(["host", "docker"]), default="host", show_default=True)
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", show_default=True)
@click.option("--require-gpu", is_flag=True, help="The same as --device cuda: without a usable GPU, exit with 3.")
@click.option("--python", type=click.Path(path_type=Path), help="An interpreter that has torch, to test beside.")
@click.option("--torch", "torch_minor", help="The torch minor of a clean environment. Default: the newest claimed.")
@click.option("--image", help="docker: the image to run in. Default: the CUDA's image.")
@click.option("--mount", "mounts", multiple=True, metavar="HOST:CONTAINER", help="docker: mount more, read-only.")
@click.option("--env", "env", multiple=True, metavar="NAME=VALUE", help="docker: variables of the container.")
@click.option(
    "--tests",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The project's own tests, for pytest.",
)
@click.option("--matrix", "matrix_path", type=FILE, help="Default: matrix.yaml where there is one.")
@click.option("--namespace", help="The operators' namespace. Default: the matrix's.")
@click.option("--samples", help="The module of samples, as `operators` of the matrix states it.")
@click.option("--suppressions", type=FILE, help="Reports of compute-sanitizer that are accepted, as TOML.")
@click.option("--sanitizer", help="compute-sanitizer, where it is not on PATH.")
@click.option("--baseline", type=FILE, help="Accepted times of this card.")
@click.option(
    "--accept", type=click.Path(path_type=Path, dir_okay=False), help="Write the times there as accepted ones."
)
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="Write the times there as SVG.")
@click.option("--threshold", type=click.FloatRange(min=0), default=0.1, show_default=True, help="How much slower.")
@click.option("--timeout", type=click.FloatRange(min=1), default=UNIT, show_default=True, help="Seconds a unit.")
@click.option(
    "--sanitize-timeout", type=click.FloatRange(min=1), default=SANITIZE, show_default=True, help="Under a sanitizer."
)
@click.option("--jobs", type=click.IntRange(min=1), help="Units at a time. Default: one for four cores, at most 8.")
@click.option("--store", type=click.Path(path_type=Path, file_okay=False), envvar="WHEELMILL_STORE")
@click.option("--fresh", is_flag=True, help="Run again what an earlier run of the same has measured.")
@click.option("--markdown", is_flag=True, help="Print the report as Markdown.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def test(wheel: Path, **options: Any) -> None:
    """Call every operator of WHEEL, and hold values, gradients, memory, streams and times against what they must be.

    The report lies beside the wheel as WHEEL.gates.json. What an interrupted run has measured is kept.
    """
    path = options["matrix_path"] or (Path("matrix.yaml") if Path("matrix.yaml").exists() else None)
    wanted = _matrix(path)
    kept = Store(options["store"] or (wanted.root if wanted else Path()) / ".wheelmill")
    one, asked = _subject(wheel, wanted, options), _asked(options)
    if asked.device == "cuda" and "cuda" not in one.devices:
        raise InputError(
            f"a GPU was asked for, and {wheel.name} holds no code for one",
            remedy="test it with --device cpu, or name the wheel of a CUDA",
        )
    if one.namespace is None and set(asked.gates) - {"pytest"}:
        raise InputError(
            f"nothing says which operators {wheel.name} registers",
            remedy="state `operators` in matrix.yaml, or --namespace and --samples",
        )
    log = kept.log(f"{wheel.name}.test")
    told = _run(kept, one, asked, options, log)
    made = gates.report(one, asked, told, options["executor"], kept.record("gates", one.sha256))
    gates.keep(kept, made, wheel)
    _show(made, markdown=options["markdown"], as_json=options["as_json"])
    if options["accept"]:
        gates_files.accept(made, options["accept"])
    if options["plot"]:
        from wheelmill import gates_plot

        click.echo(gates_plot.write(made, options["plot"]), err=True)
    _judge(made, log)
    lacking = [row for row in told["rows"] if row["missing"] and row["device"] != "cpu"]
    if lacking and asked.device == "cuda":
        raise MissingError(
            f"a GPU was asked for, and {len(lacking)} units were not run, first {lacking[0]['unit']}: "
            f"{lacking[0]['reason']}",
            remedy="provide what is missing and run it again, which runs these alone; or leave --require-gpu out",
        )


def _matrix(path: Path | None) -> Matrix | None:
    if path is None:
        return None
    from wheelmill import matrix

    return matrix.load(path)


def _subject(wheel: Path, wanted: Matrix | None, options: dict[str, Any]) -> Subject:
    """The wheel with its namespace and samples: those asked for, else the matrix's, if the wheel is its."""
    one = gates.subject(wheel, namespace=options["namespace"], samples=options["samples"])
    operators = wanted.operators if wanted else None
    if options["namespace"] or operators is None:
        return one
    module = operators.samples or operators.namespace
    if module.split(".")[0] not in one.claim.modules:
        return one
    return gates.subject(wheel, namespace=operators.namespace, samples=options["samples"] or operators.samples)


def _asked(options: dict[str, Any]) -> Asked:
    words = (options["gates_text"] or DEFAULT + (",pytest" if options["tests"] else "")).split(",")
    for word in words:
        if word not in gates.GATES:
            raise InputError(f"there is no gate {word!r}", remedy=did_you_mean(word, list(gates.GATES)))
    if "pytest" in words and not options["tests"]:
        raise InputError("the pytest gate has no tests to run", remedy="name the folder of the project's own: --tests")
    for name in ("accept", "plot"):
        if options[name] and not options[name].absolute().parent.is_dir():
            raise InputError(
                f"--{name} {options[name]} is in a folder that is not here", remedy="make the folder first"
            )
    if options["require_gpu"] and options["device"] == "cpu":
        raise InputError("--require-gpu and --device cpu contradict each other", remedy="leave one of them out")
    return Asked(
        gates=tuple(gate for gate in gates.GATES if gate in words),
        operators=options["operators"],
        device="cuda" if options["require_gpu"] else options["device"],
        tests=options["tests"],
        suppressions=gates_files.suppressions(options["suppressions"]) if options["suppressions"] else (),
        baseline=gates_files.baseline(options["baseline"]) if options["baseline"] else None,
        threshold=options["threshold"],
        sanitizer=_program(options["sanitizer"]) if options["executor"] == "host" else options["sanitizer"],
        timeouts={
            "unit": options["timeout"],
            "probe": max(UNIT, options["timeout"]),
            "sanitize": options["sanitize_timeout"],
        },
        jobs=options["jobs"] or max(1, min(8, len(os.sched_getaffinity(0)) // 4)),
    )


def _program(name: str | None) -> str | None:
    """A program that is named by its path, wherever it is run from."""
    return str(Path(name).absolute()) if name and "/" in name else name


def _run(kept: Store, one: Subject, asked: Asked, options: dict[str, Any], log: Path) -> dict[str, Any]:
    if options["executor"] == "docker":
        return _docker(kept, one, asked, options, log).run(one, asked, fresh=options["fresh"])
    for name in ("image", "mounts", "env"):
        if options[name]:
            raise InputError(f"--{name.rstrip('s')} is for the docker executor", remedy="add --executor docker")
    return gates_host.run(kept, one, asked, _beside(kept, one, asked, options, log), log, _tell, fresh=options["fresh"])


def _docker(kept: Store, one: Subject, asked: Asked, options: dict[str, Any], log: Path) -> Docker:
    from wheelmill import gates_box, gates_docker

    client = gates_docker.start(kept)
    box = gates_box.Box(image=options["image"], mounts=options["mounts"], env=options["env"], python=options["python"])
    place = None
    if box.python is None:
        place = _place(one, options["torch_minor"], gates_box.python_of(client, kept, one, box))
    return gates_docker.Docker(
        client=client,
        store=kept,
        box=box,
        image=gates_box.image_of(client, one, box),
        place=place,
        folders=gates_box.folders_of(kept, one, asked, box, place, log),
        log=log,
        tell=_tell,
    )


def _beside(kept: Store, one: Subject, asked: Asked, options: dict[str, Any], log: Path) -> Beside:
    if options["python"]:
        if not options["python"].exists():
            raise InputError(f"{options['python']} is not here", remedy="name an interpreter that has torch")
        return gates_host.with_torch(kept, one, options["python"], log)
    extra = ["pytest"] if "pytest" in asked.gates else []
    return gates_host.clean(kept, one, _place(one, options["torch_minor"], None), extra, log)


def _place(one: Subject, minor: str | None, python: str | None) -> Place:
    """The environment to test in: that torch, else the newest that the wheel claims and the default index has."""
    from wheelmill import claims, facts, interpreters

    known, own = facts.load(), python or interpreters.ENGINE_PYTHON
    if minor is not None and minor not in known.torch:
        raise InputError(f"torch {minor} is not in the table of facts", remedy=did_you_mean(minor, list(known.torch)))
    found = claims.places(one.claim, known, [minor] if minor else [], [own] if minor else [], own=own)
    claimed = [place for place in found if place.unclaimed is None and place.absent is None] or list(found)
    if python is not None:
        claimed = [place for place in claimed if place.cell.python == python] or claimed
    return claims.one_a_torch(claimed, own)[0]


def _tell(line: str) -> None:
    click.echo(line, err=True)


def _show(made: Report, *, markdown: bool, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(gates.to_json(made), indent=1))
        return
    if markdown:
        click.echo(gates_view.markdown(made))
        return
    from rich.console import Console

    console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDE)
    console.print(made.file, markup=False, soft_wrap=True)
    console.print(gates_view.table(made))
    for note in gates_view.faults(made):
        console.print(f"  {note}", markup=False, soft_wrap=True, style="red")
    for note in gates_view.warnings(made):
        console.print(f"  warning: {note}", markup=False, soft_wrap=True, style="yellow")
    for note in gates_view.left_out(made):
        console.print(f"  not run: {note}", markup=False, soft_wrap=True, style="dim")
    console.print(gates_view.summary(made), markup=False, soft_wrap=True)


def _judge(made: Report, log: Path) -> None:
    """Raises GateError where a gate failed. What was not run is told, and is no failure."""
    if made.verdict != "fail":
        return
    faults = gates_view.faults(made)
    output = log.read_text(errors="replace") if log.exists() else ""
    why, remedy = explain.ending("\n".join([*faults, output]))
    raise GateError(
        f"{made.file} does not pass: {len(faults)} units or findings failed, first {faults[0]}{why}",
        remedy=f"{remedy}see each reason above; the whole output is in {log}",
    )
