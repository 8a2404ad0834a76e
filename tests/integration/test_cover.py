"""Wheels that promise more or less than is true, tried beside two torch releases. Each run makes them anew."""

from __future__ import annotations

import json
import secrets
import shutil
import signal
import subprocess
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

import pytest

from wheelmill.interpreters import ENGINE_PYTHON

from .conftest import PROJECTS, STORE, command

if TYPE_CHECKING:
    from pathlib import Path

BELOW, ABOVE = (f"cu130-torch{minor}-cp{ENGINE_PYTHON.replace('.', '')}" for minor in ("2.13", "2.14"))


def wheel(folder: Path, name: str) -> Path:
    """A wheel of one module of the project `promises`, of bytes that no run before has recorded."""
    source = PROJECTS / "promises" / f"{name}.py"
    text = source.read_text()
    requires = text.splitlines()[0].removeprefix("# ")
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    members = {
        f"{name}.py": f"{text}\n# {secrets.token_hex()}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nRequires-Dist: {requires}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    members[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*members, f"{info}/RECORD"])
    with ZipFile(path, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return path


def arguments(*wheels: Path, torch: str = "2.14") -> list[str]:
    return command("cover", *wheels, "--torch", torch, "--python", ENGINE_PYTHON, "--store", STORE)


def cover(folder: Path, *names: str, torch: str = "2.14", more: tuple[str, ...] = ()) -> tuple[int, list[Any]]:
    args = [*arguments(*(wheel(folder, name) for name in names), torch=torch), "--json", *more]
    done = subprocess.run(args, cwd=folder, text=True, capture_output=True, check=False)
    assert "Traceback" not in done.stderr
    assert f"{'1 environments' if torch == '2.14' else '2 environments'} of" in done.stderr
    return done.returncode, json.loads(done.stdout)["wheels"]


def verdicts(report: Any) -> dict[str, str]:
    return {cell["cell"]: cell["result"] for cell in report["cells"]}


def test_a_promise_that_is_not_kept(tmp_path: Path) -> None:
    code, (breaks,) = cover(tmp_path, "breaks", torch="2.13-2.14")
    assert code == 1
    assert verdicts(breaks) == {BELOW: "pass", ABOVE: "fail"}
    (finding,) = breaks["findings"]
    assert (finding["rule"], finding["severity"]) == ("promise-not-kept", "error")
    assert "ImportError: undefined symbol: gone_in_2_14" in finding["message"]
    assert breaks["verdict"] == "fail"
    assert breaks["measured"]["torch"] == ["2.13"]


def test_a_success_that_was_not_promised(tmp_path: Path) -> None:
    code, (modest,) = cover(tmp_path, "modest")
    assert code == 0
    assert verdicts(modest) == {ABOVE: "pass"}
    (finding,) = modest["findings"]
    assert (finding["rule"], finding["severity"]) == ("unpromised-success", "info")
    assert modest["verdict"] == "unknown", "no cell that it promises was asked for"
    beside = json.loads((tmp_path / f"{modest['file']}.cover.json").read_text())
    assert beside == modest


def test_a_crash_a_hang_and_a_way_out_at_import_are_results(tmp_path: Path) -> None:
    code, reports = cover(tmp_path, "crashes", "hangs", "leaves", more=("--timeout", "20"))
    assert code == 1
    assert [report["cells"][0]["error"] for report in reports] == [
        "the process was killed by SIGSEGV while importing crashes",
        "it hung while importing hangs: nothing for 20 s",
        "the process ended with status 0 while importing leaves",
    ]
    assert [report["verdict"] for report in reports] == ["fail", "fail", "fail"]


def test_an_interrupted_run_keeps_what_it_measured(tmp_path: Path) -> None:
    args = arguments(wheel(tmp_path, "honest"), torch="2.13-2.14")
    stopped = subprocess.Popen(args, cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert stopped.stderr is not None
    for line in stopped.stderr:
        if f"{ABOVE}: trying" in line:
            break
    stopped.send_signal(signal.SIGTERM)
    stopped.communicate(timeout=60)
    assert stopped.returncode == 130
    again = subprocess.run(args, cwd=tmp_path, text=True, capture_output=True, check=False)
    assert again.returncode == 0
    assert f"{BELOW}: trying" not in again.stderr
    assert f"{ABOVE}: pass" in again.stderr
    assert "unpromised" not in again.stdout
    third = subprocess.run([*args, "--markdown"], cwd=tmp_path, text=True, capture_output=True, check=False)
    assert "trying" not in third.stderr
    assert "| 2.14 + cu130 | pass |" in third.stdout


def test_where_nothing_that_is_promised_can_be_had_nothing_is_said_to_be_fine(tmp_path: Path) -> None:
    args = command("cover", wheel(tmp_path, "honest"), "--torch", "2.14", "--python", "3.9", "--store", STORE)
    done = subprocess.run(args, cwd=tmp_path, text=True, capture_output=True, check=False)
    assert done.returncode == 3
    assert "torch 2.14 has no wheel for Python 3.9" in done.stderr
    assert "nothing is known of it" in done.stderr


@pytest.mark.parametrize(("option", "word"), [("--torch", "2.1x"), ("--python", "3.99")])
def test_what_no_table_knows_is_refused(tmp_path: Path, option: str, word: str) -> None:
    args = command("cover", wheel(tmp_path, "honest"), option, word, "--store", STORE)
    done = subprocess.run(args, cwd=tmp_path, text=True, capture_output=True, check=False)
    assert done.returncode == 2
    assert f"{word} is not in the table of facts" in done.stderr


def test_a_wheel_that_does_not_keep_its_promise_is_not_published(tmp_path: Path) -> None:
    """The build's own gate: the package that a build gives does not import."""
    project = shutil.copytree(PROJECTS / "slow", tmp_path / "slow")
    (project / "seconds").write_text("0")
    (project / "slow" / "__init__.py").write_text(f"raise ImportError('not here {secrets.token_hex()}')\n")
    args = command("build", "cpu-torch2.14", "--store", STORE)
    done = subprocess.run(args, cwd=project, text=True, capture_output=True, check=False)
    assert done.returncode == 1
    assert "ImportError: not here" in done.stderr
    assert not list(project.glob("dist/*"))
    assert not (project / "site").exists()
