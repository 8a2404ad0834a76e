"""The matrix of a release."""

from __future__ import annotations

import pytest
from tests.web.records import record

from wheelmill import site_matrix
from wheelmill.records import Cell

PYTHONS = ("3.11", "3.12")


def cell(python: str, result: str = "pass", **more: object) -> Cell:
    return Cell(**{"cuda": "cu130", "torch": "2.11", "python": python, "result": result, **more})


def words(grid: dict, row: int = 0) -> list[list[str]]:
    return [[wheel["label"].partition(": ")[2] for wheel in found] for found in grid["groups"][0]["rows"][row]["cells"]]


def test_each_cell_tells_its_four_statuses() -> None:
    one = record("demo", "1.0", "cu130", ["2.11"], cover=(cell("3.11"), cell("3.12", "fail", error="x")), gates=None)
    grid = site_matrix.grid([one], PYTHONS)
    assert grid["pythons"] == ["3.11", "3.12"]
    assert words(grid) == [
        ["build pass, audit pass, cover pass, gates not measured"],
        ["build pass, audit pass, cover fail, gates not measured"],
    ]
    assert [mark["symbol"] for mark in grid["groups"][0]["rows"][0]["cells"][1][0]["marks"]] == ["✓", "✓", "✗", "○"]


def test_wheels_of_one_python_stand_in_its_column() -> None:
    found = [
        record("demo", "1.0", "cu130", ["2.11"], tags=f"cp3{n}-cp3{n}", pythons=[f"3.{n}"], cover=(cell(f"3.{n}"),))
        for n in (11, 12)
    ]
    assert [len(cells) for cells in site_matrix.grid(found, PYTHONS)["groups"][0]["rows"][0]["cells"]] == [1, 1]


def test_what_is_not_promised_is_left_out_and_a_promise_not_kept_is_shown() -> None:
    cells = (
        cell("3.11"),
        cell("3.12", "pass", unclaimed="it does not take Python 3.12"),
        cell("3.11", "fail", torch="2.12"),
    )
    grid = site_matrix.grid([record("demo", "1.0", "cu130", ["2.11"], cover=cells)], PYTHONS)
    assert grid["pythons"] == ["3.11"]
    assert [(row["name"], row["listed"]) for row in grid["groups"][0]["rows"]] == [
        ("cu130-torch2.12", False),
        ("cu130-torch2.11", True),
    ]


def test_a_wheel_that_was_measured_in_no_python_has_those_that_it_admits() -> None:
    grid = site_matrix.grid([record("demo", "1.0", "cu130", ["2.11"], cover=None)], PYTHONS)
    assert words(grid) == [["build pass, audit pass, cover not measured, gates pass"]] * 2


def test_a_hostile_cell_has_no_row() -> None:
    grid = site_matrix.grid(
        [record("demo", "1.0", "cu130", ["2.11"], cover=(cell("3.11", cuda="<b>"), cell("<b>")))], PYTHONS
    )
    assert [row["name"] for group in grid["groups"] for row in group["rows"]] == ["cu130-torch2.11"]


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("demo-1.0+cu130.torch2.4-cp312-cp312-manylinux_2_28_x86_64.whl", "cu130.torch2.4 cp312-cp312"),
        ("demo-1.0-py3-none-any.whl", "py3-none"),
        ("demo-1.0+cpu-1-py3-none-any.whl", "cpu py3-none"),
        ("odd.whl", "odd.whl"),
    ],
)
def test_short_names(file: str, name: str) -> None:
    assert site_matrix.short_name(file) == name


def test_two_wheels_of_one_short_name_keep_their_own() -> None:
    files = [f"demo-1.0+cpu-py3-none-manylinux_2_28_{machine}.whl" for machine in ("x86_64", "aarch64")]
    listed = site_matrix.wheels([record("demo", "1.0", "cpu", ["2.11"], file=file) for file in files])
    assert [one["name"] for one in listed] == files
