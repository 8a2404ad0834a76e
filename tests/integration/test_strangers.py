"""Any project: the usual setup.py with torch's CppExtension, one wheel a Python, built where torch is imported."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING
from zipfile import ZipFile

from .conftest import PROJECTS, STORE, command, environment

if TYPE_CHECKING:
    from pathlib import Path


def test_the_usual_extension_is_built_labelled_proven_and_indexed(tmp_path: Path) -> None:
    """In an environment that would steer an install elsewhere, and beside a stranger's file in dist/."""
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "stranger-1.0-py3-none-any.whl").touch()
    args = command("build", "--json", "--matrix", PROJECTS / "classic" / "matrix.yaml", "--store", STORE)
    steering = {"PIP_TARGET": str(tmp_path / "elsewhere"), "PIP_REQUIRE_HASHES": "1", "UV_TORCH_BACKEND": "cpu"}
    done = subprocess.run(
        ["sh", "-c", 'umask 077 && exec "$@"', "sh", *args],
        cwd=tmp_path,
        env=environment(**steering),
        text=True,
        stdout=subprocess.PIPE,
        check=True,
    )
    (row,) = json.loads(done.stdout)["wheels"]
    assert row["wheel"] == "cpu-torch2.14-cp311"
    assert row["environment"] == "cpu-torch2.14"
    (wheel,) = (tmp_path / "dist").glob("classic*.whl")
    assert wheel.stat().st_mode & 0o044 == 0o044
    assert b"/source/demo" not in ZipFile(wheel).read("demo/_C.cpython-311-x86_64-linux-gnu.so")
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
    assert "version-specific-library" in done.stderr
    assert "abi.python: per-version" in done.stderr
    assert not list(tmp_path.glob("dist/*.whl"))
