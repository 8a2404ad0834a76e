"""Index pages: what they list, how they link, and what they refuse."""

import json
import zipfile
from pathlib import Path

import pytest

from wheelmill import index
from wheelmill.errors import InputError
from wheelmill.store import file_sha256

ENVIRONMENTS = ["cu130-torch2.11", "cu130-torch2.12"]


def add_wheel(dist: Path, version: str, environments: list[str], *, proven: bool = True) -> Path:
    path = dist / f"demo-{version}-py3-none-manylinux_2_28_x86_64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            f"demo-{version}.dist-info/METADATA", f"Name: demo\nVersion: {version}\nRequires-Python: >=3.10\n\nText"
        )
    sha256 = file_sha256(path)
    manifest = {
        "wheel": environments[0],
        "sha256": sha256,
        "environments": environments,
        "proof": {"sha256": sha256} if proven else None,
    }
    path.with_name(path.name + index.MANIFEST).write_text(json.dumps(manifest))
    return path


def test_each_environment_lists_its_own_wheels(tmp_path: Path) -> None:
    add_wheel(tmp_path, "1.0+cu130", ENVIRONMENTS)
    add_wheel(tmp_path, "1.0+cpu", ["cpu-torch2.11"])
    files, faults = index.collect(tmp_path)
    pages = index.write(files, tmp_path / "site")
    assert faults == []
    assert sorted(pages) == ["cpu-torch2.11", *ENVIRONMENTS]
    page = pages["cu130-torch2.11"].read_text()
    assert "1.0%2Bcu130" in page
    assert "cpu" not in page
    assert 'data-requires-python="&gt;=3.10"' in page
    assert f"#sha256={files[1].sha256}" in page


def test_every_link_leads_to_a_file_with_its_hash(tmp_path: Path) -> None:
    wheel = add_wheel(tmp_path, "1.0+cu130", ENVIRONMENTS)
    index.write(index.collect(tmp_path)[0], tmp_path / "site")
    assert file_sha256(tmp_path / "site" / "files" / wheel.name) == file_sha256(wheel)
    assert (tmp_path / "site" / "files" / f"{wheel.name}.metadata").read_text().startswith("Name: demo")


def test_a_second_write_is_byte_identical_and_drops_stale_pages(tmp_path: Path) -> None:
    add_wheel(tmp_path, "1.0+cu130", ENVIRONMENTS)
    site = tmp_path / "site"
    files, _ = index.collect(tmp_path)
    index.write(files, site)
    first = {path: path.read_bytes() for path in site.rglob("*.html")}
    (site / "cu118-torch2.4.html").write_text("stale")
    index.write(files, site)
    assert {path: path.read_bytes() for path in site.rglob("*.html")} == first


def test_a_proof_of_other_bytes_is_none(tmp_path: Path) -> None:
    add_wheel(tmp_path, "1.0+cpu", ["cpu-torch2.11"])
    wheel = add_wheel(tmp_path, "1.0+cu130", ENVIRONMENTS, proven=False)
    assert [file.proven for file in index.collect(tmp_path)[0]] == [True, False]
    change(wheel, proof={"sha256": "0" * 64})
    assert [file.proven for file in index.collect(tmp_path)[0]] == [True, False]


def change(wheel: Path, **fields: object) -> None:
    manifest = wheel.with_name(wheel.name + index.MANIFEST)
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), **fields}))


def fault(dist: Path) -> str:
    files, faults = index.collect(dist)
    assert files == []
    (one,) = faults
    assert one.remedy
    return str(one)


def test_other_bytes_than_the_manifests_are_refused(tmp_path: Path) -> None:
    wheel = add_wheel(tmp_path, "1.0+cu130", ENVIRONMENTS)
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("demo/late.py", "")
    assert "SHA-256 differs" in fault(tmp_path)


def test_a_truncated_wheel_is_refused(tmp_path: Path) -> None:
    wheel = add_wheel(tmp_path, "1.0+cu130", ENVIRONMENTS)
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
    change(add_wheel(tmp_path, "1.0+cu130", ENVIRONMENTS), **fields)
    assert "manifest cannot be read" in fault(tmp_path)


def test_no_wheel_no_manifest_no_wheel_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no wheel"):
        index.collect(tmp_path)
    wheel = add_wheel(tmp_path, "1.0+cu130", ENVIRONMENTS)
    manifest = wheel.with_name(wheel.name + index.MANIFEST)
    manifest.rename(tmp_path / f"demo.whl{index.MANIFEST}")
    assert "no manifest" in fault(tmp_path)
    wheel.rename(tmp_path / "demo.whl")
    assert "demo.whl cannot be read" in fault(tmp_path)


def test_one_faulty_wheel_costs_the_others_nothing(tmp_path: Path) -> None:
    add_wheel(tmp_path, "1.0+cu130", ENVIRONMENTS)
    (tmp_path / "stranger-1.0-py3-none-any.whl").write_bytes(b"")
    files, faults = index.collect(tmp_path)
    assert [file.project for file in files] == ["demo"]
    assert len(faults) == 1
