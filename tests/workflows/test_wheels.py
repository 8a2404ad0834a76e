"""A stranger's ten lines, run end to end: plan, build, audit, cover, gpu, index, report."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

import pytest
import yaml
from uv import find_uv_bin

from .conftest import PROJECTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .harness import Repository, Run

CELLS = ["cpu-torch2.14-cp311", "cu130-torch2.14-cp311"]
CALLER = PROJECTS / "stranger" / ".github" / "workflows" / "wheels.yml"
STAGES = ("build", "audit", "cover")
COMPUTE = """
import torch
from shift_clip import shift_clip
x = torch.linspace(-2, 2, 1001)
assert torch.equal(shift_clip(x, 0.5, -1.0, 1.0), (x + 0.5).clamp(-1.0, 1.0))
print("computed")
"""


@pytest.fixture(scope="module")
def stranger(repository: Callable[[str, str], Repository]) -> Repository:
    made = repository("stranger", "stranger")
    given = {"gpu": '["9.0"]', "gpu-options": "--gates pytest --tests tests"}
    (made.folder / ".github" / "workflows" / "gpu.yml").write_text(calls(**given))
    made.commit("An extension")
    return made


@pytest.fixture(scope="module")
def pushed(stranger: Repository) -> Run:
    run = stranger.act("push")
    assert run.succeeded, run.faults()
    return run


def artifact(repository: Repository, begins: str) -> Path:
    (found,) = (path for path in repository.artifacts.iterdir() if path.name.startswith(begins))
    return found


def told(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text())


def calls(**given: str) -> str:
    """The ten lines with inputs."""
    caller = yaml.safe_load(CALLER.read_text())
    caller["jobs"]["wheels"]["with"] = given
    return yaml.safe_dump({("on" if key is True else key): value for key, value in caller.items()})


def test_the_caller_is_ten_lines_at_most_and_states_no_input() -> None:
    text = CALLER.read_text()
    assert len(text.splitlines()) <= 10
    assert "with:" not in text


def test_every_job_passes_and_none_needs_a_gpu_or_publishes(pushed: Run) -> None:
    once, each = ["success"], ["success"] * 2
    jobs = {"plan": once, "build": each, "audit": each, "cover": each, "index": once, "report": once}
    assert {name: some for name, some in pushed.results().items() if name in jobs} == jobs
    assert not pushed.of("gpu")
    assert not pushed.of("publish")


@pytest.mark.usefixtures("pushed")
@pytest.mark.parametrize("cell", CELLS)
def test_each_cell_has_its_wheel_audited_and_covered(stranger: Repository, cell: str) -> None:
    (wheel,) = artifact(stranger, f"wheels-1-{cell}-").glob("*.whl")
    cuda = cell.partition("-")[0]
    assert wheel.name.startswith(f"shift_clip-0.1.0+{cuda}.torch2.14-cp311-cp311-manylinux_2_")
    for stage in STAGES:
        (row,) = told(artifact(stranger, f"ci-1-{stage}-{cell}-"), f"{stage}-{cell}.json")["wheels"]
        assert (row["id"], row["file"], row["result"]) == (cell, wheel.name, "pass")
    audited = told(wheel.parent, f"{wheel.name}.audit.json")
    assert audited["verdict"] == "pass"
    (library,) = audited["libraries"].values()
    assert bool(library["sass"]) == (cuda == "cu130")
    covered = told(artifact(stranger, f"proof-1-cover-{cell}-"), f"{wheel.name}.cover.json")
    assert covered["verdict"] == "pass", covered


@pytest.mark.usefixtures("pushed")
def test_the_docker_executor_built_them(stranger: Repository) -> None:
    """In the image of their CUDA, by the engine whose socket a job has, as on GitHub."""
    for cell in CELLS:
        (manifest,) = artifact(stranger, f"wheels-1-{cell}-").glob("*.manifest.json")
        assert told(manifest.parent, manifest.name)["executor"] == "docker"


@pytest.mark.usefixtures("pushed")
@pytest.mark.parametrize("cell", CELLS)
def test_pip_installs_the_wheel_of_the_index_and_it_computes(stranger: Repository, cell: str, tmp_path: Path) -> None:
    environment = cell.rpartition("-")[0]
    page = artifact(stranger, "index-1") / f"{environment}.html"
    uv, python = find_uv_bin(), tmp_path / "env" / "bin" / "python"
    subprocess.run([uv, "venv", "--quiet", "--python", "3.11", tmp_path / "env"], check=True)
    args = [uv, "pip", "install", "--quiet", "--python", python, "--find-links", page, "shift-clip", "numpy"]
    subprocess.run(args, check=True)
    done = subprocess.run([python, "-c", COMPUTE], cwd=tmp_path, text=True, capture_output=True, check=False)
    assert done.stdout == "computed\n", done.stderr
    with ZipFile(next(page.parent.rglob(f"*+{environment.replace('-', '.')}-*.whl"))) as archive:
        assert archive.testzip() is None


def test_each_step_summary_has_its_grid(pushed: Run) -> None:
    (plan,), (report,) = pushed.of("plan"), pushed.of("report")
    assert "2 build jobs and 0 GPU jobs of 2 wheels that serve 2 cells" in plan.summary
    for cell in CELLS:
        assert f"| {cell} | ✓ | ✓ | ✓ |" in report.summary.replace("|  |", "|"), report.summary
    for stage in STAGES:
        for job in pushed.of(stage):
            assert f"| {job.matrix['id']} | ✓ |" in job.summary
            assert "cibuildwheel" not in job.summary


@pytest.fixture(scope="module")
def tested(stranger: Repository, pushed: Run) -> Run:
    """The same commit with the artifacts of the first run, and with a GPU job on a machine without a GPU."""
    return stranger.act("push", workflow="gpu.yml")


def test_a_second_attempt_builds_nothing_again(tested: Run) -> None:
    assert len(tested.of("build")) == 2
    for build in tested.of("build"):
        assert build.result == "success"
        assert "Build" not in {name for name, result in build.steps.items() if result != "skipped"}, build.steps


def test_without_a_gpu_the_job_says_what_is_missing_and_the_index_is_made(stranger: Repository, tested: Run) -> None:
    (gpu,), (index,), (report,) = tested.of("gpu"), tested.of("index"), tested.of("report")
    assert gpu.result == "failure"
    assert "GPU" in gpu.log
    assert "what to do:" in gpu.log
    (row,) = told(artifact(stranger, "ci-1-gpu-"), f"gpu-{gpu.matrix['id']}.json")["wheels"]
    assert row["result"] == "missing"
    assert row["cause"] in report.summary
    assert index.result == "success"
    assert report.result == "failure"
    assert not tested.succeeded


@pytest.fixture(scope="module")
def proposed(repository: Callable[[str, str], Repository]) -> Run:
    """A pull request of a fork, which breaks the code, to a repository that tests on a GPU and publishes."""
    made = repository("stranger", "forked")
    given = {"gpu": '["9.0"]', "publish-to": "s3://bucket/wheels", "runner": "self-hosted", "select": "cu130*"}
    (made.folder / ".github" / "workflows" / "wheels.yml").write_text(calls(**given))
    base = made.commit("An extension")
    source = made.folder / "shift_clip" / "shift_clip.cpp"
    source.write_text(f'#include "absent.h"\n{source.read_text()}')
    head = made.commit("Break it")
    pull = {
        "number": 1,
        "base": {"sha": base, "ref": "main", "repo": {"full_name": "stranger/shift-clip"}},
        "head": {"sha": head, "ref": "patch", "repo": {"full_name": "fork/shift-clip", "fork": True}},
    }
    payload = {"action": "opened", "number": 1, "pull_request": pull}
    return made.act("pull_request", {**payload, "repository": {"full_name": "stranger/shift-clip"}})


def test_a_forks_pull_request_reaches_no_gpu_runner_and_publishes_nothing(proposed: Run) -> None:
    (plan,) = proposed.of("plan")
    assert plan.result == "success"
    assert "1 GPU jobs" in plan.summary
    assert not proposed.of("gpu")
    assert not proposed.of("publish")


def test_a_build_that_fails_is_told_with_its_cause_and_log(proposed: Run) -> None:
    assert not proposed.succeeded
    assert {job.result for job in proposed.of("build")} == {"failure"}
    for job in (*proposed.of("build"), *proposed.of("report")):
        assert "absent.h: No such file or directory" in job.summary, job.log
    (report,) = proposed.of("report")
    assert report.result == "failure"
