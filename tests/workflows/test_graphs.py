"""Every workflow is one that act reads: no unknown key, every expression parses; every `needs` and action exists."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from .harness import ACTIONS, OURS, ROOT, git, stand_ins, uses

if TYPE_CHECKING:
    from collections.abc import Iterator

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
STRANGERS = ROOT / "tests" / "projects" / "stranger" / ".github" / "workflows" / "wheels.yml"
GOOD = """
on: push
jobs:
  first:
    runs-on: ubuntu-24.04
    steps: [{run: "true"}]
  second:
    needs: first
    if: ${{ !cancelled() }}
    runs-on: ubuntu-24.04
    steps: [{run: "true"}]
"""
FAULTS = {
    "an unknown key": ("    needs: first", "    need: first"),
    "a job that is not there": ("    needs: first", "    needs: absent"),
    "a job that is read and not needed": ("!cancelled()", "needs.third.result == 'success'"),
    "an expression that does not parse": ("${{ !cancelled() }}", "${{ !cancelled( }}"),
    "a context that is not there": ("${{ !cancelled() }}", "${{ nonsense.event }}"),
}


def faults(workflow: Path, folder: Path) -> list[str]:
    """What is wrong with a workflow: what act says, run in a repository, and what it does not look for."""
    git(folder, "init", "--quiet")
    args = [Path(sys.executable).with_name("act"), "--validate", "--strict", "--workflows", workflow]
    done = subprocess.run(args, cwd=folder, text=True, capture_output=True, check=False)
    return [done.stderr] if done.returncode else unneeded(yaml.safe_load(workflow.read_text())["jobs"])


def unneeded(jobs: dict[str, Any]) -> list[str]:
    """Jobs that are needed and not there, or read and not needed: GitHub gives an empty text for those."""
    found = []
    for name, job in jobs.items():
        needs = [job["needs"]] if isinstance(job.get("needs"), str) else job.get("needs", [])
        read = set(re.findall(r"\bneeds\.([\w-]+)", json.dumps(job)))
        found += [f"{name} needs {other}, which is no job" for other in needs if other not in jobs]
        found += [f"{name} reads {other}, which it does not need" for other in sorted(read - set(needs))]
    return found


@pytest.mark.parametrize(
    "workflow", [*WORKFLOWS, STRANGERS], ids=lambda path: path.parent.parent.parent.name + path.stem
)
def test_a_workflow_is_valid(workflow: Path, tmp_path: Path) -> None:
    assert not faults(workflow, tmp_path)


@pytest.mark.parametrize("fault", [None, *FAULTS])
def test_what_is_wrong_is_found(fault: str | None, tmp_path: Path) -> None:
    old, new = FAULTS[fault] if fault else ("", "")
    (tmp_path / "one.yml").write_text(GOOD.replace(old, new) if fault else GOOD)
    assert bool(faults(tmp_path / "one.yml", tmp_path)) == (fault is not None)


def inputs_given(document: object) -> Iterator[tuple[str, frozenset[str]]]:
    """(action, inputs) of every step that calls an action."""
    if isinstance(document, dict):
        if isinstance(document.get("uses"), str):
            yield document["uses"], frozenset(document.get("with") or ())
        for value in document.values():
            yield from inputs_given(value)
    elif isinstance(document, list):
        for value in document:
            yield from inputs_given(value)


def test_each_action_of_wheels_has_a_stand_in_that_knows_its_inputs() -> None:
    files = [ROOT / ".github" / "workflows" / "wheels.yml", ROOT / ".github" / "actions" / "setup" / "action.yml"]
    seen = set()
    for use, given in (row for file in files for row in inputs_given(yaml.safe_load(file.read_text()))):
        name = use.partition("@")[0].split("/", 1)
        folder = (ROOT if name[0] == "wheelmill" else ACTIONS) / name[1].removeprefix("wheelmill/")
        known = yaml.safe_load((folder / "action.yml").read_text())["inputs"]
        assert given <= known.keys(), use
        seen.add(folder.name)
    assert {"checkout", "setup", "setup-python", "upload-artifact", "download-artifact", "restore", "save"} <= seen


def test_third_party_actions_are_pinned_by_commit() -> None:
    files = [*WORKFLOWS, *(ROOT / ".github" / "actions").glob("*/action.yml")]
    named = {use for file in files for use in uses(yaml.safe_load(file.read_text())) if not use.startswith((".", OURS))}
    assert named
    assert all(len(use.partition("@")[2]) == 40 for use in named)
    assert {name.partition("@")[2] for name in stand_ins(ROOT)} >= {use.partition("@")[2] for use in named}
