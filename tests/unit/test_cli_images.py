"""The `images` verb where no engine answers."""

from __future__ import annotations

import json
from typing import NoReturn

import pytest

from wheelmill import __main__ as entry
from wheelmill import engine, images


@pytest.fixture(autouse=True)
def _no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> NoReturn:
        raise engine.NoEngineError("no container engine answers", remedy="start one")

    monkeypatch.setattr(engine, "connect", absent)


def test_list_says_what_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.main(["images", "list", "cu12?"]) == 0
    said = capsys.readouterr().out
    assert "wheelmill/cu124:debian     CUDA 12.4     gcc 12  ?" in said
    assert "which are here is not known: no container engine answers" in said
    assert "cu130" not in said


def test_list_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.main(["images", "list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["images"]
    assert {row["tag"] for row in rows} == set(images.load().cuda)
    assert all(row["present"] is None for row in rows)


def test_check_and_build(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert entry.main(["images", "check"]) == 0
    assert entry.main(["images", "build", "cu130"]) == 3
    assert entry.main(["images", "build", "cu121", "--base", "debian"]) == 2
    monkeypatch.setattr(images, "drifted", lambda _: ("Dockerfile.cu124",))
    assert entry.main(["images", "check"]) == 1
    assert "Dockerfile.cu124" in capsys.readouterr().err
