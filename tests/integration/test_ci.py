"""Jobs as GitHub would run them: the plan, a group that builds, a group that does not, and the report of both."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
import yaml

from wheelmill import proc

from .conftest import PROJECTS, ROOT, STORE, command, environment

TOKEN = "ghp_" + "Zz09" * 9
HIDDEN = "hunter2-hunter2"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project that builds and one that does not, each in a folder of its own."""
    for name in ("slow", "broken"):
        shutil.copytree(PROJECTS / name, tmp_path / name)
    (tmp_path / "slow/seconds").write_text("0\n")
    return tmp_path


def ci(folder: Path, *arguments: str | Path, **changes: str) -> subprocess.CompletedProcess[str]:
    env = environment(
        WHEELMILL_STORE=str(STORE),
        GITHUB_OUTPUT=str(folder / "output"),
        GITHUB_STEP_SUMMARY=str(folder / "summary"),
        **changes,
    )
    return subprocess.run(command("ci", *arguments), cwd=folder, env=env, text=True, capture_output=True, check=False)


def outputs(folder: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in (folder / "output").read_text().splitlines())


def test_a_group_that_builds_and_one_that_does_not(folder: Path) -> None:
    planned = ci(folder / "slow", "--github", "--jobs", "1")
    assert planned.returncode == 0, planned.stderr
    (job,) = json.loads(outputs(folder / "slow")["build"])["include"]
    assert job["wheels"] == ["cpu-torch2.13", "cpu-torch2.14"]

    out = ("--out", folder / "reports", "--dist", "dist")
    built = ci(folder / "slow", "run", "build", " ".join(job["wheels"]), "--id", job["id"], *out)
    assert built.returncode == 0, built.stderr
    assert "cpu-torch2.14: built" in built.stderr  # streamed
    stage = json.loads((folder / f"reports/build-{job['id']}.json").read_text())
    assert [(one["id"], one["result"], one["cause"]) for one in stage["wheels"]] == [
        ("cpu-torch2.13", "pass", ""),
        ("cpu-torch2.14", "pass", ""),
    ]
    assert {one["file"] for one in stage["wheels"]} == {path.name for path in (folder / "slow/dist").glob("*.whl")}

    audited = ci(folder / "slow", "run", "audit", *job["wheels"], *out)
    assert audited.returncode == 0, audited.stderr + audited.stdout
    with (folder / "slow/matrix.yaml").open("a") as file:
        file.write("policy: {size: 1kB}\n")
    refused = ci(folder / "slow", "run", "audit", "cpu-torch2.13", "--out", folder / "strict", "--dist", "dist")
    assert refused.returncode == 1
    assert "cpu-torch2.13: audit fail: size-policy: " in refused.stdout

    source = folder / "broken/broken.cpp"
    source.write_text(f"{source.read_text().rstrip()}  // {TOKEN} {HIDDEN}\n")  # the compiler quotes the line
    failed = ci(folder / "broken", "run", "build", "cpu-torch2.14", *out, "--id", "broken", MY_SECRET=HIDDEN)
    assert failed.returncode == 4, failed.stderr
    (wheel,) = json.loads((folder / "reports/build-broken.json").read_text())["wheels"]
    assert wheel["result"] == "fail"
    assert "undeclared_name" in wheel["cause"]
    assert "undeclared_name; }  // *** ***" in wheel["excerpt"]
    assert wheel["file"] is None
    summary = (folder / "broken/summary").read_text()
    assert "| cpu-torch2.14 | ✗ fail |" in summary
    assert "undeclared_name" in summary

    report = ci(folder, "report", folder / "reports")
    assert report.returncode == 1
    assert "cpu-torch2.14: build fail: " in report.stdout
    written = [failed.stdout, failed.stderr, report.stdout]
    written += [path.read_text() for path in folder.rglob("*") if path.is_file() and path.suffix in {".json", ".log"}]
    written += [summary, (folder / "summary").read_text()]
    assert not [text for text in written if TOKEN in text or HIDDEN in text]


