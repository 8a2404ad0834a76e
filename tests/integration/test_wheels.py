"""Wheels of the reference extension: really built, installed by pip into a clean environment, and computed with."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from email.parser import BytesParser
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from tests.matrices import narrowed

from wheelmill import facts, fetch
from wheelmill.store import Store

from .conftest import ROOT, STORE, command


@dataclass(frozen=True)
class Expected:
    wheel: str
    local: str
    requires: str
    sass: list[str]


EXPECTED = [
    Expected("cpu-stable2.10", "cpu", "torch>=2.10", []),
    Expected("cpu-torch2.4", "cpu.torch2.4", "torch==2.4.*", []),
    Expected("cu130-stable2.10", "cu130", "torch>=2.10", ["90", "90a"]),
]


@dataclass(frozen=True)
class Built:
    path: Path
    manifest: dict[str, Any]
    site: Path


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Built]:
    """Every expected wheel, built by one command with the repository's own store."""
    out = tmp_path_factory.mktemp("wheels")
    places = ["--matrix", narrowed(out), "--out", out / "dist", "--site", out / "site", "--store", STORE]
    # Loops for processors know neither torch nor CUDA, and need not be compiled again for each wheel.
    places += ["--compiler-cache", out / "compiled"]
    # In the first cell alone: the others would be every torch that a stable wheel serves.
    args = command("build", "--json", "--in", "first", *places, *(expected.wheel for expected in EXPECTED))
    done = subprocess.run(args, text=True, stdout=subprocess.PIPE, check=False)
    assert done.returncode == 0, done.stdout
    found = {}
    for row in json.loads(done.stdout)["wheels"]:
        path = Path(row["file"])
        manifest = json.loads(path.with_name(f"{path.name}.manifest.json").read_text())
        found[row["wheel"]] = Built(path=path, manifest=manifest, site=out / "site")
    return found


@pytest.fixture(params=EXPECTED, ids=lambda expected: expected.wheel)
def expected(request: pytest.FixtureRequest) -> Expected:
    return request.param


def metadata(path: Path) -> Any:
    with ZipFile(path) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return BytesParser().parsebytes(archive.read(name))


def test_the_name_and_the_metadata_agree(built: dict[str, Built], expected: Expected) -> None:
    path = built[expected.wheel].path
    assert re.fullmatch(
        rf"fusedops-1\.0\.0\+{re.escape(expected.local)}-py3-none-manylinux_2_\d+_x86_64\.whl", path.name
    )
    stated = metadata(path)
    assert stated["Version"] == f"1.0.0+{expected.local}"
    assert stated.get_all("Requires-Dist") == [expected.requires]


def test_it_carries_what_it_was_made_of(built: dict[str, Built], expected: Expected) -> None:
    path = built[expected.wheel].path
    info = f"fusedops-1.0.0+{expected.local}.dist-info"
    with ZipFile(path) as archive:
        sbom = json.loads(archive.read(f"{info}/sboms/wheelmill.cdx.json"))
        inside = json.loads(archive.read(f"{info}/wheelmill.json"))
        record = archive.read(f"{info}/RECORD").decode()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(sbom)) is None
    assert f"{info}/sboms/wheelmill.cdx.json,sha256=" in record
    roles = [part["properties"][0]["value"] for part in sbom["components"]]
    assert set(roles) == {"headers", "compiler", "build tool", *(["toolkit"] if expected.sass else [])}
    assert inside["wheel"] == expected.wheel
    assert str(ROOT) not in json.dumps([sbom, inside])


def test_the_platform_tag_is_within_the_policy(built: dict[str, Built], expected: Expected) -> None:
    (minor,) = re.findall(r"manylinux_2_(\d+)_x86_64", built[expected.wheel].path.name)
    assert int(minor) <= 28


def test_the_library_holds_what_the_matrix_asks_for(built: dict[str, Built], expected: Expected) -> None:
    (library,) = built[expected.wheel].manifest["libraries"]
    assert library["sass"] == expected.sass
    assert library["ptx"] == [target for target in expected.sass if target.isdigit()][-1:]
    cudart = [name for name in library["needed"] if name.startswith("libcudart")]
    assert cudart == (["libcudart.so.13"] if expected.sass else [])
    assert library["rpath"] == []


