"""Every gate that has a part on the CPU catches the faults of tests/projects/pyfaults there, and passes their twins.

They run in a clean environment of the newest torch, or beside the interpreter that WHEELMILL_TEST_PYTHON names.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.gate_wheels import pyfaults, wheel

from wheelmill.store import Store

from .conftest import ROOT, STORE, command, environment

# Each fault with the gate that is meant to catch it, what becomes of it there, and words of the reason.
FAULTS = {
    "wrong_value": ("ops", "fail", "Mismatched elements"),
    "fake_missing": ("ops", "fail", "no fake kernel"),
    "fake_wrong_shape": ("ops", "fail", "the fake kernel's shape is"),
    "undeclared_mutation": ("robust", "fail", "argument 0 was written to"),
    "aliasing_output": ("robust", "fail", "shares an input's memory"),
    "strides_ignored": ("robust", "fail", "non-contiguous inputs: "),
    "empty_launch": ("robust", "fail", "empty inputs: "),
    "shared_scratch": ("robust", "fail", "two threads: "),
    "wrong_gradient": ("gradcheck", "fail", "Jacobian mismatch"),
    "random_gradient": ("gradcheck", "fail", "not reentrant"),
    "gradient_missing": ("gradcheck", "fail", "input 1 gets no gradient"),
    "wrong_in_place": ("ops", "fail", "Mismatched elements"),
    "fake_wrong_dtype": ("ops", "fail", "the fake kernel's dtype is"),
    "no_gradient": ("gradcheck", "fail", "input 0 gets no gradient"),
    "crash": ("ops", "crash", "killed by SIGABRT while computing"),
    "leaves": ("ops", "crash", "ended with status 3 while computing"),
    "hang": ("ops", "hang", "hung while computing"),
}
ASKED = ("--namespace", "pyfaults", "--samples", "pyfaults.testing")


def arguments(path: Path, *more: str | Path) -> list[str]:
    beside = os.environ.get("WHEELMILL_TEST_PYTHON")
    where = ["--python", beside] if beside else []
    return command("test", path, *ASKED, *where, "--store", STORE, *more)


def run(path: Path, *more: str | Path) -> tuple[int, Any, str]:
    args = arguments(path, "--json", *more)
    done = subprocess.run(args, cwd=path.parent, text=True, capture_output=True, check=False)
    assert "Traceback" not in done.stderr
    return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Each fault and its twin in the gate meant for it: the runs' report is one."""
    path = pyfaults(tmp_path_factory.mktemp("faults"))
    cores = str(len(os.sched_getaffinity(0)))
    made: Any = None
    for gate in ("ops", "gradcheck", "robust"):
        faults = [fault for fault, (meant, _, _) in FAULTS.items() if meant == gate]
        more = [] if gate == "gradcheck" else ["unsampled"]
        names = [*faults, *(f"{fault}_clean" for fault in faults), *more]
        chosen = [word for name in names for word in ("--operator", name)]
        beside = [] if gate == "robust" else ["--timeout", "40", "--jobs", cores]
        code, made, said = run(path, "--gates", gate, *beside, *chosen, "--fresh")
        assert code == 1, said
    assert made == json.loads(path.with_name(f"{path.name}.gates.json").read_text())
    return made


def rows(report: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["gate"], row["operator"]): row for row in report["rows"] if row["device"] == "cpu"}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_caught_by_the_gate_meant_for_it_and_its_twin_passes(report: dict[str, Any], fault: str) -> None:
    gate, result, words = FAULTS[fault]
    found = rows(report)
    assert found[gate, fault]["result"] == result
    assert words in found[gate, fault]["reason"]
    twin = found[gate, f"{fault}_clean"]
    assert twin["result"] == "pass" or (twin["result"], twin["missing"]) == ("not-run", False), twin


def test_an_operator_without_samples_fails_ops_and_is_passed_by_no_gate(report: dict[str, Any]) -> None:
    found = rows(report)
    assert found["ops", "unsampled"]["result"] == "fail"
    assert "gives no samples of it" in found["ops", "unsampled"]["reason"]
    assert found["robust", "unsampled"]["missing"]


def test_what_was_not_run_without_a_gpu_is_said(report: dict[str, Any]) -> None:
    if report["environment"]["gpu"]["usable"]:
        pytest.skip("there is a GPU")
    for row in report["rows"]:
        if row["device"] == "cuda" and row["gate"] == "ops" and row["operator"] != "unsampled":
            assert (row["result"], row["missing"]) == ("not-run", True)
            assert row["reason"]
    assert report["environment"]["gpu"]["kind"] in {"torch-cpu", "no-driver", "driver-old", "no-device"}


def test_asking_for_a_gpu_where_there_is_none_is_neither_a_pass_nor_a_failure(tmp_path: Path) -> None:
    path = pyfaults(tmp_path)
    code, made, said = run(path, "--gates", "ops", "--require-gpu")
    if code != 3:
        pytest.skip("there is a GPU")
    assert made is None
    assert "a GPU was asked for: " in said
    assert "what to do: " in said
    assert not list(tmp_path.glob("*.gates.json"))


