"""`wheelmill audit`: what wheels really are, without importing them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wheelmill import audit as auditing
from wheelmill import cuobjdump, facts
from wheelmill.errors import GateError, InputError
from wheelmill.rules_plan import Expected

if TYPE_CHECKING:
    from wheelmill.audit import Report
    from wheelmill.findings import Finding
    from wheelmill.matrix import Matrix
    from wheelmill.model import Wheel

INSET = (0, 0, 0, 4)
COLOURS = {"error": "red", "warning": "yellow", "info": "dim", "pass": "green", "fail": "red"}


def _write_rules(context: click.Context, _: click.Parameter, folder: Path | None) -> None:
    if folder is not None:
        from wheelmill import rule_pages

        rule_pages.write(folder)
        context.exit()


@click.command("audit")
@click.argument("wheels", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--expect", metavar="ID", help="Hold the wheels against the plan of that wheel's id.")
@click.option(
    "--matrix",
    "matrix_path",
    type=click.Path(path_type=Path),
    help="The policy, and the plan for --expect. Default: matrix.yaml with --expect, else none.",
)
@click.option("--json", "as_json", is_flag=True, help="Print facts and findings as JSON.")
@click.option(
    "--sarif",
    "sarif_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write the findings as SARIF 2.1.0.",
)
@click.option(
    "--write-rules",
    type=click.Path(path_type=Path, file_okay=False),
    callback=_write_rules,
    is_eager=True,
    expose_value=False,
    help="Write a page a rule into that folder, and do nothing else.",
)
def audit(
    *, wheels: tuple[Path, ...], expect: str | None, matrix_path: Path | None, as_json: bool, sarif_path: Path | None
) -> None:
    """Make every static check of WHEELS, ours or a stranger's: what is inside, where it loads, what will fail."""
    for path in wheels:
        if not path.is_file():
            raise click.UsageError(f"{path} is no file")
    expected = expectation(expect, matrix_path)
    tool = cuobjdump.find()
    reports = auditing.with_unused([auditing.audit(path, expected, tool=tool) for path in wheels], expected)
    if sarif_path is not None:
        from wheelmill import sarif

        sarif.write(sarif_path, reports, wheels)
    if as_json:
        click.echo(json.dumps(auditing.to_json(reports), indent=1))
    else:
        _show(reports, read_twice=tool is not None)
    failed = [report.facts.file for report in reports if report.verdict == "fail"]
    if failed:
        raise GateError(f"{len(failed)} of {len(reports)} wheels failed the audit", remedy="see each finding")


def expectation(expect: str | None, path: Path | None) -> Expected:
    """What to hold the wheels against. Raises InputError for an id that the matrix does not plan."""
    if expect is None and path is None:
        return Expected(facts=facts.load())
    from wheelmill import matrix  # slow to import, and most audits have none

    wanted = matrix.load(path or Path("matrix.yaml"))
    known = facts.load(wanted.facts)
    wheel = None if expect is None else _planned(expect, wanted, known)
    return Expected(facts=known, wheel=wheel, policy=wanted.policy)


def _planned(expect: str, wanted: Matrix, known: facts.Facts) -> Wheel:
    from wheelmill import plan
    from wheelmill.names import did_you_mean

    every = {step.wheel.id: step.wheel for step in plan.make(wanted, known, ()).steps}
    if expect not in every:
        raise InputError(f"{wanted.path} plans no wheel {expect!r}", remedy=did_you_mean(expect, list(every)))
    return every[expect]


def _show(reports: tuple[Report, ...], *, read_twice: bool) -> None:
    from rich.console import Console

    console = Console(width=shutil.get_terminal_size((140, 24)).columns, highlight=False, markup=False)
    for report in reports:
        _show_one(report, console, read_twice=read_twice)


def _grouped(findings: tuple[Finding, ...]) -> list[list[Finding]]:
    """Findings of one rule, severity and remedy together."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        key = (finding.rule, finding.severity, finding.remedy, finding.waived)
        groups.setdefault(key, []).append(finding)
    return list(groups.values())


def _show_one(report: Report, console: object, *, read_twice: bool) -> None:
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    assert isinstance(console, Console)  # noqa: S101
    content = auditing.wheel_json(report)
    console.print(Text.assemble(content["file"], ": ", (content["verdict"], f"bold {COLOURS[content['verdict']]}")))
    platform = content["platform"]
    console.print(f"  tagged {platform['claimed'] or '-'}, needs {platform['needs'] or '-'}")
    if content["libraries"]:
        names = ("library", "SASS", "PTX", "glibc", "GLIBCXX", "torch ABI", "lowest torch", "C++11", "cuobjdump")
        table = Table(*names[: None if read_twice else -1], box=None, header_style="bold", pad_edge=False)
        for name, row in content["libraries"].items():
            words = {True: "yes", False: "no", None: "-"}
            second = row["cuobjdump"]
            cells = [name, " ".join(row["sass"]) or "-", " ".join(row["ptx"]) or "-", row["glibc"] or "-"]
            cells += [row["glibcxx"] or "-", row["torch_abi"], row["min_torch"] or "-", words[row["cxx11_abi"]]]
            cells += ["-" if second is None else "agrees" if second["finished"] else "gave up"] * read_twice
            table.add_row(*cells)
        console.print(table)
    for group in _grouped(report.findings):
        first = group[0]
        head = Text.assemble(
            "  ", (first.severity, "dim" if first.waived else COLOURS[first.severity]), f" {first.rule}"
        )
        console.print(head.append(f" (waived: {first.waived})" if first.waived else ""))
        for finding in group:
            console.print(
                Padding(f"{finding.library}: {finding.message}" if finding.library else finding.message, INSET)
            )
        console.print(Padding(Text(first.remedy, style="dim"), INSET))
    console.print()
