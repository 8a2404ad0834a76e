"""Jobs, rows, verdicts, reports, and what publishing asks of them."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from wheelmill import gates, gates_demand, gates_files, gates_view
from wheelmill.errors import InputError, MissingError

from .test_claims import wheel

if TYPE_CHECKING:
    from pathlib import Path

CARD = {"name": "H200", "capability": [9, 0], "memory": 1}
GPU = {"usable": True, "kind": None, "reason": None, "remedy": None, "cards": [CARD]}
NO_GPU = {"usable": False, "kind": "no-driver", "reason": "no driver", "remedy": "get one", "cards": []}
FOUND = {"python": "3.12.1", "torch": "2.11.0", "operators": {"one": {}, "two": {}}, "unregistered": []}


@pytest.fixture
def one(tmp_path: Path) -> gates.Subject:
    made = gates.subject(wheel(tmp_path, "1.0+cu130", "torch>=2.11"), namespace="demo", samples="demo.testing")
    return replace(made, devices=("cpu", "cuda"))


def asked(*names: Any, **more: Any) -> gates.Asked:
    return gates.Asked(gates=names, timeouts={"unit": 1.0}, **more)


def row(unit: str, result: str = "pass", **more: Any) -> dict[str, Any]:
    gate, name, device, *tool = unit.split("/")
    return {
        "unit": unit,
        "gate": gate,
        "operator": name,
        "device": device,
        "tool": tool[0] if tool else None,
        "result": result,
        "reason": None if result == "pass" else f"why {unit}",
        "missing": False,
        "seconds": 1.0,
        "found": {},
        "left_out": [],
        **more,
    }


def told(*rows: dict[str, Any], gpu: dict[str, Any] = GPU, **found: Any) -> dict[str, Any]:
    probe = {"result": "pass", "reason": None, "found": {**FOUND, "gpu": gpu, **found}}
    return {"version": 1, "probe": probe, "rows": list(rows), "seconds": 1.0}


EVERY = [row(f"ops/{name}/{device}") for name in ("one", "two") for device in ("cpu", "cuda")]


def test_a_gate_passes_where_every_unit_of_it_does(one: gates.Subject) -> None:
    made = gates.report(one, asked("ops"), told(*EVERY), "host")
    assert made.gates == {"ops": "pass"}
    assert made.verdict == "pass"


@pytest.mark.parametrize("result", ["fail", "crash", "hang"])
def test_one_bad_unit_fails_its_gate(one: gates.Subject, result: str) -> None:
    made = gates.report(one, asked("ops"), told(*EVERY[1:], row("ops/one/cpu", result)), "host")
    assert made.verdict == "fail"
    assert gates_view.faults(made) == [f"ops/one/cpu: {result}: why ops/one/cpu"]


def test_a_unit_that_was_not_run_is_no_pass(one: gates.Subject) -> None:
    assert gates.report(one, asked("ops"), told(*EVERY[1:]), "host").verdict == "incomplete"
    lacking = row("ops/one/cpu", "not-run", missing=True)
    assert gates.report(one, asked("ops"), told(*EVERY[1:], lacking), "host").verdict == "incomplete"
    without_meaning = row("ops/one/cpu", "not-run")
    assert gates.report(one, asked("ops"), told(*EVERY[1:], without_meaning), "host").verdict == "pass"
    assert gates.report(one, asked("ops"), told(), "host").verdict == "incomplete"


def test_what_was_measured_is_kept_when_a_gpu_is_missing_later(one: gates.Subject) -> None:
    first = gates.to_json(gates.report(one, asked("ops"), told(*EVERY), "host"))
    later = [row("ops/one/cuda", "not-run", missing=True), row("ops/one/cpu", "fail")]
    made = gates.report(one, asked("ops"), told(*later, gpu=NO_GPU), "host", first)
    results = {one.unit: one.result for one in made.rows}
    assert results["ops/one/cuda"] == "pass"
    assert results["ops/one/cpu"] == "fail"
    other = gates.report(one, asked("ops"), told(*later), "host", {**first, "sha256": "another"})
    assert len(other.rows) == 2


def test_a_gpu_that_was_asked_for_and_is_not_there_is_no_result(one: gates.Subject) -> None:
    with pytest.raises(MissingError, match="no driver") as raised:
        gates.report(one, asked("ops", device="cuda"), told(gpu=NO_GPU), "host")
    assert raised.value.exit_code == 3
    assert raised.value.remedy == "get one"


def test_an_unknown_operator_is_refused(one: gates.Subject) -> None:
    with pytest.raises(InputError, match="registers no operator three"):
        gates.report(one, asked("ops", operators=("three",)), told(), "host")


def test_a_wheel_that_registers_nothing_or_cannot_be_imported_fails(one: gates.Subject) -> None:
    empty = gates.report(one, asked("ops"), told(operators={}), "host")
    assert [found.rule for found in empty.findings] == ["no-operators"]
    extra = gates.report(one, asked("ops"), told(*EVERY, unregistered=["gone"]), "host")
    assert [found.rule for found in extra.findings] == ["unregistered-operators"]
    broken = {"probe": {"result": "fail", "reason": "ImportError", "found": {}}, "rows": [], "seconds": 1.0}
    made = gates.report(one, asked("ops"), broken, "host")
    assert [found.rule for found in made.findings] == ["not-testable"]
    assert {empty.verdict, extra.verdict, made.verdict} == {"fail"}


def test_an_unused_suppression_is_a_finding_where_everything_was_run(one: gates.Subject) -> None:
    used, unused = ({"tool": None, "kernel": name, "message": None, "reason": name} for name in ("a", "b"))
    rows = [row("sanitize/one/cuda/memcheck", found={"suppressed": [0]})]
    question = asked("sanitize", suppressions=(used, unused))
    (finding,) = gates.report(one, question, told(*rows), "host").findings
    assert (finding.rule, finding.severity) == ("suppression-unused", "warning")
    assert "'b'" in finding.message
    rows.append(row("sanitize/two/cuda/memcheck", "not-run", missing=True))
    assert gates.report(one, question, told(*rows), "host").findings == ()


def test_a_report_reads_back_as_it_was_written(one: gates.Subject) -> None:
    made = gates.report(one, asked("ops"), told(*EVERY), "host")
    assert gates.from_json(json.loads(json.dumps(gates.to_json(made)))) == made


def test_two_gpus_are_one_report_which_passes_where_both_did(one: gates.Subject) -> None:
    other = {**GPU, "cards": [{**CARD, "name": "A100"}]}
    hopper = gates.report(one, asked("ops"), told(*EVERY), "docker")
    ampere = gates.report(one, asked("ops"), told(*EVERY, gpu=other), "docker")
    both = gates.joined([hopper, ampere])
    assert both.verdict_of("ops") == "pass"
    assert {row.where["card"] for row in both.rows} == {"H200", "A100"}
    assert len(both.rows) == 8
    assert gates.joined([hopper, hopper]) == hopper
    assert gates.from_json(json.loads(json.dumps(gates.to_json(both)))) == both
    for result, missing, verdict in (("crash", False, "fail"), ("not-run", True, "incomplete")):
        worse = [*EVERY[:3], row(EVERY[3]["unit"], result, missing=missing)]
        ampere = gates.report(one, asked("ops"), told(*worse, gpu=other), "docker")
        assert gates.joined([ampere, hopper]).verdict_of("ops") == verdict
        assert gates.joined([hopper, ampere]).verdict_of("ops") == verdict
    with pytest.raises(ValueError, match="different"):
        gates.joined([hopper, replace(hopper, sha256="0" * 64)])


def test_publishing_asks_for_the_gates_that_the_matrix_demands(one: gates.Subject, tmp_path: Path) -> None:
    operators = SimpleNamespace(namespace="demo", samples="demo.testing")
    matrix: Any = SimpleNamespace(gates={"publish": ("audit", "ops", "gradcheck")}, operators=operators)
    beside = tmp_path / (one.path.name + gates.REPORT)
    assert dict(gates_demand.missing_gates(one.path, matrix)) == {
        "ops": "it was never run",
        "gradcheck": "it was never run",
    }
    said = gates.to_json(gates.report(one, asked("ops"), told(*EVERY), "host"))
    beside.write_text(json.dumps(said))
    assert dict(gates_demand.missing_gates(one.path, matrix)) == {"gradcheck": "it is incomplete"}
    beside.write_text(json.dumps({**said, "sha256": "another"}))
    assert "another file" in dict(gates_demand.missing_gates(one.path, matrix))["ops"]
    beside.write_text("{")
    assert "cannot be read" in dict(gates_demand.missing_gates(one.path, matrix))["ops"]
    beside.write_text(json.dumps({**said, "samples": "demo.easier"}))
    assert "it was run on demo:: by demo.easier" in dict(gates_demand.missing_gates(one.path, matrix))["ops"]
    beside.write_text(json.dumps({**said, "namespace": None, "samples": None}))
    assert "does not say which operators" in dict(gates_demand.missing_gates(one.path, matrix))["ops"]


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"rows": [{**EVERY[0], "where": {}, "result": "fine"}]},
        {"rows": [{**EVERY[0], "where": {}, "unit": []}]},
        {"rows": [{**EVERY[0], "where": {}, "gate": "none"}]},
        {"rows": None},
        {"devices": "cpu"},
        {"findings": [{"severity": "harmless"}]},
    ],
)
def test_a_report_that_was_not_written_here_is_no_pass_and_is_not_taken_up(
    one: gates.Subject, change: dict[str, Any]
) -> None:
    said = {**gates.to_json(gates.report(one, asked("ops"), told(*EVERY), "host")), **change}
    one.path.with_name(one.path.name + gates.REPORT).write_text(json.dumps(said))
    matrix: Any = SimpleNamespace(gates={"publish": ("ops",)}, operators=None)
    assert "cannot be read" in dict(gates_demand.missing_gates(one.path, matrix))["ops"]
    assert gates.report(one, asked("ops"), told(), "host", said).rows == ()


def test_rows_of_other_operators_or_samples_are_not_taken_up(one: gates.Subject) -> None:
    first = gates.to_json(gates.report(one, asked("ops"), told(*EVERY), "host"))
    for other in (replace(one, namespace="other"), replace(one, samples="demo.easier")):
        assert gates.report(other, asked("ops"), told(), "host", first).rows == ()


def test_where_torch_does_not_import_the_wheel_is_not_to_blame(one: gates.Subject) -> None:
    lacking = {"result": "not-run", "reason": "importing torch: No module named 'torch'", "found": {}}
    with pytest.raises(MissingError, match="No module named 'torch'"):
        gates.report(one, asked("ops"), {"probe": lacking, "rows": [], "seconds": 1.0}, "host")


def test_device_code_without_a_cuda_kernel_is_a_finding(one: gates.Subject) -> None:
    on_cpu = {"one": {"devices": ["cpu"]}, "two": {"devices": ["cpu"]}}
    holding = replace(one, targets={"sass": ["90"], "ptx": []})
    made = gates.report(holding, asked("ops"), told(*EVERY, operators=on_cpu), "host")
    assert [found.rule for found in made.findings] == ["no-cuda-kernels"]
    on_cpu["two"]["devices"].append("cuda")
    assert gates.report(holding, asked("ops"), told(*EVERY, operators=on_cpu), "host").findings == ()


def test_the_report_for_people(one: gates.Subject) -> None:
    lacking = row("ops/one/cuda", "not-run", missing=True)
    rows = [EVERY[0], lacking, row("ops/two/cpu", "crash"), EVERY[3]]
    made = gates.report(one, asked("ops"), told(*rows, gpu=NO_GPU), "host")
    head, lines = gates_view.cells(made)
    assert head == ["operator", "ops cpu", "ops cuda"]
    assert lines == [["one", "pass", "not-run"], ["two", "crash", "pass"]]
    text = gates_view.markdown(made)
    assert "| two | crash | pass |" in text
    assert "What was not run" in text
    assert "fail: ops fail (torch 2.11.0, Python 3.12.1, no GPU, host)" in text


def test_a_cpu_wheel_has_no_cuda_to_test(tmp_path: Path) -> None:
    made = gates.subject(wheel(tmp_path, "1.0+cpu", "torch>=2.11"), namespace="demo", samples=None)
    assert made.devices == ("cpu",)
    job = gates.job(made, asked("ops"), paths=["/there"], tests=None)
    assert job["wheel_devices"] == ["cpu"]
    assert job["require_gpu"] is False


def test_a_suppression_says_what_it_is_of_and_why(tmp_path: Path) -> None:
    file = tmp_path / "accepted.toml"
    file.write_text('[[suppress]]\nkernel = "demo::*"\ntool = "initcheck"\nreason = "it fills a row\'s end"\n')
    (found,) = gates_files.suppressions(file)
    assert (found["tool"], found["kernel"], found["message"]) == ("initcheck", "demo::*", None)
    for text in ('kernel = "a"', 'reason = "r"', 'kernel = "a"\nreason = "r"\nkernle = "b"', "reason ="):
        file.write_text(f"[[suppress]]\n{text}\n")
        with pytest.raises(InputError, match=r"accepted\.toml: the suppressions cannot be read"):
            gates_files.suppressions(file)


def test_times_are_accepted_and_read_back(one: gates.Subject, tmp_path: Path) -> None:
    times = {"median": 1.0, "q1": 0.9, "q3": 1.1, "values": [1.0] * 8}
    found = {"card": "H200", "sample": "large", "milliseconds": times, "reference": times, "of_reference": 1.0}
    made = gates.report(one, asked("bench"), told(row("bench/one/cuda", found=found)), "host")
    gates_files.accept(made, tmp_path / "bench.json")
    assert gates_files.baseline(tmp_path / "bench.json")["operators"]["one"]["milliseconds"]["values"] == [1.0] * 8
    elsewhere = gates.to_json(replace(made, rows=(replace(made.rows[0], where={"card": "another"}),)))
    with pytest.raises(InputError, match="no time was measured"):
        gates_files.accept(gates.report(one, asked("ops"), told(), "host", elsewhere), tmp_path / "none.json")
    with pytest.raises(InputError, match="no time was measured"):
        gates_files.accept(gates.report(one, asked("ops"), told(*EVERY), "host"), tmp_path / "none.json")
    (tmp_path / "bench.json").write_text('{"version": 2}')
    with pytest.raises(InputError, match="the accepted times cannot be read: version"):
        gates_files.baseline(tmp_path / "bench.json")
