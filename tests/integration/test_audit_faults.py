"""Each rule of the audit finds the fault that is planted for it, alone, and its clean twin passes in silence."""

from __future__ import annotations

import dataclasses
import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from elftools.elf.elffile import ELFFile
from tests import audit_wheels

from wheelmill import audit, elf, facts, rules_cuda, torch_use
from wheelmill.findings import found, rules
from wheelmill.matrix import Policy, Waiver
from wheelmill.model import Wheel
from wheelmill.rules_plan import Expected

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from wheelmill.audit import Report
    from wheelmill.findings import Finding

MATRIX = """\
version: 1
torch: ">=2.10"
cuda: [cu130, cu132]
python: ["3.11"]
sm: {default: ["8.0", "9.0+PTX"]}
abi: {torch: stable>=2.10, python: none}
"""
PLAN = Wheel(
    id="cu130-stable2.10",
    cuda="cu130",
    torch="2.10",
    torch_abi="stable",
    python=None,
    python_abi="none",
    sm=("8.0", "9.0+PTX"),
    local="cu130",
    requires="torch>=2.10",
    cells=(),
)


@pytest.fixture(scope="module")
def maker(tmp_path_factory: pytest.TempPathFactory) -> audit_wheels.Maker:
    return audit_wheels.Maker(tmp_path_factory.mktemp("audit"))


def expected(said: dict[str, Any]) -> Expected:
    """What a planted fault and its twin are held against."""
    wheel = PLAN if said.get("expect") or "sm" in said else None
    policy = None
    if "policy" in said:
        limits = {"size": None, **said["policy"]}
        waive = tuple(Waiver(**row) for row in limits.pop("waive", ()))
        policy = Policy(**limits, waive=waive)
    if wheel is not None and "sm" in said:
        wheel = dataclasses.replace(wheel, sm=tuple(said["sm"]))
    return Expected(facts=facts.load(), wheel=wheel, policy=policy)


def second_reader(said: dict[str, Any], folder: Path) -> Path | None:
    """A program that prints what the fault's file says in cuobjdump's place."""
    if "cuobjdump" not in said:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    tool = folder / "cuobjdump"
    lines = "".join(f"echo '{line}'\n" for line in said["cuobjdump"])
    tool.write_text(f"#!/bin/sh\n{lines}exit {said.get('status', 0)}\n")
    tool.chmod(0o755)
    return tool


def by_table(rule: str) -> None:
    """Skip a rule that torch-abi-audit's table decides where that does not install."""
    if rule.startswith("torch-floor") and not torch_use.HAS_TABLE:
        pytest.skip("torch-abi-audit needs Python 3.11")


def told_of(report: Report) -> list[Finding]:
    """The findings, but for the one that the table of shims is not at hand."""
    return [one for one in report.findings if torch_use.HAS_TABLE or one.rule != "torch-floor-unknown"]


def findings(said: dict[str, Any], wheel: Path, tmp_path: Path, maker: audit_wheels.Maker) -> list[Finding]:
    report = report_of(said, wheel, tmp_path)
    more: list[Finding] = []
    if "runtime" in said:
        runtime = maker.stub("libcudart.so.13", tuple(said["runtime"]), "runtime")
        more = list(rules_cuda.unoffered(report.facts.libraries, elf.exported(runtime), "13.0"))
    return [*told_of(report), *more]


def report_of(said: dict[str, Any], wheel: Path, tmp_path: Path) -> Report:
    against = expected(said)
    report = audit.audit(wheel, against, tool=second_reader(said, tmp_path))
    (report,) = audit.with_unused([report], against)
    return report


def test_every_rule_has_a_planted_fault() -> None:
    assert {path.stem for path in audit_wheels.FAULTS.glob("*.toml")} == set(rules())


@pytest.mark.parametrize("rule", list(rules()))
def test_a_planted_fault_is_found_by_its_rule_alone(rule: str, maker: audit_wheels.Maker, tmp_path: Path) -> None:
    by_table(rule)
    said = audit_wheels.load(rule)
    told = findings(said, maker.wheel(said["wheel"]), tmp_path, maker)
    assert rule in {finding.rule for finding in told}
    harder = {finding.rule for finding in told if finding.severity != "info"}
    assert harder <= {rule}, [finding.message for finding in told]
    assert {finding.severity for finding in told if finding.rule == rule} == {rules()[rule].severity}


@pytest.mark.parametrize("rule", list(rules()))
def test_the_clean_twin_is_silent(rule: str, maker: audit_wheels.Maker, tmp_path: Path) -> None:
    said = audit_wheels.load(rule)
    told = findings(said, maker.wheel(said.get("twin", {})), tmp_path, maker)
    assert rule not in {finding.rule for finding in told}
    assert [one for one in told if one.severity != "info" and one.waived is None] == []


def test_nothing_at_all_is_found_in_the_clean_wheel(maker: audit_wheels.Maker) -> None:
    report = audit.audit(maker.wheel({}), Expected(facts=facts.load()))
    assert told_of(report) == []
    assert report.verdict == "pass"


