"""The verb: what it prints, the outputs and the summary it writes, and how its words are read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from wheelmill import cli_ci
from wheelmill.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TEXT = 'version: 1\ntorch: ">=2.9"\ncuda: [cpu, cu130]\nabi: {torch: stable>=2.10, python: none}\n'


@pytest.fixture
def file(write: Callable[[str], Path]) -> Path:
    made = write(TEXT)
    (made.parent / "setup.py").write_text("from setuptools import setup\nsetup()\n")
    return made


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(cli_ci.ci, list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_json_is_the_same_twice_and_follows_the_sources(file: Path) -> None:
    text = run("--matrix", file, "--json", "--gpu", "9.0")
    assert text == run("--matrix", file, "--json", "--gpu", "sm_90")
    made = json.loads(text)
    assert [job["id"] for job in made["build"]] == [
        "cpu-torch2.9",
        "cpu-stable2.10",
        "cu130-torch2.9",
        "cu130-stable2.10",
    ]
    assert [job["group"] for job in made["gpu"]] == ["cu130-torch2.9", "cu130-stable2.10"]
    for name in ("dist/a.whl", "ci/build-x.json", ".wheelmill/x", "site/index.html"):
        (file.parent / name).parent.mkdir(exist_ok=True)
        (file.parent / name).write_text("no source")
    assert run("--matrix", file, "--json", "--gpu", "9.0") == text
    (file.parent / "a.cu").write_text("// a source\n")
    after = json.loads(run("--matrix", file, "--json", "--gpu", "9.0"))
    assert all(one["key"] != other["key"] for one, other in zip(made["build"], after["build"], strict=True))


def test_select_may_be_one_argument_of_several_words_or_none(file: Path) -> None:
    some = json.loads(run("--matrix", file, "--json", "cpu cu130-stable2.10"))
    assert [job["id"] for job in some["build"]] == ["cpu-torch2.9", "cpu-stable2.10", "cu130-stable2.10"]
    assert json.loads(run("", "--matrix", file, "--json"))["wheels"] == 4
    assert json.loads(run("jobs", "--matrix", file, "--json"))["wheels"] == 4


def test_github_outputs_and_summary(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "output"))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))
    (tmp_path / "output").write_text("before=1\n")
    run("--matrix", file, "--github", "--jobs", "2", "--per-job", "1", "--gpu", '["9.0"]')
    told = dict(line.split("=", 1) for line in (tmp_path / "output").read_text().splitlines())
    assert told["before"] == "1"
    assert (told["builds"], told["gpus"], told["part"], told["parts"], told["next"]) == ("2", "0", "1", "2", "2")
    assert [job["id"] for job in json.loads(told["build"])["include"]] == ["cpu-torch2.9", "cpu-stable2.10"]
    assert json.loads(told["gpu"]) == {"include": []}
    assert "| cpu | 2 | 2 | 0 |" in (tmp_path / "summary").read_text()
    run("--matrix", file, "--github", "--jobs", "2", "--per-job", "1", "--gpu", "9.0", "--part", "2")
    told = dict(line.split("=", 1) for line in (tmp_path / "output").read_text().splitlines())
    assert (told["gpus"], told["part"], told["next"], told["set"]) == ("2", "2", "", "2")
    run("jobs", "--matrix", file, "--github", "--", "cpu*")
    told = dict(line.split("=", 1) for line in (tmp_path / "output").read_text().splitlines())
    assert told["set"].startswith("1x")


def test_outside_a_workflow_there_are_no_outputs(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_OUTPUT", raising=False)
    with pytest.raises(InputError, match="GITHUB_OUTPUT"):
        run("--matrix", file, "--github")


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["--part", "2"], "there is no part 2"),
        (["--since", "main"], "--since says what a change is against"),
        (["--gpu", "hopper"], "'hopper' is no SM"),
        (["cu999"], "matches no wheel"),
        (["run", "build", " "], "is no list of wheels' ids"),
        (["run", "build", "cu130*"], "is no list of wheels' ids"),
        (["run", "build", "a", "--options", "'"], "--options"),
    ],
)
def test_wrong_input(file: Path, arguments: list[str], match: str) -> None:
    with pytest.raises(InputError, match=match):
        run(*arguments, "--matrix", file)


@pytest.mark.parametrize("word", ["9.0", "90", "sm_90", "sm_9.0", '["9.0"]', "9.0,9.0", " [ 'sm_90' ] "])
def test_an_sm_however_it_is_written(word: str) -> None:
    assert cli_ci.capabilities((word,)) == ("9.0",)


def test_no_gpu_however_it_is_written() -> None:
    assert cli_ci.capabilities(("[]", "")) == ()
    assert cli_ci.capabilities(('["10.0", "7.5"]',)) == ("10.0", "7.5")


def test_the_report_of_stage_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    (tmp_path / "build-a.json").write_text(
        '{"version": 1, "stage": "build", "id": "a", "wheels": [{"id": "cpu-torch2.9", "result": "pass"}]}'
    )
    assert "1 wheels: 1 pass" in run("report", tmp_path)
    assert json.loads(run("report", tmp_path, "--json"))["verdict"] == "pass"
    assert "| cpu-torch2.9 | ✓ |" in run("report", tmp_path, "--markdown")