def test_the_stable_library_needs_torchs_shims_and_the_system_alone(built: dict[str, Built]) -> None:
    for wheel, made in built.items():
        if "stable" not in wheel:
            continue
        (library,) = made.manifest["libraries"]
        unversioned = [symbol for symbol, version in library["undefined"].items() if version is None]
        assert unversioned
        assert [s for s in unversioned if not s.startswith(("aoti_torch_", "torch_"))] == []
        offered = {
            re.sub(r"[\d._]+$", "", version) for versions in library["versions"].values() for version in versions
        }
        assert offered <= {"GLIBC", "GLIBCXX", "CXXABI", "GCC", "libcudart.so"}


def test_it_was_installed_and_computed_with(built: dict[str, Built], expected: Expected) -> None:
    proof = built[expected.wheel].manifest["proof"]
    assert proof["sha256"] == built[expected.wheel].manifest["sha256"]
    release = facts.load().torch[proof["cell"].split("-")[1].removeprefix("torch")].release
    assert proof["torch"].split("+")[0] == release
    assert set(proof["computed"]) >= {"clip_add", "scale_clamp_add", "affine", "vector_add"}
    assert all(count > 10 for count in proof["computed"].values())


# (wheel, torch minor): the aten wheel's own, and the lowest and the newest at hand of the stable ABI.
ENVIRONMENTS = [("cpu-torch2.4", "2.4"), ("cpu-stable2.10", "2.10"), ("cu130-stable2.10", "2.14")]
MIDDLE = "cpu-stable2.10"


def environment_of(made: Built, folder: Path, torch: str, *more: str) -> Path:
    """The Python of a clean environment of the wheel, that torch, and what else is named."""
    store, log = Store(STORE), folder / "log"
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    known = facts.load().torch[torch]
    version = own if own in known.python else known.python[-1]
    pins = fetch.resolve(store, [f"torch=={known.release}", "numpy", *more], python=version, log=log)
    python = fetch.venv(folder / "env", python=sys.executable if version == own else version, log=log)
    fetch.install(store, pins, into=python, log=log)
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-index", "--no-deps"]
    subprocess.run([*install, str(made.path)], check=True)
    return python


@pytest.mark.parametrize(("wheel", "torch"), ENVIRONMENTS)
def test_the_operators(built: dict[str, Built], tmp_path: Path, wheel: str, torch: str) -> None:
    """tests/ops against the installed wheel: values, gradients, opcheck, torch.compile."""
    newest = ENVIRONMENTS[-1][1]
    more = ["torchvision"] if torch == newest else []  # what nms is held to
    python = environment_of(built[wheel], tmp_path, torch, "pytest", "setuptools", *more)
    # Between the oldest torch and the newest what compiles and traces is left out, which takes longest.
    files = [f"test_{what}.py" for what in ("values", "errors", "gradients")] if wheel == MIDDLE else [""]
    asked = [str(ROOT / "tests" / "ops" / file) for file in files]
    tests = [str(python), "-m", "pytest", *asked, "-q", "-p", "no:cacheprovider"]
    tests += ["-c", os.devnull, "--rootdir", str(ROOT)]
    done = subprocess.run(tests, cwd=tmp_path, text=True, check=False, capture_output=True)
    print(done.stdout[-3000:], done.stderr[-3000:])
    assert done.returncode == 0
    (passed,) = re.findall(r"(\d+) passed", done.stdout)
    assert int(passed) > 100
    assert "skipped" not in done.stdout


@pytest.mark.parametrize(("wheel", "torch"), ENVIRONMENTS[:2])
def test_a_program_without_python(built: dict[str, Built], tmp_path: Path, wheel: str, torch: str) -> None:
    """docs/cpp against the installed wheel, as its page says."""
    python = environment_of(built[wheel], tmp_path, torch, "cmake", "ninja")
    (site,) = (python.parents[1] / "lib").glob("python3.*/site-packages")
    source, out = ROOT / "docs" / "cpp", tmp_path / "build"
    cmake = str(python.with_name("cmake"))
    changed = {**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}"}
    configure = [cmake, "-S", str(source), "-B", str(out), "-G", "Ninja", f"-DTorch_ROOT={site / 'torch'}"]
    subprocess.run(configure, check=True, env=changed)
    subprocess.run([cmake, "--build", str(out)], check=True, env=changed)
    program = [str(out / "example"), str(site / "fusedops" / "libfusedops.so")]
    done = subprocess.run(program, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    said = ("clip_add", "clip_add_backward", "the gradient of clip_add", "refusing the gradient of affine")
    assert done.stdout.splitlines()[:4] == [f"{what} on cpu: right" for what in said]
    assert "Warning" not in done.stderr
    absent = subprocess.run([program[0], str(tmp_path / "gone.so")], text=True, capture_output=True, check=False)
    assert absent.returncode == 1
    assert "gone.so: cannot open shared object file" in absent.stderr
