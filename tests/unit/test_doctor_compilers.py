"""What variables that name compilers are taken for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from wheelmill import doctor_compilers
from wheelmill.doctor_toolkits import parted

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "launchers", "program"),
    [
        ("g++", [], "g++"),
        ("g++ -m64", [], "g++"),
        ("ccache g++ -m64", ["ccache"], "g++"),
        ("/usr/bin/env LC_ALL=C sccache /opt/g++", ["/usr/bin/env", "sccache"], "/opt/g++"),
        ("ccache", ["ccache"], ""),
        (" ", [], ""),
    ],
)
def test_launchers_are_no_compilers(text: str, launchers: list[str], program: str) -> None:
    assert parted(text) == (launchers, program)


def test_where_what_variables_name_is(tmp_path: Path) -> None:
    for name in ("g++", "gcc", "ccache"):
        (tmp_path / name).touch(mode=0o755)
    path, gxx, gcc = str(tmp_path), str(tmp_path / "g++"), str(tmp_path / "gcc")

    def found(**env: str) -> list[tuple[str, str | None]]:
        return [(one.variable, one.path) for one in doctor_compilers.named({"PATH": path, **env})]

    assert found() == []
    assert found(CXX="ccache g++ -m64", CC="gcc") == [("CXX", gxx), ("CC", gcc)]
    # A launcher that is not there starts no compiler.
    assert found(CXX="sccache g++") == [("CXX", None)]
    # nvcc's -ccbin is one word, or a folder.
    assert found(CC="ccache gcc", NVCC_CCBIN=path) == [("CC", None), ("NVCC_CCBIN", path)]
    assert found(CC="gcc -m64") == [("CC", None)]
    # torch asks whether these are set, not whether they are something.
    assert found(CXX="", CC="", PYTORCH_NVCC="", CUDACXX="") == [("CC", None), ("PYTORCH_NVCC", None)]
