"""What is told of a verb that failed, and what a stage file holds. The verbs themselves run in tests/integration."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from wheelmill import ci_run, ci_stage
from wheelmill.ci_run import Job
from wheelmill.ci_secrets import Mask
from wheelmill.ci_stage import Outcome, Stage
from wheelmill.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


def job(folder: Path, stage: ci_stage.StageName, *wheels: str) -> Job:
    return Job(
        stage=stage,
        id="x",
        wheels=wheels,
        matrix=folder / "matrix.yaml",
        dist=folder / "dist",
        out=folder / "ci",
        options=(),
        mask=Mask({}),
        tell=lambda _: None,
    )


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        (
            ["noise", "error: no compiler is here", "  what to do: install one"],
            "no compiler is here",
        ),
        (
            [
                "error: 1 of 1 wheels failed",
                "a: `c++ …` ended with status 1:",
                "    x.cpp:1: error: no",
                "  what to do: see",
            ],
            "a: `c++ …` ended with status 1: x.cpp:1: error: no",
        ),
        (["Traceback (most recent call last):", "ValueError: odd", ""], "ValueError: odd"),
        ([], "it ended with status 9 and said nothing"),
    ],
)
def test_the_cause_is_one_line_that_says_why(lines: list[str], cause: str) -> None:
    assert ci_run.cause_of(ci_run._error(lines), 9) == cause


def test_the_excerpt_is_the_end_of_the_log() -> None:
    lines = [*(f"line {number}" for number in range(50)), "", "::endgroup::", "x" * 1000]
    found = ci_run.excerpt_of(lines).splitlines()
    assert len(found) == 20
    assert found[-2] == "line 49"
    assert len(found[-1]) == 400


@pytest.mark.parametrize(("code", "result"), [(0, "pass"), (1, "fail"), (2, "fail"), (3, "missing"), (137, "fail")])
def test_a_verb_that_misses_something_says_nothing_of_the_wheel(code: int, result: str) -> None:
    assert ci_run.result_of(code) == result


def test_a_wheel_without_a_file_is_missing_and_stops_nothing(tmp_path: Path) -> None:
    asked = job(tmp_path, "audit", "cpu-torch2.9", "cpu-torch2.10")
    assert ci_run.written(asked) == []
    assert ci_run.run(asked) == 3
    (made,) = ci_run.written(asked)
    assert [(one.id, one.result) for one in made.wheels] == [("cpu-torch2.9", "missing"), ("cpu-torch2.10", "missing")]
    assert json.loads((tmp_path / "ci/audit-x.json").read_text())["version"] == 1
    assert (tmp_path / "ci/.gitignore").read_text() == "*\n"


@pytest.mark.parametrize(
    ("stage", "wheel", "why"),
    [
        ("gpu", "cpu-torch2.9", "it is for the CPU"),
        ("cpu", "cu130-torch2.9", "it is for GPUs, where its operators are called on the CPU too"),
        ("cpu", "cpu-torch2.9", "the matrix names no operators"),
    ],
)
def test_a_wheel_that_is_of_no_concern_to_a_stage_is_skipped(
    tmp_path: Path, stage: ci_stage.StageName, wheel: str, why: str
) -> None:
    asked = job(tmp_path, stage, wheel)
    asked.matrix.write_text("version: 1\ntorch: ['2.9']\ncuda: [cpu, cu130]\n")
    assert ci_run.run(asked) == 0
    assert [(one.result, one.cause) for one in ci_run.written(asked)[0].wheels] == [("skipped", why)]


def test_an_audit_is_told_by_its_gravest_finding(tmp_path: Path) -> None:
    def result(level: str, rule: str, **more: object) -> dict[str, object]:
        return {"level": level, "ruleId": rule, "message": {"text": "it is\nso"}, **more}

    results = [
        result("error", "waived", suppressions=[{"kind": "external"}]),
        result("note", "c"),
        result("warning", "b"),
        result("error", "a"),
    ]
    for count, cause in ((4, ["a: it is so"]), (3, ["b: it is so"]), (1, [])):
        (tmp_path / "audit.sarif").write_text(json.dumps({"runs": [{"results": results[:count]}]}))
        assert ci_run._answered("audit", tmp_path) == cause


def test_a_stopped_job_tells_what_it_did_not_do(tmp_path: Path) -> None:
    def stop(_: str) -> None:
        raise KeyboardInterrupt

    stopped = job(tmp_path, "cover", "a", "b")
    stopped = Job(**{name: getattr(stopped, name) for name in Job.__slots__} | {"tell": stop})
    with pytest.raises(KeyboardInterrupt):
        ci_run.run(stopped)
    found = ci_stage.read(tmp_path / "ci/cover-x.json")
    assert {one.result for one in found.wheels} == {"missing"}
    assert "stopped" in found.wheels[0].cause


def test_files_are_known_by_their_manifests(tmp_path: Path) -> None:
    for name, manifest in (("a.whl", {"wheel": "cpu-torch2.9", "sha256": "0" * 64, "environments": []}), ("b.whl", {})):
        (tmp_path / "below").mkdir(exist_ok=True)
        (tmp_path / "below" / name).write_bytes(b"")
        (tmp_path / "below" / f"{name}.manifest.json").write_text(json.dumps(manifest))
    (tmp_path / "c.whl").write_bytes(b"")
    assert ci_run.files(tmp_path) == {"cpu-torch2.9": tmp_path / "below/a.whl"}
    assert ci_run.files(tmp_path / "absent") == {}


def test_stage_files_are_gathered_and_others_are_not_taken_for_one(tmp_path: Path) -> None:
    stage = Stage(stage="build", id="a/b", wheels=(Outcome(id="a", result="pass"),))
    file = ci_stage.write(stage, tmp_path / "one")
    assert file.parent == tmp_path / "one"
    (tmp_path / "one/plan.json").write_text("{}")
    (tmp_path / "one/cover-1.0-py3-none-any.whl.cover.json").write_text("{}")
    assert list(ci_run.gathered([tmp_path])) == [stage]
    (tmp_path / "one/audit-x.json").write_text("{}")
    with pytest.raises(InputError, match=r"audit-x\.json is no report of a stage"):
        list(ci_run.gathered([tmp_path]))
    with pytest.raises(InputError, match="is no folder"):
        list(ci_run.gathered([tmp_path / "absent"]))
