"""The audit's table of rules, its pages, its renderings, and the readers' small parts."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from wheelmill import archive, audit, facts, loading, matrix, platforms, rule_pages, sarif, torch_use
from wheelmill.elf import Library
from wheelmill.errors import InputError
from wheelmill.findings import found, rules, worst
from wheelmill.rules_plan import Expected

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "pkg" / "wheelmill" / "src" / "wheelmill"


def library(path: str, *needed: str) -> Library:
    return Library(
        path=path,
        machine="x86_64",
        bits=64,
        soname=None,
        sass=(),
        ptx=(),
        needed=needed,
        rpath=(),
        undefined={},
        versions={},
    )


def test_the_pages_are_what_the_table_says() -> None:
    """Rewrite them with `wheelmill audit --write-rules docs/rules`."""
    folder = ROOT / "docs" / "rules"
    assert {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*")} == rule_pages.pages()


def test_pages_are_written_and_old_ones_removed(tmp_path: Path) -> None:
    (tmp_path / "gone.md").write_text("x")
    rule_pages.write(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(rule_pages.pages())


def test_each_rule_is_used_and_each_used_one_is_in_the_table() -> None:
    # The doctor's findings are of a table of its own.
    modules = [path for path in SOURCES.glob("*.py") if not path.name.startswith("doctor")]
    text = "".join(path.read_text(encoding="utf-8") for path in modules)
    used = set(re.findall(r'(?:found|Problem)\(\s*f?"([a-z0-9{}-]+)"', text))
    used |= set(re.findall(r'rule = "([a-z-]+)" if \w+ else "([a-z-]+)"', text)[0])
    used |= {name.replace("{kind}", kind) for name in used for kind in ("sass", "ptx")}
    assert {name for name in used if "{" not in name} == set(rules())


def test_the_worst_finding_decides() -> None:
    told = [found("sbom-missing"), found("relro-missing", "a.so")]
    assert worst(told) == "warning"
    assert audit.verdict(told) == "pass"
    assert audit.verdict(told, "warning") == "fail"
    assert worst([]) is None


def test_a_message_cannot_move_the_cursor() -> None:
    assert "\x1b" not in found("needed-missing", "a.so", needed="\x1b[2J", tag="x").message


def wheel(folder: Path, name: str = "demo-1.0-py3-none-any.whl") -> Path:
    path = folder / name
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("demo/__init__.py", "")
    return path


def test_sarif_holds_every_finding_with_its_rule_and_place(tmp_path: Path) -> None:
    path = wheel(tmp_path)
    report = audit.audit(path, Expected(facts=facts.load()))
    sarif.write(tmp_path / "out.sarif", [report], [path])
    content = json.loads((tmp_path / "out.sarif").read_text())
    (run,) = content["runs"]
    assert content["version"] == "2.1.0"
    assert [result["ruleId"] for result in run["results"]] == [finding.rule for finding in report.findings]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in {"error", "warning", "note"}
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].endswith(path.name)


def test_a_waived_finding_is_suppressed_in_sarif(tmp_path: Path) -> None:
    path = wheel(tmp_path)
    waive = (matrix.Waiver(rule="dist-info-incomplete", library=None, reason="a test"),)
    policy = matrix.Policy(glibc="2.28", size=None, waive=waive)
    report = audit.audit(path, Expected(facts=facts.load(), policy=policy))
    assert report.verdict == "pass"
    (run,) = sarif.content([report], [path])["runs"]
    assert [result["suppressions"][0]["justification"] for result in run["results"]] == ["a test"]


def test_many_findings_of_a_rule_are_cut_with_their_number(tmp_path: Path) -> None:
    path = tmp_path / "demo-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("demo-1.0.dist-info/RECORD", "".join(f"demo/{index}.py,,\n" for index in range(500)))
    report = audit.audit(path, Expected(facts=facts.load()))
    missing = [one for one in report.findings if one.rule == "record-missing"]
    assert len(missing) == 50
    assert missing[-1].message.endswith("(450 more findings of this rule)")


@pytest.mark.parametrize(
    ("names", "apart"),
    [
        (["x/libx_cuda118.so", "x/libx_cuda130.so", "x/libx_cpu.so"], 3),
        (["x/sm90/ops.so", "x/sm100/ops.so", "x/other.so"], 2),
        (["x/core4.so", "x/core5.so", "x/core6.so"], 3),
        (["x/ops_2.so", "x/ops_3.so"], 0),
        (["x/_C.so", "x/image.so"], 0),
        (["x/_cuda.so", "x/_C.so"], 0),
    ],
)
def test_alternatives_are_told_from_what_loads_together(names: list[str], apart: int) -> None:
    assert len(loading.alternatives([library(name) for name in names])) == apart


def test_what_another_library_needs_is_no_alternative() -> None:
    libraries = [library("x/a_cu12.so"), library("x/a_cu13.so"), library("x/_C.so", "a_cu13.so")]
    assert loading.alternatives(libraries) == {"x/a_cu12.so"}


@pytest.mark.parametrize(
    ("name", "original"),
    [
        ("libcudart-1a2b3c4d.so.12", "libcudart.so.12"),
        ("libcudart.faf08d9a.so.13", "libcudart.so.13"),
        ("libcudart-d0da41ae.so.11.0", "libcudart.so.11.0"),
        ("libtorch_cpu.so", "libtorch_cpu.so"),
        ("libfoo-added.so", "libfoo-added.so"),
    ],
)
def test_a_grafted_library_is_known_by_its_own_name(name: str, original: str) -> None:
    assert platforms.original(name) == original


@pytest.mark.parametrize(
    ("name", "unstable"),
    [
        ("_ZN2at4_ops5empty4callEv", True),
        ("_ZN3c10lsERSoRKNS_6DeviceE", True),
        ("_ZNSt6vectorIN2at6TensorESaIS1_EE9push_backERKS1_", True),
        ("_ZN5torch3jit6ModuleC1Ev", True),
        ("_ZN5torch6stable6TensorC1Ev", False),
        ("_ZNKSt3mapIiiSt4lessIiESaISt4pairIKiiEEE2atERS3_", False),
        ("_Z2ati", False),
        ("_ZN4mine8flat2at3E", False),
        ("aoti_torch_get_dim", False),
    ],
)
def test_torchs_cpp_api_is_known_by_mangled_names(name: str, unstable: bool) -> None:
    assert torch_use.is_unstable(name) == unstable


def test_waivers_are_read_from_the_matrix(write: Callable[[str], Path]) -> None:
    lines = 'policy:\n  unpacked: 1GB\n  fail_on: warning\n  waive: [{rule: rpath-leaves, library: "a/*", reason: r}]\n'
    policy = matrix.load(write(f'version: 1\ntorch: ">=2.10"\ncuda: [cpu]\npython: ["3.11"]\n{lines}')).policy
    assert policy.unpacked == 10**9
    assert policy.fail_on == "warning"
    assert policy.waive == (matrix.Waiver(rule="rpath-leaves", library="a/*", reason="r"),)


@pytest.mark.parametrize(
    ("waiver", "told"),
    [
        ("{rule: rpath-leave, reason: r}", r'waive\[0\]\.rule: "rpath-leave" is no rule'),
        ("{rule: rpath-leaves}", r"waive\[0\]\.reason: the key is missing"),
        ("{rule: rpath-leaves, reason: r, librar: x}", r"waive\[0\]\.librar: there is no such key"),
        ("rpath-leaves", r"waive\[0\]: this is text, but a mapping is needed"),
    ],
)
def test_a_wrong_waiver_is_told_with_line_and_key(write: Callable[[str], Path], waiver: str, told: str) -> None:
    lines = f"policy:\n  waive:\n    - {waiver}\n"
    with pytest.raises(InputError, match=rf":7: policy\.{told}"):
        matrix.load(write(f'version: 1\ntorch: ">=2.10"\ncuda: [cpu]\npython: ["3.11"]\n{lines}'))


def test_members_are_hashed_as_record_says(tmp_path: Path) -> None:
    path = tmp_path / "a.whl"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("a-1.dist-info/RECORD", "a.py,sha512=AA,1\n")
        made.writestr("a.py", "x" * 3_000_000)
    contents = archive.read(path, tmp_path)
    assert contents.problems == ()
    assert {name for member in contents.members for name in member.digests} == {"sha256", "sha512"}
