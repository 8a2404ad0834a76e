"""What a wheel claims, and where to try it."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import pytest

from wheelmill import claims
from wheelmill.errors import InputError
from wheelmill.model import Cell

if TYPE_CHECKING:
    from pathlib import Path

    from wheelmill.claims import Claim
    from wheelmill.facts import Facts

TAG = "py3-none-manylinux_2_28_x86_64"


def wheel(folder: Path, version: str, *requires: str, tag: str = TAG, python: str = ">=3.10") -> Path:
    path = folder / f"demo-{version}-{tag}.whl"
    head = ["Name: demo", f"Version: {version}", f"Requires-Python: {python}"]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("demo/__init__.py", "")
        archive.writestr("demo-data/not_a_module.py", "")
        archive.writestr(
            f"demo-{version}.dist-info/METADATA", "\n".join([*head, *(f"Requires-Dist: {r}" for r in requires), "", ""])
        )
    return path


def read(folder: Path, version: str, *requires: str, tag: str = TAG, python: str = ">=3.10") -> Claim:
    return claims.read(wheel(folder, version, *requires, tag=tag, python=python))


@pytest.mark.parametrize(
    ("version", "cuda", "minor"),
    [
        ("1.0+cu130", "cu130", None),
        ("1.0+cu121.torch2.4", "cu121", "2.4"),
        ("1.0+cpu", "cpu", None),
        ("2.1+pt24cu124", "cu124", "2.4"),
        ("2.8.3+cu12torch2.9cxx11abitrue", "cu12", "2.9"),
        ("1.0+git1234", None, None),
        ("1.0", None, None),
    ],
)
def test_the_local_version_says_cuda_and_torch(
    tmp_path: Path, version: str, cuda: str | None, minor: str | None
) -> None:
    claim = read(tmp_path, version, "torch")
    assert (claim.cuda, claim.minor) == (cuda, minor)


def test_requirements_of_extras_are_none_and_markers_stay(tmp_path: Path) -> None:
    claim = read(tmp_path, "1.0", "torch>=2.10", "numpy; python_version < '3.12'", "torch<2; extra == 'old'")
    assert str(claim.torch) == ">=2.10"
    assert claim.others == ('numpy; python_version < "3.12"',)
    assert claim.modules == ("demo",)


@pytest.mark.parametrize(
    ("tag", "takes", "refuses"),
    [
        ("py3-none-any", ["3.10", "3.14", "3.13t"], ["3.9"]),
        ("cp311-cp311-manylinux_2_28_x86_64", ["3.11"], ["3.10", "3.12"]),
        ("cp311-abi3-manylinux_2_28_x86_64", ["3.11", "3.13"], ["3.10", "3.13t"]),
    ],
)
def test_pythons_by_tag_and_requires_python(tmp_path: Path, tag: str, takes: list[str], refuses: list[str]) -> None:
    claim = read(tmp_path, "1.0", tag=tag)
    assert [claim.takes_python(python) for python in takes] == [True] * len(takes)
    assert [claim.takes_python(python) for python in refuses] == [False] * len(refuses)


def test_a_wheel_of_another_machine_says_so(tmp_path: Path) -> None:
    claim = read(tmp_path, "1.0", tag="py3-none-win_amd64")
    assert claim.foreign == "the wheel is for win_amd64, which this machine is not"
    assert read(tmp_path, "1.0", tag="py3-none-any").foreign is None


def test_a_pinned_patch_release_is_the_one_that_is_tried(tmp_path: Path, known: Facts) -> None:
    row = known.torch["2.4"]
    assert read(tmp_path, "1.0", "torch==2.4.0").takes_torch(row) == "2.4.0"
    assert read(tmp_path, "1.0", "torch==2.4.*").takes_torch(row) == row.release
    assert read(tmp_path, "1.0", "torch==2.5.0").takes_torch(row) is None


def cells(claim: Claim, known: Facts, *torch: str, python: tuple[str, ...] = ()) -> dict[str, str | None]:
    return {p.cell.id: p.unclaimed for p in claims.places(claim, known, torch, python, own="3.12")}


def test_the_claim_and_its_neighbours_on_both_sides(tmp_path: Path, known: Facts) -> None:
    found = cells(read(tmp_path, "1.0+cu130", "torch>=2.11", "torch<2.13", python=">=3.11,<3.13"), known)
    assert [name for name, why in found.items() if why is None] == [
        *("cu130-torch2.11-cp311", "cu130-torch2.11-cp312"),
        *("cu130-torch2.12-cp311", "cu130-torch2.12-cp312"),
    ]
    assert {name: why for name, why in found.items() if why is not None} == {
        "cu128-torch2.10-cp312": "it does not take torch 2.10",
        "cu130-torch2.10-cp312": "it does not take torch 2.10",
        "cu130-torch2.12-cp310": "it does not take Python 3.10",
        "cu130-torch2.12-cp313": "it does not take Python 3.13",
        "cu130-torch2.13-cp312": "it does not take torch 2.13",
    }


def test_another_cuda_of_the_default_index_is_no_claim(tmp_path: Path, known: Facts) -> None:
    found = cells(read(tmp_path, "1.0+cu130", "torch>=2.10"), known, "2.10", "2.15", python=("3.12",))
    assert found == {
        "cu128-torch2.10-cp312": "it is for cu130, and this torch is of cu128",
        "cu130-torch2.10-cp312": None,
        "cu132-torch2.15-cp312": "it is for cu130, and this torch is of cu132",
    }


def test_a_stranger_is_tried_beside_the_default_indexs_torch(tmp_path: Path, known: Facts) -> None:
    found = cells(read(tmp_path, "1.0", "torch==2.14.1", tag="cp311-cp311-manylinux_2_28_x86_64"), known)
    assert [name for name, why in found.items() if why is None] == ["cu130-torch2.14-cp311"]
    assert "cu130-torch2.14-cp310" in found
    assert "cu130-torch2.14-cp312" in found


def test_sources_of_torch(tmp_path: Path, known: Facts) -> None:
    def sources(version: str, torch: str) -> list[tuple[str | None, ...]]:
        claim = read(tmp_path, version, "torch>=2.10")
        return [p.sources for p in claims.places(claim, known, [torch], ["3.12"], own="3.12")]

    assert sources("1.0+cu130", "2.11") == [(None,)]
    assert sources("1.0+cu130", "2.10") == [(None,), ("cu130",)]
    assert sources("1.0+cpu", "2.11") == [("cpu", None)]


def test_a_python_that_a_torch_lacks_is_absent(tmp_path: Path, known: Facts) -> None:
    (place,) = claims.places(read(tmp_path, "1.0+cu130", "torch"), known, ["2.14"], ["3.9"], own="3.12")
    assert place.absent == "torch 2.14 has no wheel for Python 3.9"


def test_a_wheel_that_claims_nothing_known_is_refused(tmp_path: Path, known: Facts) -> None:
    with pytest.raises(InputError, match="claims no torch and Python"):
        claims.places(read(tmp_path, "1.0", "torch==1.13"), known, own="3.12")


@pytest.mark.parametrize("text", ["", "no archive"])
def test_what_is_no_wheel_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / f"demo-1.0-{TAG}.whl"
    path.write_text(text)
    with pytest.raises(InputError, match="cannot be read as a wheel"):
        claims.read(path)


def served(known: Facts, cuda: str, *pairs: tuple[str, str]) -> list[tuple[str, tuple[str | None, ...]]]:
    made = (Cell(cuda=cuda, torch=torch, python=python) for torch, python in pairs)
    return [(p.cell.id, p.sources) for p in claims.one_a_torch(claims.served(made, known), "3.12")]


def test_one_a_torch_begins_with_the_default_indexs_variant_and_the_newest(known: Facts) -> None:
    assert served(known, "cu130", ("2.10", "3.12"), ("2.11", "3.12"), ("2.12", "3.12"), ("2.12", "3.13")) == [
        ("cu130-torch2.12-cp312", (None,)),
        ("cu130-torch2.11-cp312", (None,)),
        ("cu130-torch2.10-cp312", ("cu130",)),
    ]


def test_free_threaded_pythons_are_not_taken_unasked(known: Facts) -> None:
    assert served(known, "cu130", ("2.11", "3.13t"), ("2.11", "3.10")) == [("cu130-torch2.11-cp310", (None,))]
