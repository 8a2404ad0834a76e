"""What may not be published: each rule with what it refuses and the twin that passes."""

from __future__ import annotations

import time
from typing import Any

import pytest

from wheelmill.publish_policy import Published, missing_gate, refusals
from wheelmill.records import Record
from wheelmill.signing import Verdict

GATES = ("audit", "cover", "ops", "gradcheck", "sanitize")
A, B = "a" * 64, "b" * 64
CELL = {"cuda": "cu130", "torch": "2.11", "python": "3.12", "result": "pass"}


def record(version: str = "1.0+cu130", *, project: str = "fusedops", **changes: Any) -> Record:
    name = project.replace("-", "_")
    fields = {
        "file": f"{name}-{version}-py3-none-manylinux_2_28_x86_64.whl",
        "sha256": A,
        "size": 1,
        "project": project,
        "release": version,
        "audit": {"verdict": "pass"},
        "cover": [CELL],
        "gates": {"verdicts": dict.fromkeys(GATES[2:], "pass")},
        **changes,
    }
    return Record.model_validate(fields)


def published(one: Record, **changes: Any) -> Published:
    fields = {"file": one.file, "project": one.project, "release": one.release, "sha256": one.sha256, "record": "same"}
    return Published(**{**fields, **changes})


def rules(
    *local: Record,
    remote: tuple[Published, ...] = (),
    projects: tuple[str, ...] = (),
    verdicts: dict[str, Verdict] | None = None,
    encoded: str = "same",
    **options: Any,
) -> list[str]:
    found = refusals(local, {one.file: encoded for one in local}, remote, projects, GATES, verdicts or {}, **options)
    for one in found:
        assert one.what
        assert one.why
        assert one.remedy
        assert one.subject in {each.file for each in local}
    return [one.rule for one in found]


def test_a_wheel_that_passed_everything_is_refused_nothing() -> None:
    assert rules(record(), record("1.0+cu121")) == []


@pytest.mark.parametrize(
    ("gate", "changes", "why"),
    [
        ("audit", {"audit": None}, "never run"),
        ("audit", {"audit": {"verdict": "fail"}}, "verdict is fail"),
        ("cover", {"cover": None}, "never run"),
        ("cover", {"cover": []}, "no environment"),
        ("cover", {"cover": [{**CELL, "result": "not-available"}]}, "no environment"),
        ("cover", {"cover": [CELL, {**CELL, "python": "3.13", "result": "fail"}]}, "cu130-torch2.11 with Python 3.13"),
        ("cover", {"cover": [{**CELL, "unclaimed": "it promises 2.12"}]}, "no environment"),
        ("ops", {"gates": None}, "never run"),
        ("sanitize", {"gates": {"verdicts": {"ops": "pass"}}}, "never run"),
        ("gradcheck", {"gates": {"verdicts": {"gradcheck": "incomplete"}}}, "verdict is incomplete"),
        ("gradcheck", {"gates": {"verdicts": {"gradcheck": "fail"}}}, "verdict is fail"),
        ("repro", {}, "never run"),
    ],
)
def test_each_gate_must_be_shown_passed(gate: str, changes: dict[str, Any], why: str) -> None:
    one = record(**changes)
    assert why in (missing_gate(one, gate) or "")
    if gate in GATES:
        assert rules(one) == ["gates"]


def test_a_failure_where_nothing_is_promised_is_none() -> None:
    one = record(cover=[CELL, {**CELL, "torch": "2.9", "result": "fail", "unclaimed": "it promises 2.10"}])
    assert missing_gate(one, "cover") is None


def test_what_changes_nothing_is_not_asked_again_and_a_yank_always_comes_through() -> None:
    old = record(gates=None)
    assert rules(old, remote=(published(old),)) == []
    assert rules(old, remote=(published(old),), encoded="other") == ["gates"]
    yanked = record(gates=None, yanked="it crashes")
    assert rules(yanked, remote=(published(old),), encoded="other") == []
    assert rules(yanked) == ["gates"]