def test_a_job_that_is_stopped_tells_how_far_it_came(folder: Path) -> None:
    (folder / "slow/seconds").write_text("60\n")
    words = command(
        "ci", "run", "build", "cpu-torch2.13", "cpu-torch2.14", "--id", "x", "--", "--store", folder / "own"
    )
    env = environment(GITHUB_STEP_SUMMARY=str(folder / "summary"))
    with subprocess.Popen(words, cwd=folder / "slow", env=env, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as job:
        assert job.stderr is not None
        assert b"cpu-torch2.13: inputs" in job.stderr.readline()
        job.terminate()
        job.communicate(timeout=20)
    assert job.returncode == 130
    told = json.loads((folder / "slow/ci/build-x.json").read_text())["wheels"]
    assert [one["result"] for one in told] == ["missing", "missing"]
    assert "stopped" in told[0]["cause"]
    assert "| cpu-torch2.14 | missing |" in (folder / "summary").read_text()


def test_a_job_without_its_files_says_so(folder: Path) -> None:
    (folder / "plan.json").write_text(ci(folder / "slow", "--json").stdout)
    for stage, code in (("audit", 3), ("gpu", 0)):
        done = ci(folder / "slow", "run", stage, "cpu-torch2.14", "--out", folder / "reports")
        assert done.returncode == code, done.stderr
    report = ci(folder, "report", folder / "reports", "--plan", folder / "plan.json", "--json")
    assert report.returncode == 1
    told = json.loads(report.stdout)
    assert [(one["id"], one["stage"]) for one in told["faults"]] == [
        ("cpu-torch2.13", "build"),
        ("cpu-torch2.14", "build"),
    ]
    assert told["wheels"][1]["stages"]["audit"]["result"] == "skipped"
    assert told["wheels"][1]["stages"]["gpu"] == {
        "file": None,
        "sha256": None,
        "result": "skipped",
        "seconds": 0.0,
        "cause": "it is for the CPU",
        "excerpt": "",
    }


def test_a_change_is_read_from_git(folder: Path) -> None:
    project = folder / "slow"

    def git(*arguments: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *arguments],
            cwd=project,
            check=True,
            capture_output=True,
        )

    matrix = project / "matrix.yaml"
    matrix.write_text('version: 1\ntorch: ">=2.8"\ncuda: [cpu, cu126, cu128, cu130]\nabi: {python: none}\n')
    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-qm", "one")
    matrix.write_text(matrix.read_text() + 'sm: {cu128: ["9.0"]}\n')
    git("commit", "-qam", "two")
    done = ci(project, "--scope", "change", "--since", "HEAD~1", "--json")
    assert done.returncode == 0, done.stderr
    found = [job["id"] for job in json.loads(done.stdout)["build"]]
    assert len(found) == 4
    assert [name for name in found if name.startswith("cu128-")]
    for ref in ("absent", "--output=x"):
        refused = ci(project, "--scope", "change", f"--since={ref}")
        assert refused.returncode == 3
        assert "fetch-depth: 0" in refused.stderr
    assert not (project / "x").exists()


@pytest.mark.parametrize("since", ["HEAD^", "0" * 40, "12345678" * 5])
def test_a_change_without_a_commit_before_it_is_planned(folder: Path, since: str) -> None:
    """A first commit, a new branch, a force push: the step of the workflow itself."""
    project = folder / "slow"
    for words in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "one"],
    ):
        subprocess.run(["git", *words], cwd=project, check=True)
    steps = yaml.safe_load((ROOT / ".github/workflows/wheels.yml").read_text())["jobs"]["plan"]["steps"]
    script = next(step["run"] for step in steps if step.get("id") == "ci")
    env = environment(
        PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        GITHUB_OUTPUT=str(folder / "output"),
        RUNNER_TEMP=str(folder),
        SELECT="",
        MATRIX="matrix.yaml",
        SCOPE="change",
        SINCE=since,
        GPU="[]",
        PART="1",
    )
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script], check=False, cwd=project, env=env, text=True, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    assert outputs(folder)["set"] == "1"
    assert json.loads((folder / "plan.json").read_text())["build"]


def test_a_line_without_an_end_does_not_fill_the_memory() -> None:
    lines: list[str] = []
    script = "import sys\nfor _ in range(40): sys.stdout.write('x' * 1_000_000)\nprint()\nprint('after it')"
    tracemalloc.start()
    try:
        assert proc.follow([sys.executable, "-c", script], each=lines.append) == 0
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()
    assert lines[0].startswith("xxx")
    assert lines[0].endswith(f" … {40_000_001 - proc.LONGEST} bytes more in this line")
    assert lines[1:] == ["after it"]


def test_a_report_without_its_wheel_is_told(folder: Path) -> None:
    (folder / "dist").mkdir()
    (folder / "proofs").mkdir()
    (folder / "proofs" / "gone.whl.gates.json").write_text("{}")
    done = ci(folder, "join", "proofs")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "gone.whl.gates.json is left out: dist holds no such wheel\n"
