"""What a page's scripts are told of a wheel."""

from __future__ import annotations

import json

import pytest
from tests.web.records import record

from wheelmill import site_rows
from wheelmill.records import Audit, Cell, Gates, Library

PYTHONS = ("3.9", "3.10", "3.12", "3.13", "3.13t")


@pytest.mark.parametrize(
    ("tags", "requires", "admitted"),
    [
        ("py3-none", ">=3.10", ["3.10", "3.12", "3.13", "3.13t"]),
        ("cp312-cp312", None, ["3.12"]),
        ("cp310-abi3", ">=3.10", ["3.10", "3.12", "3.13"]),
        ("cp313-cp313t", None, ["3.13t"]),
        ("py3-none", ">=3.9,<3.11", ["3.9", "3.10"]),
        ("py3-none", "not a range", []),
    ],
)
def test_pythons(tags: str, requires: str | None, admitted: list[str]) -> None:
    one = record("demo", "1.0", "cpu", ["2.11"], tags=tags, requires_python=requires)
    assert site_rows.row(one, PYTHONS)["pythons"] == admitted


@pytest.mark.parametrize(
    ("platform", "found"),
    [
        ("manylinux_2_28_x86_64", [["glibc", "2.28", "x86_64"]]),
        ("manylinux_2_17_x86_64.manylinux2014_x86_64", [["glibc", "2.17", "x86_64"]]),
        # Its library needs more than the tag says.
        ("manylinux1_x86_64", [["glibc", "2.17", "x86_64"]]),
        ("musllinux_1_2_aarch64", [["musl", "1.2", "aarch64"]]),
        ("linux_x86_64", [["glibc", "2.17", "x86_64"]]),
        ("win_amd64", [["other", None, "win_amd64"]]),
        ("any", [["any", None, "any"]]),
    ],
)
def test_platforms(platform: str, found: list[list[str | None]]) -> None:
    one = record("demo", "1.0", "cpu", ["2.11"], file=f"demo-1.0-py3-none-{platform}.whl")
    assert site_rows.row(one, PYTHONS)["platforms"] == found


def test_a_file_name_that_is_none_admits_nothing() -> None:
    row = site_rows.row(record("demo", "1.0", "cpu", ["2.11"], file="demo.whl"), PYTHONS)
    assert (row["pythons"], row["platforms"]) == ([], [])


def test_code_is_each_librarys_own() -> None:
    libraries = {
        "a.so": Library(sass=("80",), ptx=("90",), ptx_isa="9.0"),
        "b.so": Library(sass=("90",)),
        "c.so": Library(sass=("90",)),
        "d.so": Library(),
    }
    one = record("demo", "1.0", "cu130", ["2.11"], audit=Audit(verdict="pass", libraries=libraries))
    assert site_rows.row(one, PYTHONS)["code"] == [[["80"], ["90"], "9.0"], [["90"], [], None]]
    assert site_rows.row(record("demo", "1.0", "cu130", ["2.11"], audit=None), PYTHONS)["code"] is None


@pytest.mark.parametrize(
    ("requires", "torch"),
    [
        (("torch>=2.10,<3", "numpy"), "<3,>=2.10"),
        (("torch==2.4.*",), "==2.4.*"),
        (('torch>=2; extra == "x"',), ""),
        (("numpy", "no requirement !"), ""),
        ((), ""),
    ],
)
def test_torch(requires: tuple[str, ...], torch: str) -> None:
    assert site_rows.row(record("demo", "1.0", "cpu", ["2.11"], requires=requires), PYTHONS)["torch"] == torch


def test_what_was_tried() -> None:
    cells = (
        Cell(cuda="cu130", torch="2.11", python="3.12", result="pass"),
        Cell(cuda="cu130", torch="2.11", python="3.13", result="fail", error="  undefined\n symbol" + "x" * 300),
        Cell(cuda="cu130", torch="2.12", python="3.12", result="not-available", error="no index"),
    )
    row = site_rows.row(record("demo", "1.0", "cu130", ["2.11"], cover=cells), PYTHONS)
    assert row["passed"] == [["cu130-torch2.11", "3.12"]]
    assert row["failed"] == [["cu130-torch2.11", "3.13"]]
    [[environment, error]] = row["errors"]
    assert environment == "cu130-torch2.11"
    assert error.startswith("undefined symbolx")
    assert len(error) == site_rows.ERROR_LENGTH


@pytest.mark.parametrize(
    ("verdicts", "status"),
    [
        ({"ops": "pass", "bench": "fail", "sanitize": "incomplete"}, "fail"),
        ({"ops": "pass", "sanitize": "incomplete"}, "incomplete"),
        ({"ops": "pass"}, "pass"),
        ({}, "unknown"),
    ],
)
def test_the_worst_gate_counts(verdicts: dict[str, str], status: str) -> None:
    assert site_rows.gates_status(record("demo", "1.0", "cpu", ["2.11"], gates=Gates(verdicts=verdicts))) == status


def test_a_script_ends_neither_itself_nor_a_line_early() -> None:
    value = {"a": "</script><!--\u2028\u2029\\\"'", "__proto__": "x"}
    made = site_rows.script("site", value)
    assert made.isascii()
    assert made.count(b"\n") == 1
    assert b"<" not in made
    assert json.loads(made[len(b"wheelmill.site(") : -3]) == value


@pytest.mark.parametrize(
    ("text", "words"),
    [("cu130", "CUDA 13.0"), ("cu118", "CUDA 11.8"), ("cpu", "CPU"), ("cu9", "cu9"), ("<b>", "<b>"), ("", "")],
)
def test_cuda_words(text: str, words: str) -> None:
    assert site_rows.cuda_words(text) == words


def test_environments_newest_first_and_the_cpu_last() -> None:
    names = ["cpu-torch2.14", "cu118-torch2.4", "cu130-torch2.9", "cu130-torch2.11", "odd", "cu121-torch2.4"]
    assert sorted(names, key=site_rows.environment_key, reverse=True) == [
        "odd",
        "cu130-torch2.11",
        "cu130-torch2.9",
        "cu121-torch2.4",
        "cu118-torch2.4",
        "cpu-torch2.14",
    ]


@pytest.mark.parametrize(("target", "words"), [("90", "9.0"), ("100f", "10.0f"), ("90a", "9.0a"), ("5", "5")])
def test_capability(target: str, words: str) -> None:
    assert site_rows.capability(target) == words
