"""The joined report: what counts of several, what is missing of a plan, and that it stays within its room."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from wheelmill import ci_report, ci_run, ci_stage
from wheelmill.ci_report import Planned
from wheelmill.ci_stage import Outcome, Stage
from wheelmill.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from wheelmill.ci_report import Report
    from wheelmill.ci_stage import Result, StageName

PLAN = Planned.model_validate(
    {
        "version": 1,
        "part": 1,
        "parts": 1,
        "build": [{"id": "g", "wheels": ["cu130-a", "cu130-b"]}, {"id": "cpu-c", "wheels": ["cpu-c"]}],
        "gpu": [{"id": "g.sm_90", "wheels": ["cu130-a"], "sm": "sm_90"}],
    }
)


def stage(
    name: StageName, id_: str = "g", *, run: int = 0, attempt: int = 1, cause: str = "", **wheels: Result
) -> Stage:
    outcomes = (
        Outcome(id=wheel.replace("_", "-"), result=result, cause=cause, excerpt=cause)
        for wheel, result in wheels.items()
    )
    return Stage(stage=name, id=id_, run=run, attempt=attempt, wheels=tuple(outcomes))


def results(report: Report) -> dict[tuple[str, str], str]:
    return {at: outcome.result for at, outcome in report.cells.items()}


def test_all_that_was_planned_and_passed() -> None:
    made = ci_report.join(
        [
            stage("gpu", "g.sm_90", cu130_a="pass"),
            stage("build", cu130_a="pass", cu130_b="pass"),
            stage("build", "cpu-c", cpu_c="pass"),
        ],
        [PLAN],
    )
    assert made.columns == ("build", "gpu sm_90")
    assert made.rows == ("cu130-a", "cu130-b", "cpu-c")
    assert made.verdict == "pass"
    assert set(results(made).values()) == {"pass"}


def test_what_nobody_reported_is_missing_and_what_was_not_reached_is_not() -> None:
    made = ci_report.join([stage("build", cu130_a="fail"), stage("audit", cu130_b="pass")], [PLAN])
    assert results(made) == {
        ("cu130-a", "build"): "fail",  # and so neither audited nor tested
        ("cu130-b", "build"): "missing",
        ("cu130-b", "audit"): "pass",
        ("cpu-c", "build"): "missing",
    }
    assert [(one.outcome.id, one.column) for one in made.faults] == [
        ("cu130-a", "build"),
        ("cu130-b", "build"),
        ("cpu-c", "build"),
    ]
    assert made.verdict == "fail"


def test_what_was_not_built_is_missing_once() -> None:
    made = ci_report.join(
        [stage("build", cpu_c="fail", cpu_d="pass"), stage("audit", cpu_c="missing", cpu_d="missing")]
    )
    assert results(made)["cpu-c", "audit"] == "skipped"
    assert [(one.outcome.id, one.column) for one in made.faults] == [("cpu-c", "build"), ("cpu-d", "audit")]


def test_a_gpu_that_no_job_reported_is_missing() -> None:
    built = [stage("build", cu130_a="pass", cu130_b="pass", cpu_c="pass")]
    made = ci_report.join(built, [PLAN])
    assert [(one.outcome.id, one.column, one.outcome.cause) for one in made.faults] == [
        ("cu130-a", "gpu sm_90", "no job reported it")
    ]
    assert ci_report.join(built).verdict == "pass"


def test_a_later_run_or_attempt_replaces_an_earlier_and_of_one_the_worse_counts() -> None:
    first, again = stage("build", run=7, cpu_c="fail"), stage("build", run=7, attempt=2, cpu_c="pass")
    assert ci_report.join([again, first]).verdict == "pass"
    assert ci_report.join([stage("build", run=8, cpu_c="fail"), again]).verdict == "fail"
    both = [stage("build", "one", cpu_c="pass"), stage("build", "two", cpu_c="fail")]
    assert ci_report.join(both).verdict == ci_report.join(both[::-1]).verdict == "fail"


def test_nothing_reported_is_no_pass() -> None:
    assert ci_report.join([]).verdict == "fail"
    assert "nothing was reported" in ci_report.text(ci_report.join([]))


def test_text_and_json_tell_each_failure() -> None:
    made = ci_report.join([stage("build", cause="no disk", cu130_a="fail", cu130_b="pass")])
    assert "cu130-a: build fail: no disk" in ci_report.text(made)
    told = json.loads(json.dumps(ci_report.to_json(made)))
    assert told["verdict"] == "fail"
    assert told["faults"] == [{"id": "cu130-a", "stage": "build", "cause": "no disk"}]
    assert told["wheels"][0]["stages"]["build"]["excerpt"] == "no disk"


def test_markdown_holds_no_markup_of_a_log() -> None:
    hostile = "</pre></details><script>alert(1)</script> | `x` <img src=x>"
    text = ci_report.markdown(ci_report.join([stage("build", cause=hostile, cpu_c="fail")]), "Wheels")
    assert "<script" not in text
    assert "<img" not in text
    assert text.count("</pre>") == 1
    assert "| cpu-c | ✗ fail |" in text


def test_markdown_holds_no_link_and_no_cell_of_a_log() -> None:
    hostile = "[x](http://a.example) ![i](http://a.example/i.png) \\| more \u202egnp"
    text = ci_report.markdown(ci_report.join([stage("build", cause=hostile, cpu_c="fail")]), "Wheels")
    outside = text.partition("<details>")[0]
    assert "](" not in outside
    assert "&#91;x&#93;(http" in outside
    assert "&#92;\\| more gnp" in outside


def test_a_blank_line_of_a_log_does_not_end_its_text() -> None:
    """CommonMark ends the block of <details> at a blank line, and that of a line that begins with <pre> at </pre>."""
    text = ci_report.markdown(ci_report.join([stage("build", cause="one\n\n# two", cpu_c="fail")]), "Wheels")
    assert "\n<pre>\none\n\n# two\n</pre>\n" in text


@pytest.mark.parametrize("name", ["a\n::error::b", "a b", "", ".a", "x" * 300])
def test_a_stage_file_names_wheels_by_ids_alone(tmp_path: Path, name: str) -> None:
    made = {"version": 1, "stage": "build", "id": "a", "wheels": [{"id": name, "result": "pass"}]}
    (tmp_path / "build-a.json").write_text(json.dumps(made))
    with pytest.raises(InputError, match=r"build-a\.json is no report of a stage.*: wheels\.0\.id: "):
        list(ci_run.gathered([tmp_path]))


def test_a_huge_stage_file_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "build-a.json").open("wb") as file:
        file.truncate(ci_stage.LARGEST + 1)
    with pytest.raises(InputError, match=r"bytes, and .* are the most"):
        ci_stage.read(tmp_path / "build-a.json")


def test_text_holds_no_command_of_a_runner_and_no_control() -> None:
    outcome = Outcome(
        id="cpu-c",
        result="fail",
        cause="##[add-mask]x",
        excerpt="::error::a\n  ::stop-commands::b\n\x1b[31mred\x1b[0m a::b",
    )
    text = ci_report.text(ci_report.join([Stage(stage="gpu", id="x.sm_90<b>", wheels=(outcome,))]))
    assert not [line for line in text.splitlines() if line.lstrip().startswith("::") or "##[" in line]
    assert "    : :error::a" in text
    assert "red a::b" in text
    assert "<b>" not in text
    assert "\x1b" not in text


@pytest.mark.parametrize("room", [2_000, 60_000, None])
def test_markdown_keeps_within_its_room(room: int | None) -> None:
    outcomes = tuple(
        Outcome(id=f"cu130-torch2.{number}", result="fail", cause=f"cause {number}", excerpt="ü" * 4000)
        for number in range(3000)
    )
    text = ci_report.markdown(ci_report.join([Stage(stage="build", id="x", wheels=outcomes)]), "Wheels", room)
    assert len(text.encode()) <= (room or 1_048_576)
    assert "3000 wheels: 3000 fail" in text
    assert "**cu130-torch2.0**: build fail: cause 0" in text
    assert "and more" in text


def test_a_plan_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text('{"version": 2}')
    for name in ("plan.json", "absent.json"):
        with pytest.raises(InputError, match="is no plan"):
            ci_report.planned(tmp_path / name)
