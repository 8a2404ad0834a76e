"""Reporters: plain lines, a CI system's groups, and the live table's content."""

import io

import pytest
from rich.console import Console

from wheelmill import report


def play(reporter: report.Reporter) -> None:
    reporter.step("cu130", "compile")
    reporter.step("cu130", "check")
    reporter.done("cu130", "built", "demo.whl")


def test_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    play(report.Plain())
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" ", 1)[1] for line in lines] == ["cu130: compile", "cu130: check", "cu130: built: demo.whl"]


def test_groups_open_once_and_close(capsys: pytest.CaptureFixture[str]) -> None:
    play(report.Groups())
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "::group::cu130"
    assert lines.count("::endgroup::") == 1
    assert lines[-1].endswith("built: demo.whl")


def test_the_table_shows_every_row_with_its_step() -> None:
    live = report.Live(rows={"cpu": report._Row(), "cu130": report._Row()})
    live.step("cpu", "compile")
    live.done("cu130", "failed", "no [compiler]")
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(live)
    said = console.export_text()
    assert "compile" in said
    assert "failed: no [compiler]" in said


def test_the_choice_follows_where_the_output_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert isinstance(report.choose(["cpu"]), report.Groups)
    monkeypatch.delenv("GITHUB_ACTIONS")
    assert type(report.choose(["cpu"])) is report.Plain
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert isinstance(report.choose(["cpu"]), report.Live)
