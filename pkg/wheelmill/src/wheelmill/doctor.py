"""The doctor: facts of this machine, a project and a package, then what each check finds in them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from wheelmill import (
    doctor_machine,
    doctor_package,
    doctor_project,
    doctor_rules,
    doctor_rules_compiler,
    doctor_rules_cuda,
    doctor_rules_driver,
    doctor_rules_package,
    doctor_rules_project,
)
from wheelmill.doctor_case import Case
from wheelmill.doctor_findings import Finding, ordered
from wheelmill.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wheelmill.facts import Facts

GROUPS: tuple[Callable[[Case], Iterator[Finding]], ...] = (
    doctor_rules.python,
    doctor_rules.torch,
    doctor_rules.tools,
    doctor_rules_driver.driver,
    doctor_rules_cuda.toolkit,
    doctor_rules_cuda.arch_list,
    doctor_rules_compiler.compiler,
    doctor_rules_compiler.variables,
    doctor_rules.system,
    doctor_rules.containers,
    doctor_rules_project.project,
    doctor_rules_package.package,
)
BUILDS = frozenset({"toolkit", "compiler", "tools"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    case: Case
    findings: tuple[Finding, ...]

    @property
    def hindered(self) -> bool:
        """Whether something stands in the way of what was asked about."""
        return any(one.severity == "error" for one in self.findings)


def examine(program: str, known: Facts, *, project: Path | None = None, package: str | None = None) -> Answer:
    """The findings for an interpreter on this machine, and for a project's folder or an installed package.

    Raises InputError where there is no such folder, MissingError where the interpreter does not answer.
    """
    if project is not None and not _is_folder(project):
        raise InputError(f"{project} is no folder", remedy="give the folder that holds setup.py or pyproject.toml")
    folder = project or Path.cwd()
    machine, told = doctor_machine.read(program, known, folder=folder, package=package)
    case = Case(
        machine=machine,
        known=known,
        project=doctor_project.read(project.resolve()) if project else None,
        package=doctor_package.read(package, told, told["folders"]) if package else None,
    )
    return Answer(case=case, findings=judge(case))


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # a loop of links, a name that no file can have
        return False


def judge(case: Case) -> tuple[Finding, ...]:
    """Every check's findings, the worst first.

    What only hinders a build is a warning where an installed package is asked about, and what only hinders the
    build of CUDA code is information where there is none to build.
    """
    return ordered(_weighed(case, finding) for group in GROUPS for finding in group(case))


def _weighed(case: Case, finding: Finding) -> Finding:
    if finding.area == "toolkit" and not case.wants_cuda:
        return replace(finding, severity="info")
    builds = finding.area in BUILDS or finding.id == "python-headers"
    if case.package is not None and builds:
        return replace(finding, severity="warning" if finding.severity == "error" else "info")
    if finding.id == "torch-absent" and case.package is not None and case.package.of_torch:
        return replace(finding, severity="error")
    return finding
