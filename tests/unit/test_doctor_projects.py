"""What the doctor says of projects as people write them: doctor_projects.toml, each read from files of its own."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.unit.test_doctor import machine

from wheelmill import doctor, doctor_project
from wheelmill.doctor_case import Case

if TYPE_CHECKING:
    from wheelmill.facts import Facts

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECTS = tomllib.loads(Path(__file__).with_name("doctor_projects.toml").read_text(encoding="utf-8"))
SOURCE = "#include <torch/extension.h>\n"
AREA = "project"


def says(found: set[tuple[str, str]], wanted: str) -> bool:
    """Whether a finding of that name is there: `name`, `name@severity`, `name*` or `*`, the last two no mere advice."""
    name, _, severity = wanted.partition("@")
    if name.endswith("*"):
        return any(one.startswith(name[:-1]) and weight != "info" for one, weight in found)
    return (name, severity) in found if severity else any(one == name and weight != "info" for one, weight in found)


@pytest.mark.parametrize("name", PROJECTS)
def test_a_project(tmp_path: Path, known: Facts, name: str) -> None:
    stated: dict[str, Any] = PROJECTS[name]
    for file, text in stated["files"].items():
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SOURCE if text == "torch" else text, encoding="utf-8")
    parts: dict[str, Any] = {"toolkits": {"arch_list": stated.get("list", "8.0 9.0+PTX")}}
    parts["env"] = {"gpus": ()} if stated.get("torch", True) else {"gpus": (), "torch": None}
    here = machine(**parts)
    here = here if stated.get("torch", True) else replace(here, torch=None)
    case = Case(machine=here, known=known, project=doctor_project.read(tmp_path))
    found = {(one.id, one.severity) for one in doctor.judge(case) if one.area == AREA or one.id == "arch-list-unset"}
    assert [one for one in stated.get("must", ()) if not says(found, one)] == [], found
    assert [one for one in stated.get("never", ()) if says(found, one)] == [], found


def test_projects_of_many_kinds_are_tried() -> None:
    assert len(PROJECTS) >= 100
    assert {one.partition("@")[0] for row in PROJECTS.values() for one in row.get("must", ())} >= {
        *("requires-torch", "standard-pinned", "architectures-toolkit", "sources-collide", "torch-unpinned"),
    }
