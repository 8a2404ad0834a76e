"""Wheels of CUDA 12, built in an image whose toolkit is 12.4, and tried beside the torch that each names."""

from __future__ import annotations

import json
import os
import subprocess
from email.parser import BytesParser
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from tests.matrices import checkout, narrowed
from uv import find_uv_bin

from wheelmill import engine, images

from .conftest import OF_WHEELS, ROOT, command

WHEELS = {
    "cu121-torch2.4": ("torch==2.4.*", "2.4.1+cu121"),
    "cu124-torch2.5": ("torch==2.5.*", "2.5.1+cu124"),
    "cu124-torch2.6": ("torch==2.6.*", "2.6.0+cu124"),
}
TARGETS = ["50"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Built where no image of cu121 or cu124 need be: a build makes what it needs."""
    out = tmp_path_factory.mktemp("wheels")
    places = ["--matrix", narrowed(out), "--store", OF_WHEELS, "--out", out / "dist", "--site", out / "site"]
    # They have one compiler, which need not compile a kernel again for another torch.
    places += ["--compiler-cache", out / "compiled"]
    args = command("build", "--json", "--executor", "docker", "--base", "debian", "--network", "host", *places, *WHEELS)
    run = subprocess.run(args, cwd=out, text=True, stdout=subprocess.PIPE, check=False)
    assert run.returncode == 0, run.stdout
    return {row["wheel"]: Path(row["file"]) for row in json.loads(run.stdout)["wheels"]}


def manifest(wheel: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(wheel.with_name(f"{wheel.name}.manifest.json").read_text())
    return found


@pytest.mark.parametrize("wheel", WHEELS)
def test_it_requires_its_torch_and_computes_beside_it(built: dict[str, Path], wheel: str) -> None:
    requires, torch = WHEELS[wheel]
    with ZipFile(built[wheel]) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        stated = BytesParser().parsebytes(archive.read(name))
    assert stated.get_all("Requires-Dist") == [requires]
    proof = manifest(built[wheel])["proof"]
    assert proof["torch"] == torch
    assert all(count > 10 for count in proof["computed"].values())


@pytest.mark.parametrize("wheel", WHEELS)
def test_manifest_and_page_name_the_toolkit_that_built_it(built: dict[str, Path], wheel: str) -> None:
    said = manifest(built[wheel])
    assert said["executor"] == "docker"
    assert said["toolkit"] == {"provider": "image", "version": "12.4"}
    page = (built[wheel].parents[1] / "site" / f"{wheel}.html").read_text()
    assert "built with CUDA 12.4" in page
    (library,) = said["libraries"]
    assert library["sass"] == TARGETS
    assert "libcudart.so.12" in library["needed"]


@pytest.mark.usefixtures("built")
def test_the_image_holds_the_toolkit_and_of_static_libraries_the_runtimes_alone() -> None:
    client, name = engine.connect(), images.name_for("cu124", "debian")
    tools = "for tool in nvcc cuobjdump compute-sanitizer; do command -v $tool; done"
    look = f"{tools}; find / -xdev -name '*.a' 2>/dev/null || :"
    said: bytes = client.containers.run(name, ["bash", "-euc", look], network_mode="none", remove=True)
    archives = {Path(line).name for line in said.decode().split() if line.endswith(".a")}
    static = {archive for archive in archives if archive.startswith(("libcu", "libnv", "libnpp"))}
    assert static == {"libcudart_static.a", "libcudadevrt.a"}
    found = client.images.get(name)
    assert found.attrs["Size"] < 4_000_000_000
    assert found.labels["org.wheelmill.toolkit"] == "12.4"


def test_a_toolkit_that_knows_fewer_targets_is_an_error_unless_accepted(built: dict[str, Path], tmp_path: Path) -> None:
    """cu128 asks for SM 10.0 and 12.0, which CUDA 12.4 does not compile for."""
    places = ["--store", OF_WHEELS, "--out", tmp_path / "dist", "--site", tmp_path / "site"]
    args = ["build", "--no-prove", "--executor", "docker", "--base", "debian", *places, "cu128-torch2.8"]
    done = subprocess.run(
        command(*args, "--matrix", ROOT / "matrix.yaml"), cwd=tmp_path, text=True, capture_output=True, check=False
    )
    assert done.returncode == 2
    assert "is for SM 10.0, 12.0+PTX too" in done.stderr
    assert "dropped: accept" in done.stderr


INSIDE = """
/opt/python/cp313-cp313/bin/python -m venv /tmp/env
/tmp/env/bin/pip install --quiet /checkout/pkg/wheelmill
cd /checkout
/tmp/env/bin/wheelmill build --executor local --toolkit system --no-prove --json --store /tmp/store --out /out "$0"
"""
PROVENANCE = {"built", "compiler", "executor", "image", "key", "parts", "proof", "toolkit"}


def test_local_and_docker_of_one_image_differ_in_recorded_provenance_alone(lock: Path, tmp_path: Path) -> None:
    """The engine itself, run in the image, builds with the image's compiler and toolkit as a local build does."""
    wheel = "cu124-torch2.5"
    cache = fetched_by_uv()
    sources = checkout(tmp_path / "checkout")
    args = ["--executor", "docker", "--base", "debian", "--network", "host", "--no-prove", "--json"]
    args += ["--store", str(OF_WHEELS), "--out", str(tmp_path / "docker"), wheel]
    done = subprocess.run(command("build", *args), cwd=sources, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    (other,) = (tmp_path / "docker").glob("*.whl")
    (tmp_path / "out").mkdir()
    volumes = {
        str(sources): "/checkout",
        str(tmp_path / "out"): "/out",
        str(lock.parent): "/lock",
        str(cache): "/cache",
    }
    sites = {name: value for name, value in os.environ.items() if name in {"PIP_INDEX_URL", "UV_DEFAULT_INDEX"}}
    engine.connect().containers.run(
        images.name_for("cu124", "debian"),
        ["bash", "-euc", INSIDE, wheel],
        environment={**sites, "UV_CACHE_DIR": "/cache", "WHEELMILL_LOCK": f"/lock/{lock.name}", "HOME": "/out"},
        network_mode="host",
        user="0",
        remove=True,
        stderr=True,
        volumes={path: {"bind": place, "mode": "rw"} for path, place in volumes.items()},
    )
    (local,) = (tmp_path / "out").glob("*.whl")
    assert local.name == other.name
    assert local.read_bytes() == other.read_bytes()
    ours, theirs = manifest(local), manifest(other)
    assert (ours["executor"], theirs["executor"]) == ("local", "docker")
    assert ours["toolkit"] == {"provider": "system", "version": "12.4"}
    assert {name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name)} <= PROVENANCE


def fetched_by_uv() -> Path:
    """Uv's cache, so that a container need not fetch what this machine has."""
    said = subprocess.run([find_uv_bin(), "cache", "dir"], text=True, capture_output=True, check=True)
    return Path(said.stdout.strip())
