"""Five wheels of PyPI, read as independent tools read them. They are downloaded once, 105 MB in all."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from packaging.utils import parse_wheel_filename

from wheelmill import audit, cuobjdump, facts, torch_use
from wheelmill.rules_plan import Expected

from .conftest import ROOT, STORE

if TYPE_CHECKING:
    from pathlib import Path

    from wheelmill.audit import Report

TRUTH: dict[str, dict[str, Any]] = json.loads((ROOT / "tests/golden/public-wheels.json").read_text(encoding="utf-8"))
CUOBJDUMP = "nvidia-cuda-cuobjdump==13.5.37"
# What a reader of each wheel must be told, as (rule, a word of the finding).
TOLD = {
    "eetq": {
        ("platform-tag", "GLIBC_2.32"),
        ("platform-tag", "GLIBCXX_3.4.29"),
        ("torch-range-open", "requires torch:"),
    },
    "torchao": {("version-specific-library", "CPython 3.10"), ("torch-unrequired", "requires none")},
    "torchvision": {("two-runtimes", "libcudart.faf08d9a.so.13"), ("sm-gap", "PTX for 120 only")},
    "bitsandbytes": set(),
    "autoawq-kernels": {("torch-range-open", "torch>=2.5.1"), ("targets-differ", "SM 75")},
}


def pip(*arguments: str | Path) -> None:
    env = {**os.environ, "PIP_CONFIG_FILE": os.devnull}
    subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, arguments)], check=True, env=env
    )


@pytest.fixture(scope="session")
def folder() -> Path:
    """The wheels, kept beside the store's other downloads and held against their hashes."""
    kept = STORE / "public-wheels"
    for name, truth in TRUTH.items():
        path = kept / name
        if not path.exists() or hashlib.sha256(path.read_bytes()).hexdigest() != truth["sha256"]:
            project, version, _, tags = parse_wheel_filename(name)
            python = next((tag.interpreter[2:] for tag in tags if tag.interpreter.startswith("cp")), "311")
            platforms = [word for tag in tags for word in ("--platform", tag.platform)]
            pip(
                "download",
                "-q",
                "--no-deps",
                "--only-binary",
                ":all:",
                "-d",
                kept,
                f"{project}=={version}",
                "--python-version",
                python,
                *platforms,
            )
    return kept


@pytest.fixture(scope="session")
def tool() -> Path:
    """NVIDIA's cuobjdump, installed beside the wheels."""
    place = STORE / "public-wheels" / "cuobjdump"
    found = place / "nvidia" / "cu13" / "bin" / "cuobjdump"
    if not found.exists():
        pip("install", "-q", "--no-deps", "--target", place, CUOBJDUMP)
    return found


@pytest.fixture(scope="session")
def reports(folder: Path, tool: Path) -> dict[str, Report]:
    expected = Expected(facts=facts.load())
    return {name: audit.audit(folder / name, expected, tool=tool) for name in TRUTH}


@pytest.mark.parametrize("name", TRUTH)
def test_the_wheel_is_what_the_truth_says(reports: dict[str, Report], name: str) -> None:
    truth, content = TRUTH[name], audit.wheel_json(reports[name])
    assert {
        "sha256": content["sha256"],
        "size": content["size"],
        "filename_version": content["version"],
        "metadata_version": content["metadata_version"],
        "requires_torch": content["requires_torch"],
        "auditwheel_tag": content["platform"]["auditwheel"],
    } == {key: value for key, value in truth.items() if key != "libs"}


@pytest.mark.parametrize(("name", "library"), [(name, library) for name in TRUTH for library in TRUTH[name]["libs"]])
def test_each_library_is_what_the_truth_says(reports: dict[str, Report], name: str, library: str) -> None:
    truth, row = TRUTH[name]["libs"][library], audit.wheel_json(reports[name])["libraries"][library]
    second = row["cuobjdump"]
    assert {
        "sass": row["sass"],
        "ptx": row["ptx"],
        "needed": row["needed"],
        "rpath": row["rpath"],
        "glibc": row["glibc"],
        "glibcxx": row["glibcxx"],
        "cxx11_undefined": row["cxx11_abi"] is True,
        "cuobjdump_fatal": second is not None and not second["finished"],
    } == {key: value for key, value in truth.items() if key != "torch"}
    # The truth gives no lowest torch: torch-abi-audit's table does.
    assert (row["torch_abi"] == "stable", row["torch_abi"] != "none") == (
        bool(truth["torch"]["stable"]),
        bool(truth["torch"]["uses_torch"]),
    )
    assert bool(row["torch_symbols"]) == (row["torch_abi"] != "none")


@pytest.mark.parametrize("name", TRUTH)
def test_a_reader_is_told_what_matters(reports: dict[str, Report], name: str) -> None:
    report = reports[name]
    wanted = TOLD[report.facts.name.project]
    for rule, word in wanted:
        assert any(one.rule == rule and word in one.message for one in report.findings), (rule, word)
    assert report.verdict == ("fail" if wanted else "pass")
    told = {one.rule for one in report.findings}
    assert "cuobjdump-disagrees" not in told
    assert {rule for rule in told if rule.endswith("unreadable")} == set()


@pytest.mark.parametrize("name", TRUTH)
def test_torch_abi_audit_classifies_the_demangled_names_alike(reports: dict[str, Report], name: str) -> None:
    demangle = pytest.importorskip("torch_abi_audit.demangle", reason="torch-abi-audit needs Python 3.11")
    from torch_abi_audit.torch_abi import classify_symbol

    facts_ = reports[name].facts
    for library in facts_.libraries:
        for symbol in (*library.undefined, *library.weak):
            plain = demangle.demangle_symbol(symbol)
            assert (classify_symbol(plain) == "unstable") == torch_use.is_unstable(symbol), (symbol, plain)


def test_cuobjdump_is_found_where_nvidias_package_puts_it(tool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_HOME", str(tool.parents[1]))
    assert cuobjdump.find() == tool
