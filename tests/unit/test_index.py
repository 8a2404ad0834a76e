"""The wheels of a folder: what their manifests say, and what is refused."""

import zipfile
from pathlib import Path

import pytest
from tests.index_wheels import add, change

from wheelmill import folder, index
from wheelmill.errors import InputError

ENVIRONMENTS = ["cu130-torch2.11", "cu130-torch2.12"]


def test_a_proof_of_other_bytes_is_none(tmp_path: Path) -> None:
    add(tmp_path, "1.0+cpu", ["cpu-torch2.11"])
    wheel = add(tmp_path, "1.0+cu130", ENVIRONMENTS, proven=False)
    assert [wheel.proven for wheel in folder.scan(tmp_path).wheels] == [True, False]
    change(wheel, proof={"sha256": "0" * 64})
    assert [wheel.proven for wheel in folder.scan(tmp_path).wheels] == [True, False]


def fault(dist: Path) -> str:
    found = folder.scan(dist)
    assert found.wheels == ()
    (one,) = found.faults
    assert one.remedy
    return str(one)


def test_other_bytes_than_the_manifests_are_refused(tmp_path: Path) -> None:
    wheel = add(tmp_path, "1.0+cu130", ENVIRONMENTS)
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("demo/late.py", "")
    assert "SHA-256 differs" in fault(tmp_path)


def test_a_truncated_wheel_is_refused(tmp_path: Path) -> None:
    wheel = add(tmp_path, "1.0+cu130", ENVIRONMENTS)
    wheel.write_bytes(wheel.read_bytes()[:50])
    assert "cannot be read" in fault(tmp_path)


@pytest.mark.parametrize(
    "fields",
    [
        {"environments": ["../../escaped"]},
        {"environments": ["cu130-torch2.11/../x"]},
        {"environments": 3},
        {"environments": "cu130-torch2.11"},
        {"proof": "yes"},
        {"sha256": "0"},
    ],
    ids=str,
)
def test_a_manifest_is_not_trusted(tmp_path: Path, fields: dict[str, object]) -> None:
    change(add(tmp_path, "1.0+cu130", ENVIRONMENTS), **fields)
    assert "manifest cannot be read" in fault(tmp_path)


def test_no_wheel_no_manifest_no_wheel_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no wheel"):
        folder.scan(tmp_path)
    wheel = add(tmp_path, "1.0+cu130", ENVIRONMENTS)
    manifest = wheel.with_name(wheel.name + index.MANIFEST)
    manifest.rename(tmp_path / f"demo.whl{index.MANIFEST}")
    assert "no manifest" in fault(tmp_path)
    wheel.rename(tmp_path / "demo.whl")
    assert "demo.whl cannot be read" in fault(tmp_path)


def test_one_faulty_wheel_costs_the_others_nothing(tmp_path: Path) -> None:
    add(tmp_path, "1.0+cu130", ENVIRONMENTS)
    (tmp_path / "stranger-1.0-py3-none-any.whl").write_bytes(b"")
    found = folder.scan(tmp_path)
    assert [wheel.record.project for wheel in found.wheels] == ["demo"]
    assert len(found.faults) == 1
