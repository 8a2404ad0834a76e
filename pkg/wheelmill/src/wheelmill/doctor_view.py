"""The doctor's answer as text and as JSON. What programs and files said is a stranger's: control characters show."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from wheelmill import which_view
from wheelmill.doctor_case import gigabytes
from wheelmill.findings import SEVERITIES, printable
from wheelmill.names import listing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from wheelmill.doctor import Answer
    from wheelmill.doctor_case import Case
    from wheelmill.doctor_facts import Nvcc, Project

COLOURS = {"error": "red", "warning": "yellow", "info": "cyan"}
INSET = (0, 0, 0, 4)
WIDTH = 12


def to_json(answer: Answer) -> dict[str, Any]:
    case = answer.case
    machine = case.machine
    return {
        "version": 1,
        "hindered": answer.hindered,
        "environment": machine.env.model_dump(mode="json"),
        **{
            name: _plain(getattr(machine, name))
            for name in ("python", "torch", "smi", "toolkits", "compiler", "ninja", "system", "engine")
        },
        "project": _plain(case.project),
        "package": _plain(case.package),
        "findings": [dataclasses.asdict(one) for one in answer.findings],
    }


def _plain(value: Any) -> Any:
    """A value of facts as JSON holds it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: _plain(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(one) for one in value]
    if isinstance(value, (set, frozenset)):
        return sorted(_plain(one) for one in value)
    return str(value) if isinstance(value, PurePath) else value


def facts(case: Case) -> Iterator[tuple[str, str]]:
    """(what, its facts in a line), in the order of the report."""
    machine = case.machine
    for line in which_view.environment(machine.env):
        name, _, rest = line.partition(" ")
        yield name, rest.strip() + _more(case, name)
    kits = machine.toolkits
    for one in kits.nvccs:
        taken = ", which torch's build takes" if kits.chosen is not None and one.path == kits.chosen.path else ""
        yield "nvcc", f"{_release(one)}: {one.path} ({one.origin}){taken}"
    if not kits.nvccs:
        yield "nvcc", "none"
    compiler = machine.compiler
    takes = {"gcc": ("GCC", kits.chosen.gcc), "clang": ("clang", kits.chosen.clang)} if kits.chosen else {}
    name, most = takes.get(compiler.kind or "", ("", None))
    limit = f"; this nvcc takes {name} {most} at most" if most else ""
    yield (
        "compiler",
        f"{compiler.path} {compiler.kind or ''} {compiler.version or ''}{limit}" if compiler.path else "none",
    )
    tools = {name: version for name, version in machine.python.tools.items() if version and name != "ninja"}
    if machine.ninja and machine.ninja.answer == "works":
        tools = {"ninja": machine.ninja.said, **tools}
    yield "tools", listing(f"{name} {version}" for name, version in tools.items())
    yield "memory", _memory(case)
    yield "disk", listing(f"{gigabytes(one.free)} free in {one.folder}" for one in machine.system.disks)
    engine = machine.engine
    gives = "it can give no container a GPU" if engine.gpu else "it can give containers the GPU, if there is one"
    yield "containers", gives if engine.state == "answers" else f"no engine to be used: {engine.state}"
    if case.project is not None:
        yield "project", _project(case.project)
    if case.package is not None:
        package = case.package
        yield "package", f"{package.name} {package.version or '(not installed)'}, libraries: {len(package.libraries)}"


def _more(case: Case, name: str) -> str:
    """What the doctor knows beside what `which` says of the same."""
    machine, files = case.machine, case.machine.torch
    if name == "Python":
        return f", {machine.python.executable}" + ("" if machine.python.headers else ", without headers")
    if name == "torch" and files is not None and case.torch is not None:
        standard = f", C++{files.standard}" if files.standard else ""
        return f"{standard}, from {files.source}, in {files.root}"
    return ""


def _release(one: Nvcc) -> str:
    return one.release or ("does not answer" if one.answer == "hangs" else "says no release")


def _memory(case: Case) -> str:
    mine = case.machine.system
    if mine.memory is None or mine.jobs is None:
        return "unknown"
    stated = f" (it is {mine.stated_jobs})" if mine.stated_jobs is not None else ""
    return f"{gigabytes(mine.memory)} free, {mine.cores} cores: MAX_JOBS={mine.jobs} fits{stated}"


def _project(one: Project) -> str:
    uses = "torch's C++ API" if one.unstable else "no unstable part of torch's C++ API"
    return f"{one.root}: {listing(one.files)}; {'CUDA code, ' if one.cuda else ''}{uses}"


def show(answer: Answer, console: Console) -> None:
    """The facts, then the findings, the worst first; commands are not broken over lines."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", min_width=WIDTH)
    table.add_column(overflow="fold")
    for name, value in facts(answer.case):
        table.add_row(name, printable(value))
    console.print(table)
    console.print()
    for one in answer.findings:
        console.print(Text.assemble((one.severity, f"bold {COLOURS[one.severity]}"), f"  {one.id}"))
        console.print(Padding(f"{one.so}.", INSET))
        console.print(Padding(Text(f"What will happen: {one.will}.", style="dim"), INSET))
        console.print(Text.assemble("    → ", (one.mend, "bold")), soft_wrap=True)
    count = Counter(one.severity for one in answer.findings)
    told = listing(
        f"{count[kind]} {kind}{'s' if count[kind] > 1 and kind != 'info' else ''}" for kind in SEVERITIES if count[kind]
    )
    verdict = "Something stands in the way" if answer.hindered else "Nothing stands in the way"
    console.print(f"\n{verdict}{f': {told}' if answer.findings else ''}.")
