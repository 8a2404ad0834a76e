"""What a wheel's page shows."""

from __future__ import annotations

import pytest
from tests.web.records import record

from wheelmill import site_view
from wheelmill.records import Cell, Gates, Time


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0 B"), (999, "999 B"), (1240, "1.2 kB"), (400_000, "400 kB"), (1_270_000, "1.3 MB"), (5 * 10**12, "5000 GB")],
)
def test_sizes(size: int, words: str) -> None:
    assert site_view.size_words(size) == words


def test_cover_is_the_worst_of_what_is_promised() -> None:
    ok = Cell(cuda="cu130", torch="2.11", python="3.12", result="pass")
    bad = Cell(cuda="cu130", torch="2.12", python="3.12", result="fail", error="x")
    outside = bad.model_copy(update={"unclaimed": "it is for torch 2.11"})
    away = Cell(cuda="cu130", torch="2.12", python="3.12", result="not-available")
    statuses = [
        site_view.cover_status(record("demo", "1.0", "cu130", ["2.11"], cover=cells))
        for cells in ((ok, bad), (ok, outside), (away,), None)
    ]
    assert statuses == ["fail", "pass", "unknown", "unknown"]


def test_a_reason_is_told_once() -> None:
    cells = [
        Cell(cuda="cu130", torch=torch, python="3.12", result="fail", error="same  text") for torch in ("2.11", "2.12")
    ]
    table = site_view.measured(record("demo", "1.0", "cu130", ["2.11"], cover=tuple(cells)))
    assert table["notes"] == ["same text"]
    assert [row[2][0]["note"] for row in table["rows"]] == [1, 1]
    assert [row[0] for row in table["rows"]] == ["cu130-torch2.12", "cu130-torch2.11"]


def test_bars_share_a_scale_within_a_card() -> None:
    times = (
        Time(operator="a", sample="s", card="X", milliseconds=1, of_reference=0.25),
        Time(operator="b", sample="s", card="X", milliseconds=2),
        Time(operator="a", sample="s", card="Y", milliseconds=0.5, of_reference=2),
        Time(operator="tiny", sample="s", card="X", milliseconds=0.0001),
    )
    x, y = site_view.plots(record("demo", "1.0", "cu130", ["2.11"], gates=Gates(verdicts={}, times=times)))
    assert (x["card"], y["card"]) == ("X", "Y")
    assert [(row["operator"], row["width"], row["other"]) for row in x["rows"]] == [
        ("a", "50.0", "200.0"),
        ("b", "100.0", None),
        ("tiny", "1.0", None),
    ]
    assert (x["rows"][0]["ratio"], x["rows"][0]["reference"]) == ("0.25", "4")
    assert (y["rows"][0]["width"], y["rows"][0]["other"]) == ("200.0", "100.0")


def test_a_bare_record_has_a_page() -> None:
    nothing = {"build": None, "audit": None, "cover": None, "gates": None, "environments": (), "requires": ()}
    view = site_view.wheel(record("demo", "1.0", "cu130", ["2.11"], **nothing))
    assert {view[name]["word"] for name in ("build", "audit", "cover", "gates")} == {"not measured"}
    assert view["environments"] == view["findings"] == view["plots"] == []