def test_other_bytes_under_a_published_name_are_refused() -> None:
    assert rules(record(sha256=B), remote=(published(record()),)) == ["overwrite"]
    assert rules(record(), remote=(published(record()),)) == []


@pytest.mark.parametrize("newer", ["1.1+cu130", "2.0rc1", "1.0.post1", "1!0.1"])
def test_an_older_release_than_the_newest_is_refused_unless_it_is_meant(newer: str) -> None:
    there = published(record(newer))
    assert rules(record(), remote=(there,)) == ["downgrade"]
    assert rules(record(), remote=(there,), allow_older=True) == []
    assert rules(record(), remote=(published(record(newer), yanked="bad"),)) == []


def test_more_wheels_of_the_newest_release_and_other_projects_are_fine() -> None:
    there = (published(record("1.0+cu128")), published(record("9.0", project="other")))
    assert rules(record("1.0+cu121"), record("1.0+cpu.torch2.4"), remote=there) == []
    assert rules(record("0.9+cu130"), remote=(*there, published(record("0.9+cu130")))) == []


@pytest.mark.parametrize("owner", ["fused-ops", "fused-0ps", "fu-sed-ops", "fused-op-s"])
def test_a_name_that_is_easily_taken_for_another_is_refused(owner: str) -> None:
    assert rules(record(), projects=(owner,)) == ["confusable"]
    assert rules(record(), record("1.0", project=owner)) == ["confusable"]
    assert rules(record(), projects=("fusedops", "fusedop", "fusedops2")) == []


def test_letters_that_look_alike_are_told_apart() -> None:
    assert rules(record(project="torch-l1b"), projects=("torch-lib",)) == ["confusable"]


@pytest.mark.parametrize(
    "changes",
    [
        {"project": "other", "file": "fusedops-1.0-py3-none-any.whl"},
        {"release": "2.0"},
        {"release": "nonsense"},
        {"file": "fusedops.whl"},
    ],
)
def test_a_record_that_contradicts_its_name_is_refused(changes: dict[str, Any]) -> None:
    one = Record.model_validate({**record().model_dump(), **changes})
    assert rules(one) == ["name"]


def test_a_wrong_signature_is_refused_and_none_is_not() -> None:
    one = record()
    wrong = Verdict(state="wrong", text="signature WRONG: of other bytes")
    assert rules(one, verdicts={one.file: wrong}) == ["signature"]
    assert rules(one, remote=(published(one),), verdicts={one.file: wrong}) == ["signature"]
    assert rules(one, verdicts={one.file: Verdict(state="unsigned", text="not signed")}) == []


def test_every_refusal_of_every_wheel_is_told_at_once() -> None:
    first, second = record("0.9+cu130", sha256=B, gates=None), record("0.8", audit=None)
    there = (published(record("0.9+cu130")), published(record("1.0+cu130")))
    assert rules(first, second, remote=there, projects=("fused-ops",)) == [
        "confusable", "downgrade", "gates", "overwrite", "gates",
    ]  # fmt: skip


def test_many_new_wheels_are_held_against_many_published_ones_at_once() -> None:
    there = [published(record(f"1.{number}")) for number in range(3000)]
    new = [record(f"2.{number}", project="fusedops") for number in range(300)]
    began = time.process_time()
    assert refusals(new, {}, there, [f"p{number}x" for number in range(3000)], (), {}) == ()
    assert time.process_time() - began < 2


def test_gates_of_other_operators_or_samples_than_the_matrix_names_are_none() -> None:
    verdicts = dict.fromkeys(GATES[2:], "pass")
    mine = record(gates={"verdicts": verdicts, "namespace": "fusedops", "samples": "fusedops.testing"})
    assert rules(mine, operators=("fusedops", "fusedops.testing")) == []
    for other in (("fusedops", "easy"), ("other", "fusedops.testing"), ("fusedops", None)):
        assert rules(mine, operators=other) == ["gates"]
    assert missing_gate(mine, "audit", ("other", None)) is None
