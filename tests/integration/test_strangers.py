"""Any project: the usual setup.py with torch's CppExtension, one wheel a Python, built where torch is imported."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING
from zipfile import ZipFile

from .conftest import PROJECTS, STORE, command

if TYPE_CHECKING:
    from pathlib import Path


def test_the_usual_extension_is_built_labelled_proven_and_indexed(tmp_path: Path) -> None:
    args = command("build", "--json", "--matrix", PROJECTS / "classic" / "matrix.yaml", "--store", STORE)
    done = subprocess.run(args, cwd=tmp_path, text=True, stdout=subprocess.PIPE, check=True)
    (row,) = json.loads(done.stdout)["wheels"]
    assert row["wheel"] == "cpu-torch2.14-cp311"
    assert row["environment"] == "cpu-torch2.14"
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    assert wheel.name.startswith("classic_demo-0.3+cpu.torch2.14-cp311-cp311-manylinux_2_")
    with ZipFile(wheel) as archive:
        metadata = archive.read("classic_demo-0.3+cpu.torch2.14.dist-info/METADATA").decode()
    requires = sorted(line for line in metadata.splitlines() if line.startswith("Requires-Dist:"))
    assert requires == ['Requires-Dist: packaging; extra == "dev"', "Requires-Dist: torch==2.14.*"]
    assert (tmp_path / "site" / "cpu-torch2.14.html").exists()


def test_a_pybind_extension_under_abi_none_is_refused(tmp_path: Path) -> None:
    matrix = tmp_path / "matrix.yaml"
    text = (PROJECTS / "classic" / "matrix.yaml").read_text()
    matrix.write_text(f"{text}abi: {{python: none}}\nproject: {{path: {PROJECTS / 'classic'}}}\n")
    done = subprocess.run(command("build", "--store", STORE), cwd=tmp_path, text=True, capture_output=True, check=False)
    assert done.returncode == 1
    assert "cpython-symbol" in done.stderr
    assert "set abi.python to per-version" in done.stderr
    assert not list(tmp_path.glob("dist/*.whl"))
