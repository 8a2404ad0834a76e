"""A run that is stopped, killed or doubled loses at most the step in hand."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from wheelmill import proc

from .conftest import PROJECTS, command, environment

BUILD = ("build", "--no-prove", "--json")
FIRST, SECOND = "cpu-torch2.13", "cpu-torch2.14"


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """A copy of the slow project, alone in its folder, so that git does not see it."""
    return shutil.copytree(PROJECTS / "slow", tmp_path / "slow")


def start(project: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(*BUILD), cwd=project, env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def wait_for(process: subprocess.Popen[str], line: str) -> None:
    assert process.stderr is not None
    for said in process.stderr:
        if line in said:
            return
    raise AssertionError(f"the run ended before it said {line!r}")


def statuses(text: str) -> dict[str, str]:
    return {row["wheel"]: row["status"] for row in json.loads(text)["wheels"]}


def leftovers(project: Path) -> list[str]:
    return [path.name for path in (project / ".wheelmill" / "tmp").iterdir()]


def owners(work: Path) -> list[int]:
    """Processes that carry a work folder below `work` in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"WHEELMILL_WORK={work}".encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


@pytest.mark.parametrize(
    ("signum", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_the_next_run_picks_up_where_it_was(slow: Path, signum: signal.Signals, status: int) -> None:
    stopped = start(slow)
    wait_for(stopped, f"{SECOND}: compile")
    time.sleep(1)
    stopped.send_signal(signum)
    _, said = stopped.communicate(timeout=30)
    assert stopped.returncode == status
    if signum != signal.SIGKILL:
        assert "interrupted" in said
        assert owners(slow) == []
        assert leftovers(slow) == []
    again = start(slow)
    out, _ = again.communicate(timeout=120)
    assert again.returncode == 0
    assert statuses(out) == {FIRST: "unchanged", SECOND: "built"}
    assert leftovers(slow) == []
    assert owners(slow) == []
    assert sorted(path.name for path in (slow / "dist").glob("*.whl")) == [
        f"slow-1.0+cpu.torch{minor}-py3-none-manylinux1_x86_64.manylinux_2_5_x86_64.whl" for minor in ("2.13", "2.14")
    ]


def test_two_runs_at_once_build_each_wheel_once(slow: Path) -> None:
    runs = [start(slow), start(slow)]
    outs = [run.communicate(timeout=120)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    calls = 0
    for log in (slow / ".wheelmill" / "logs").rglob("*.log"):
        calls += log.read_text().count(" build_wheel ")
    assert calls == 2, "each of two wheels is built by one of the two runs"
    assert all(set(statuses(out)) == {FIRST, SECOND} for out in outs)


def calls(project: Path) -> bool:
    """Build the first wheel; whether that called the back end."""
    subprocess.run(command(*BUILD, FIRST), cwd=project, check=True, capture_output=True)
    log = max((project / ".wheelmill" / "logs").iterdir()) / f"{FIRST}.log"
    return " build_wheel " in log.read_text()


def test_a_second_run_calls_no_back_end_and_a_changed_source_does(slow: Path) -> None:
    assert calls(slow)
    assert not calls(slow)
    with (slow / "answer.cpp").open("a") as file:
        file.write("// changed\n")
    assert calls(slow)


def test_in_a_git_checkout_that_ignores_nothing_outputs_are_no_sources(slow: Path) -> None:
    for arguments in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", "-C", str(slow), *arguments], check=True)
    assert calls(slow)
    assert not calls(slow)
    matrix = slow / "matrix.yaml"
    matrix.write_text(matrix.read_text() + "policy: {size: 1GB}\n")
    assert not calls(slow)


def test_a_damaged_entry_of_the_store_is_built_again(slow: Path) -> None:
    assert calls(slow)
    (wheel,) = (slow / ".wheelmill" / "wheels").glob("*/*.whl")
    whole = wheel.read_bytes()
    wheel.write_bytes(whole[:1000])
    assert calls(slow)
    (published,) = (slow / "dist").glob("*.whl")
    assert published.read_bytes() == whole


def test_the_policy_of_now_holds_for_a_wheel_of_then(slow: Path) -> None:
    assert calls(slow)
    matrix = slow / "matrix.yaml"
    matrix.write_text(matrix.read_text() + "policy: {size: 1kB}\n")
    done = subprocess.run(command(*BUILD, FIRST), cwd=slow, text=True, capture_output=True, check=False)
    assert done.returncode == 1
    assert "policy.size allows 1,000" in done.stderr


HEAVY = "import time; held = bytearray(2**26); held[::4096] = b'x' * len(held[::4096]); time.sleep(60)"
"""Takes a moment to end, for it holds 64 MiB."""


def marked(folder: Path) -> list[str]:
    """The living processes that carry the folder in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"{proc.OWNER}={folder}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append(entry.name)
    return found


def test_what_a_killed_run_left_is_gone_once_it_is_ended(tmp_path: Path) -> None:
    starts = f"import subprocess, sys\nfor _ in range(40): subprocess.Popen([sys.executable, '-c', {HEAVY!r}])"
    env = {**os.environ, proc.OWNER: str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", starts], env=env) as left:
        while len(marked(tmp_path)) < 3:
            assert not left.poll(), "it could not start them"
            time.sleep(0.02)
        proc.end_orphans(tmp_path)
        assert marked(tmp_path) == []