def test_the_projects_own_tests_run_against_the_installed_wheel(tmp_path: Path) -> None:
    path = pyfaults(tmp_path)
    tests = tmp_path / "tests"
    tests.mkdir()
    # A source tree beside the tests must not be what is imported.
    (tmp_path / "tests" / "pyfaults").mkdir()
    (tmp_path / "tests" / "pyfaults" / "__init__.py").write_text("raise ImportError('the source tree')\n")
    good = "import pyfaults\n\ndef test_good():\n    assert pyfaults.double(2) == 4\n"
    (tests / "test_it.py").write_text(good)
    code, made, _ = run(path, "--gates", "pytest", "--tests", tests)
    (row,) = made["rows"]
    assert (code, row["result"], row["found"]["passed"]) == (0, "pass", 1), row
    (tests / "test_it.py").write_text(f"{good}\ndef test_bad():\n    assert False\n")
    code, made, _ = run(path, "--gates", "pytest", "--tests", tests, "--fresh")
    assert code == 1
    assert "1 of 2 failed, first test_it.py::test_bad" in made["rows"][0]["reason"]
    (tmp_path / "conftest.py").write_text("raise ImportError('what lies above the tests')\n")
    skipping = "import pytest\n\ndef test_skipped():\n    pytest.skip('no')\n"
    (tests / "test_it.py").write_text(f"{good}\n{skipping}")
    code, made, _ = run(path, "--gates", "pytest", "--tests", tests, "--fresh")
    assert (code, made["rows"][0]["left_out"]) == (0, ["1 tests were skipped"])
    (tests / "test_it.py").write_text("import os\n\ndef test_dies():\n    os.abort()\n")
    code, made, _ = run(path, "--gates", "pytest", "--tests", tests, "--fresh")
    assert made["rows"][0]["reason"] == "killed by SIGABRT while running test_it.py::test_dies"


def test_an_interrupted_run_goes_on_where_it_was(tmp_path: Path) -> None:
    path = pyfaults(tmp_path)
    asked = ("--gates", "ops", "--operator", "fake_missing", "--operator", "hang", "--jobs", "1", "--timeout", "40")
    done = "ops/fake_missing/cuda"  # in order: fake_missing, then hang
    with subprocess.Popen([*arguments(path, *asked), "--fresh"], cwd=tmp_path, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert any(done in line.decode() for line in process.stderr), "it ended without telling its progress"
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        process.stderr.read()
        assert process.wait(60) == 130
    assert _running(path, "ops/hang/cpu") == [], "nothing of it is left running"
    _, made, said = run(path, *asked)
    assert {row["operator"]: row["result"] for row in made["rows"] if row["device"] == "cpu"} == {
        "fake_missing": "fail",
        "hang": "hang",
    }
    again = [line for line in said.splitlines() if line.startswith("[") and "fake_missing/cpu" in line]
    assert again == [], "it was measured already"


def _running(path: Path, unit: str) -> list[str]:
    """The processes of a unit of that wheel."""
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    jobs = [one for one in STORE.glob("gate-runs/*/job.json") if sha256 in one.read_text()]
    lines = [_read(one).decode(errors="replace") for one in Path("/proc").glob("[0-9]*/cmdline")]
    return [line for line in lines if unit in line.split("\0") and any(str(job) in line for job in jobs)]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_what_a_kill_leaves_is_ended_by_the_next_run(tmp_path: Path) -> None:
    path = pyfaults(tmp_path)
    asked = ("--gates", "ops", "--operator", "hang", "--device", "cpu", "--jobs", "1")
    with subprocess.Popen([*arguments(path, *asked), "--fresh"], cwd=tmp_path) as process:
        while not _running(path, "ops/hang/cpu"):
            assert process.poll() is None, "it ended before it came to the unit"
            time.sleep(0.2)
        process.kill()
    Store(STORE)  # as every run opens it
    assert _running(path, "ops/hang/cpu") == []


def test_a_unit_that_lacked_memory_beside_others_is_run_again_alone(tmp_path: Path) -> None:
    path = pyfaults(tmp_path)
    both = ("--operator", "crowded", "--operator", "crowded_clean", "--device", "cpu", "--jobs", "2")
    _, made, said = run(path, "--gates", "ops", *both, "--fresh")
    assert {row["result"] for row in made["rows"] if row["device"] == "cpu"} == {"pass"}, said
    assert "fail in" in said, "one of the two found no memory beside the other"


def test_an_interpreter_without_torch_fails_no_wheel(tmp_path: Path) -> None:
    path = pyfaults(tmp_path)
    args = command("test", path, *ASKED, "--python", sys.executable, "--store", STORE, "--gates", "ops")
    done = subprocess.run(args, cwd=tmp_path, text=True, capture_output=True, check=False)
    assert done.returncode == 3
    assert "importing torch: ModuleNotFoundError: No module named 'torch'" in done.stderr
    assert not list(tmp_path.glob("*.gates.json"))


def test_a_wheel_that_does_not_import_fails_with_its_error(tmp_path: Path) -> None:
    path = wheel(tmp_path, "unsound", {"unsound/__init__.py": "raise ImportError('undefined symbol: gone')\n"})
    args = [*arguments(path, "--json"), "--namespace", "unsound"]
    done = subprocess.run(args, cwd=tmp_path, text=True, capture_output=True, check=False)
    assert done.returncode == 1
    (finding,) = json.loads(done.stdout)["findings"]
    assert finding["rule"] == "not-testable"
    assert "undefined symbol: gone" in finding["message"]


def test_index_refuses_a_wheel_without_the_gates_that_the_matrix_demands(tmp_path: Path) -> None:
    path = pyfaults(tmp_path)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    manifest = {"wheel": "cpu", "sha256": sha256, "environments": ["cpu-torch2.11"], "proof": {"sha256": sha256}}
    path.with_name(f"{path.name}.manifest.json").write_text(json.dumps(manifest))
    args = command("index", tmp_path, "--out", tmp_path / "site", "--require-gates", "--matrix", ROOT / "matrix.yaml")
    done = subprocess.run(args, text=True, capture_output=True, check=False, env=environment())
    assert done.returncode == 1
    assert f"{path.name}: ops: it was never run" in done.stderr
    assert not (tmp_path / "site").exists()
