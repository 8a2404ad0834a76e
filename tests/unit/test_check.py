"""Findings: each rule catches its fault, and the clean twin passes."""

import dataclasses
import zipfile
from pathlib import Path
from typing import Any

import pytest
from wheel.wheelfile import WheelFile

from wheelmill import check
from wheelmill.elf import Library
from wheelmill.errors import GateError
from wheelmill.model import Wheel

WHEEL = Wheel(
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
CLEAN = Library(
    path="demo/libdemo.so",
    sass=("80", "90"),
    ptx=("90",),
    needed=("libtorch_cpu.so", "libcudart.so.13", "libc.so.6"),
    rpath=(),
    undefined={"aoti_torch_get_dim": None, "torch_call_dispatcher": None, "memcpy": "GLIBC_2.14"},
    versions={"libc.so.6": ("GLIBC_2.14",)},
)
METADATA = "Metadata-Version: 2.1\nName: demo\nVersion: {version}\nRequires-Dist: {requires}\n\n"
PLATFORMS = ("manylinux_2_28_x86_64",)


def make(folder: Path, version: str = "1.0+cu130", requires: str = "torch>=2.10", name: str = "1.0+cu130") -> Path:
    path = folder / f"demo-{name}-py3-none-manylinux_2_28_x86_64.whl"
    with WheelFile(path, "w") as archive:
        archive.writestr(f"demo-{name}.dist-info/METADATA", METADATA.format(version=version, requires=requires))
        archive.writestr("demo/__init__.py", "")
    return path


def rules(
    monkeypatch: pytest.MonkeyPatch, path: Path, library: Library | None, wheel: Wheel = WHEEL, **policy: Any
) -> list[str]:
    found = () if library is None else (library,)
    monkeypatch.setattr(check, "libraries", lambda *_: found)
    _, findings = check.check(path, wheel, PLATFORMS, path.parent, **{"glibc": "2.28", "size": None, **policy})
    return [finding.rule for finding in findings]


def test_a_clean_wheel_has_no_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rules(monkeypatch, make(tmp_path), CLEAN) == []


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"sass": ("80",)}, "sass-missing"),
        ({"ptx": ()}, "ptx-missing"),
        ({"sass": ("75", "80", "90")}, "sass-unasked"),
        ({"needed": ("libcudart.so.12",)}, "cuda-major"),
        ({"needed": ("libcudart.so.11.0",)}, "cuda-major"),
        ({"path": "demo.libs/libtorch_cpu-1a2b3c.so"}, "grafted-runtime"),
        ({"path": "demo.libs/libcudart-1a2b3c.so.13.0.88"}, "grafted-runtime"),
        ({"undefined": {"PyModule_Create2": None}}, "cpython-symbol"),
        ({"undefined": {"_ZN2at4_ops5empty4callEv": None}}, "unstable-torch-abi"),
        ({"versions": {"libfoo.so.1": ("FOO_1",)}}, "unstable-torch-abi"),
        ({"sass": (), "ptx": ()}, "no-device-code"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_fault_in_the_library_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], rule: str
) -> None:
    assert rule in rules(monkeypatch, make(tmp_path), dataclasses.replace(CLEAN, **change))


@pytest.mark.parametrize("path", ["demo/libtorch_demo.so", "demo/libcudart_like.so", "demo/c10.so"])
def test_a_library_of_the_projects_own_is_not_taken_for_torchs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    assert rules(monkeypatch, make(tmp_path), dataclasses.replace(CLEAN, path=path)) == []


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"version": "1.0"}, "version-mismatch"),
        ({"version": "1.0+cu121", "name": "1.0+cu121"}, "local-version"),
        ({"requires": "torch"}, "torch-requirement"),
        ({"requires": 'torch>=2.10; extra == "gpu"'}, "torch-requirement"),
        ({"requires": "numpy"}, "torch-requirement"),
    ],
)
def test_a_label_that_lies_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, str], rule: str
) -> None:
    assert rule in rules(monkeypatch, make(tmp_path, **change), CLEAN)


def test_a_cpu_wheel_that_needs_cudart_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = dataclasses.replace(WHEEL, cuda="cpu", local="cpu", sm=())
    library = dataclasses.replace(CLEAN, sass=(), ptx=())
    path = make(tmp_path, "1.0+cpu", name="1.0+cpu")
    assert rules(monkeypatch, path, library, wheel) == ["cuda-major"]
    assert rules(monkeypatch, path, dataclasses.replace(library, needed=("libc.so.6",)), wheel) == []


def test_the_policy_sets_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(tmp_path)
    assert rules(monkeypatch, path, CLEAN, glibc="2.17") == ["glibc-policy"]
    assert rules(monkeypatch, path, CLEAN, size=path.stat().st_size) == []
    assert rules(monkeypatch, path, CLEAN, size=path.stat().st_size - 1) == ["size-policy"]


def test_an_edited_wheel_is_not_sound(tmp_path: Path) -> None:
    path = make(tmp_path)
    check.libraries(path, tmp_path)
    edited = tmp_path / "edited" / path.name
    edited.parent.mkdir()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(edited, "w") as new:
        for name in old.namelist():
            new.writestr(name, b"import os" if name == "demo/__init__.py" else old.read(name))
    with pytest.raises(GateError, match="not a sound wheel"):
        check.libraries(edited, tmp_path)