def test_newer_ptx_that_no_driver_of_that_cuda_reads_is_told_and_no_fault(
    maker: audit_wheels.Maker, tmp_path: Path
) -> None:
    """As in a cu126 wheel that a later minor's toolkit built: SASS serves all that CUDA 12.6 knows, up to SM 9.0."""
    library = {"needs": ["libtorch_cpu.so", "libcudart.so.12"], "sass": ["80", "90"], "ptx": ["90"], "isa": "8.7"}
    said = {"wheel": {"version": "1.0+cu126", "libraries": [library]}}
    told = findings(said, maker.wheel(said["wheel"]), tmp_path, maker)
    assert {(finding.rule, finding.severity) for finding in told} >= {("ptx-newer", "info")}
    assert [finding for finding in told if finding.severity == "error"] == []


def test_messages_leave_no_word_open(maker: audit_wheels.Maker, tmp_path: Path) -> None:
    for rule in ("platform-tag", "targets-differ", "two-runtimes"):
        said = audit_wheels.load(rule)
        for finding in findings(said, maker.wheel(said["wheel"]), tmp_path, maker):
            assert "{" not in finding.message + finding.remedy
    with pytest.raises(KeyError):
        found("platform-tag", "a.so")


def test_pyelftools_reads_the_same(maker: audit_wheels.Maker) -> None:
    data = maker.library({"calls": ["aoti_torch_get_dim", "memcpy", "PyLong_AsLong"], "flags": ["-Wl,-rpath,$ORIGIN"]})
    ours, image = elf.parse(data, "a.so"), ELFFile(io.BytesIO(data))
    dynamic, table = image.get_section_by_name(".dynamic"), image.get_section_by_name(".dynsym")
    assert list(ours.needed) == [tag.needed for tag in dynamic.iter_tags("DT_NEEDED")]
    assert list(ours.rpath) == [tag.runpath for tag in dynamic.iter_tags("DT_RUNPATH")]
    symbols = [one for one in table.iter_symbols() if one.name and one["st_shndx"] == "SHN_UNDEF"]
    assert set(ours.undefined) == {one.name for one in symbols if one["st_info"]["bind"] == "STB_GLOBAL"}
    assert set(ours.weak) == {one.name for one in symbols if one["st_info"]["bind"] == "STB_WEAK"}
    needs = image.get_section_by_name(".gnu.version_r").iter_versions()
    assert ours.versions == {need.name: tuple(one.name for one in names) for need, names in needs}


def test_the_command_line_says_pass_fail_and_wrong_usage(
    maker: audit_wheels.Maker, mill: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    good, bad = maker.wheel({}), maker.wheel(audit_wheels.load("exec-stack")["wheel"])
    done = mill("audit", good)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "pass" in done.stdout
    done = mill("audit", "--json", "--sarif", "out.sarif", good, bad)
    assert done.returncode == 1
    assert [wheel["verdict"] for wheel in json.loads(done.stdout)["wheels"]] == ["pass", "fail"]
    results = json.loads((tmp_path / "out.sarif").read_text())["runs"][0]["results"]
    assert {result["ruleId"] for result in results if result["level"] == "error"} == {"exec-stack"}
    assert mill("audit", tmp_path / "none.whl").returncode == 2
    (tmp_path / "matrix.yaml").write_text(MATRIX)
    assert mill("audit", "--expect", "cu130-stable2.10", good).returncode == 0
    done = mill("audit", "--expect", "cu132-stable2.10", good)
    assert done.returncode == 1
    assert "local-version" in done.stdout
    done = mill("audit", "--expect", "cu130-stable2.1", good)
    assert done.returncode == 2
    assert 'Did you mean "cu130-stable2.10"?' in done.stderr


def test_a_second_reader_that_gave_up_is_no_answer(maker: audit_wheels.Maker, tmp_path: Path) -> None:
    said = {"cuobjdump": ["ELF file    1: demo.1.sm_80.cubin", "cuobjdump fatal   : Invalid ELF"], "status": 1}
    report = report_of(said, maker.wheel({}), tmp_path)
    assert told_of(report) == []
    assert "fatal" in str(audit.wheel_json(report)["libraries"]["demo/libdemo.so"]["cuobjdump"]["failure"])


def test_warnings_fail_where_the_policy_says_so(maker: audit_wheels.Maker) -> None:
    wheel = maker.wheel(audit_wheels.load("relro-missing")["wheel"])
    known = facts.load()
    policy = Policy(glibc="2.28", size=None)
    assert audit.audit(wheel, Expected(facts=known, policy=policy)).verdict == "pass"
    strict = dataclasses.replace(policy, fail_on="warning")
    assert audit.audit(wheel, Expected(facts=known, policy=strict)).verdict == "fail"
    waived = dataclasses.replace(strict, waive=(Waiver(rule="relro-missing", library="demo/*", reason="known"),))
    report = audit.audit(wheel, Expected(facts=known, policy=waived))
    assert report.verdict == "pass"
    assert [finding.waived for finding in told_of(report)] == ["known"]


def test_a_waiver_for_another_library_waives_nothing(maker: audit_wheels.Maker) -> None:
    wheel = maker.wheel(audit_wheels.load("exec-stack")["wheel"])
    policy = Policy(glibc="2.28", size=None, waive=(Waiver(rule="exec-stack", library="other/*", reason="known"),))
    against = Expected(facts=facts.load(), policy=policy)
    (report,) = audit.with_unused([audit.audit(wheel, against)], against)
    assert report.verdict == "fail"
    assert [finding.rule for finding in told_of(report)] == ["exec-stack", "waiver-unused"]
