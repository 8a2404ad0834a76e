"""The record of a wheel: what comes from where, what is ignored and what is refused."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest
from tests.index_wheels import add, beside, change

from wheelmill import index, recording
from wheelmill.errors import GateError, InputError
from wheelmill.records import Build, Record
from wheelmill.store import file_sha256

ATTESTED = Path(__file__).parents[1] / "golden" / "attestations"
ENVIRONMENTS = ["cu130-torch2.11"]
GATES = {"version": 1, "gates": {"ops": "pass", "sanitize": "incomplete"}, "operators": ["f", "g"]}


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    return add(tmp_path, "1.0+cu130", ENVIRONMENTS, requires=("torch>=2.10", "numpy"))


def test_everything_beside_a_wheel_comes_into_its_record(wheel: Path) -> None:
    sha256 = file_sha256(wheel)
    row = {"operator": "f", "device": "cuda", "result": "pass", "where": {"card": "H200", "torch": "2.11.0"}}
    found = {"card": "H200", "sample": "large", "milliseconds": {"median": 0.5, "values": [1]}, "of_reference": 0.25}
    rows = [
        {**row, "gate": "bench", "found": found},
        {**row, "gate": "ops", "device": "cpu", "where": {"card": "H200", "torch": "2.10.0"}},
        {**row, "gate": "ops", "result": "not-run", "where": {"card": "A100", "torch": "2.9.0"}},
    ]
    beside(wheel, ".gates.json", {**GATES, "sha256": sha256, "rows": rows})
    record = recording.read(wheel).record
    assert (record.project, record.release, record.sha256) == ("demo", "1.0+cu130", sha256)
    assert record.requires == ("torch>=2.10", "numpy")
    assert record.requires_python == ">=3.10"
    assert record.build == Build(
        wheel="cu130-torch2.11",
        engine="0.1.0",
        executor="local",
        built="2026-01-02T04:04:05+01:00",
        cuda="cu130",
        toolkit="13.0",
        torch="2.11.0",
        sm=("8.0", "9.0+PTX"),
    )
    assert record.audit is not None
    assert record.audit.libraries["demo/lib.so"].sass == ("80", "90a")
    assert record.gates is not None
    assert record.gates.verdicts == {"ops": "pass", "sanitize": "incomplete"}
    assert (record.gates.cards, record.gates.torches) == (("H200",), ("2.10.0", "2.11.0"))
    assert [(one.operator, one.sample, one.milliseconds) for one in record.gates.times] == [("f", "large", 0.5)]
    assert Record.model_validate_json(record.model_dump_json()) == record


def test_reports_of_other_bytes_are_ignored_with_a_note(wheel: Path) -> None:
    good = recording.read(wheel)
    assert good.notes == ()
    beside(wheel, ".gates.json", {**GATES, "sha256": "0" * 64, "rows": []})
    beside(wheel, ".cover.json", {"version": 1, "sha256": "0" * 64, "cells": []})
    made = recording.read(wheel)
    assert made.record == good.record
    assert [note.partition(" ")[0] for note in made.notes] == [f"{wheel.name}.cover.json", f"{wheel.name}.gates.json"]


def test_a_wheel_without_an_audit_of_its_bytes_is_audited(wheel: Path) -> None:
    change(wheel, ".audit.json", sha256="0" * 64)
    made = recording.read(wheel)
    assert made.record.audit is not None
    assert made.record.audit.libraries == {}
    assert "audit.json is of another file" in made.notes[0]
    wheel.with_name(f"{wheel.name}.audit.json").unlink()
    assert recording.read(wheel).record == made.record


def test_environments_are_those_where_it_was_measured(wheel: Path) -> None:
    change(wheel, environments=["cu130-torch2.11", "cu130-torch2.12"])
    cell = {"cuda": "cu130", "python": "3.12", "unclaimed": None}
    cells = [{**cell, "torch": "2.11", "result": "pass"}, {**cell, "torch": "2.12", "result": "fail", "error": "x"}]
    beside(wheel, ".cover.json", {"version": 1, "sha256": file_sha256(wheel), "cells": cells})
    record = recording.read(wheel).record
    assert record.environments == ("cu130-torch2.11",)
    assert record.cover is not None
    assert [one.result for one in record.cover] == ["pass", "fail"]


def test_a_time_that_cannot_be_is_refused(wheel: Path) -> None:
    found = {"card": "H200", "milliseconds": {"median": 0}}
    row = {"gate": "bench", "operator": "f", "device": "cuda", "result": "pass", "found": found}
    beside(wheel, ".gates.json", {**GATES, "sha256": file_sha256(wheel), "rows": [row]})
    with pytest.raises(InputError, match="cannot be recorded"):
        recording.read(wheel)


def test_a_manifest_that_does_not_say_how_is_no_build(tmp_path: Path) -> None:
    wheel = add(tmp_path, "1.0", ["cpu-torch2.11"], engine=None)
    assert recording.read(wheel).record.build is None


@pytest.mark.parametrize(
    ("suffix", "value", "said"),
    [
        (".gates.json", {**GATES, "rows": [{"gate": 1}]}, "gates.json cannot be read"),
        (".gates.json", {**GATES, "gates": {"ops": "fine"}, "rows": []}, "gates.json cannot be read"),
        (".gates.json", [], "gates.json cannot be read"),
        (".audit.json", {"verdict": "perhaps"}, "audit.json cannot be read"),
        (".audit.json", {"verdict": "pass", "libraries": {"a": {"sass": ["<b>"]}}}, "audit.json cannot be read"),
        (".cover.json", {"version": 2, "cells": []}, "cover report cannot be read"),
        (".cover.json", {"version": 1, "cells": [{"cuda": "cu130"}]}, "cover report cannot be read"),
    ],
    ids=str,
)
def test_a_report_that_cannot_be_read_is_refused(wheel: Path, suffix: str, value: object, said: str) -> None:
    beside(wheel, suffix, {**value, "sha256": file_sha256(wheel)} if isinstance(value, dict) else value)
    with pytest.raises(InputError, match=said) as caught:
        recording.read(wheel)
    assert caught.value.remedy


@pytest.mark.parametrize(
    "fields",
    [
        {"built": "yesterday"},
        {"built": "2026-01-02T03:04:05"},
        {"toolkit": {"version": "13"}},
        {"sm": "8.0"},
        {"cuda": 1},
    ],
    ids=str,
)
def test_a_manifest_is_not_trusted(wheel: Path, fields: dict[str, object]) -> None:
    change(wheel, **fields)
    with pytest.raises(InputError, match="manifest cannot be read"):
        recording.read(wheel)


@pytest.mark.parametrize("tag", ["py3-none-any<b>", "py3-none-a b", 'py3-none-a"', "py3-none-é"])
def test_a_file_name_that_is_no_link_is_refused(tmp_path: Path, tag: str) -> None:
    with pytest.raises(InputError, match="cannot be recorded"):
        recording.read(add(tmp_path, "1.0", ENVIRONMENTS, tag=tag))


def test_who_vouches_for_a_wheel_is_recorded_and_a_wrong_attestation_refused(tmp_path: Path) -> None:
    """A wheel that was really attested, by a CI of another kind than ours."""
    name = "circleci_sign_publish_example-0.0.1.dev137-py3-none-any.whl"
    wheel, provenance = tmp_path / name, tmp_path / f"{name}.provenance"
    for path in (wheel, provenance):
        shutil.copy(ATTESTED / path.name, path)
    sha256 = file_sha256(wheel)
    beside(wheel, ".manifest.json", {"wheel": "any", "sha256": sha256, "environments": ["cpu-torch2.11"]})
    beside(wheel, ".audit.json", {"sha256": sha256, "verdict": "pass"})
    made = recording.read(wheel)
    assert made.record.vouched[0].startswith("circleci:fdd9283f")
    assert made.source.provenance == provenance.read_bytes()
    provenance.write_bytes(provenance.read_bytes().replace(b"fdd9283f", b"fdd92830"))
    with pytest.raises(GateError, match="signature WRONG"):
        recording.read(wheel)


def test_a_time_before_all_times_is_refused(wheel: Path) -> None:
    change(wheel, built="0001-01-01T00:00:00+23:59")
    with pytest.raises(InputError, match="no time with its zone"):
        recording.read(wheel)


def test_metadata_that_grows_out_of_bounds_is_refused(tmp_path: Path) -> None:
    wheel = add(tmp_path, "1.0+cpu", ["cpu-torch2.11"])
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("demo-1.0+cpu.dist-info/METADATA", b" " * (index.LARGEST + 1))
    change(wheel, sha256=file_sha256(wheel))
    with pytest.raises(InputError, match="installers read it whole"):
        recording.read(wheel)


def test_a_wheel_that_could_not_be_tested_has_passed_no_gate(wheel: Path) -> None:
    error = {"rule": "gate-install", "severity": "error", "message": "it does not install"}
    made = {**GATES, "sha256": file_sha256(wheel), "namespace": "f", "samples": "f.s", "rows": [], "findings": [error]}
    beside(wheel, ".gates.json", made)
    found = recording.read(wheel).record.gates
    assert found is not None
    assert found.verdicts == {"ops": "incomplete", "sanitize": "incomplete"}
    assert (found.namespace, found.samples) == ("f", "f.s")
