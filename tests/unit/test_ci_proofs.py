"""Reports of several jobs, put beside the wheels that they are of."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from wheelmill import ci_proofs, gates
from wheelmill.errors import InputError

from .test_claims import wheel
from .test_gates import CARD, EVERY, GPU, asked, told

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def one(tmp_path: Path) -> gates.Subject:
    (tmp_path / "dist").mkdir()
    return gates.subject(wheel(tmp_path / "dist", "1.0+cu130", "torch>=2.11"), namespace="demo", samples="demo.testing")


def keep(folder: Path, name: str, value: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(value))


def test_each_gpus_rows_are_kept_and_other_reports_are_copied(one: gates.Subject, tmp_path: Path) -> None:
    name = one.path.name
    for card in ("H200", "A100"):
        made = gates.report(one, asked("ops"), told(*EVERY, gpu={**GPU, "cards": [{**CARD, "name": card}]}), "docker")
        keep(tmp_path / "proofs" / f"proof-{card}", name + gates.REPORT, gates.to_json(made))
    keep(tmp_path / "proofs" / "proof-cover", f"{name}.cover.json", {"cover": 1})
    keep(tmp_path / "proofs" / "proof-cover", "gone-1.whl.cover.json", {})
    assert [line.split()[0] for line in ci_proofs.join([tmp_path / "proofs"], one.path.parent)] == [
        "gone-1.whl.cover.json"
    ]
    both = gates.from_json(json.loads((one.path.parent / (name + gates.REPORT)).read_text()))
    assert {row.where["card"] for row in both.rows} == {"H200", "A100"}
    assert json.loads((one.path.parent / f"{name}.cover.json").read_text()) == {"cover": 1}
    assert not (one.path.parent / "gone-1.whl.cover.json").exists()


def test_a_report_of_other_bytes_does_not_take_the_place_of_the_wheels_own(one: gates.Subject, tmp_path: Path) -> None:
    made = gates.to_json(gates.report(one, asked("ops"), told(*EVERY), "docker"))
    keep(tmp_path / "proofs" / "a", one.path.name + gates.REPORT, {**made, "sha256": "0" * 64})
    keep(tmp_path / "proofs" / "b", one.path.name + gates.REPORT, made)
    assert list(ci_proofs.join([tmp_path / "proofs"], one.path.parent)) == []
    assert json.loads((one.path.parent / (one.path.name + gates.REPORT)).read_text())["sha256"] == one.sha256


@pytest.mark.parametrize("text", ["", "[" * 100_000, "{}", '{"version": 1}'])
def test_what_is_no_report_is_refused(one: gates.Subject, tmp_path: Path, text: str) -> None:
    (tmp_path / "proofs").mkdir()
    (tmp_path / "proofs" / (one.path.name + gates.REPORT)).write_text(text)
    with pytest.raises(InputError, match="is no report of the gates"):
        list(ci_proofs.join([tmp_path / "proofs"], one.path.parent))


def test_a_folder_that_is_not_there_is_told(one: gates.Subject, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no folder"):
        list(ci_proofs.join([tmp_path / "absent"], one.path.parent))
