"""Versions and torch requirements of labelled wheels."""

import pytest

from wheelmill import label
from wheelmill.errors import InputError
from wheelmill.model import Cell, Wheel


def wheel(requires: str = "torch>=2.10") -> Wheel:
    return Wheel(
        id="cu130-stable2.10",
        cuda="cu130",
        torch="2.10",
        torch_abi="stable",
        python=None,
        python_abi="none",
        sm=("9.0+PTX",),
        local="cu130",
        requires=requires,
        cells=(Cell(cuda="cu130", torch="2.11", python="3.11"),),
    )


@pytest.mark.parametrize(
    ("version", "labelled"),
    [
        ("1.0.0", "1.0.0+cu130"),
        ("1.0", "1.0+cu130"),
        ("1.0.0+cu130", "1.0.0+cu130"),
        ("1.0.0+git1234", "1.0.0+git1234.cu130"),
        ("1.0.0+git1234.cu130", "1.0.0+git1234.cu130"),
        ("2.0.0rc1.post2.dev3", "2.0.0rc1.post2.dev3+cu130"),
    ],
)
def test_the_local_version_is_added_once(version: str, labelled: str) -> None:
    assert label.local_version(version, "cu130") == labelled


@pytest.mark.parametrize(
    ("stated", "requires", "releases", "expected"),
    [
        ([], "torch>=2.10", ("2.10.0",), "torch>=2.10"),
        (["torch"], "torch>=2.10", ("2.10.0",), "torch>=2.10"),
        (["torch>=2.4"], "torch>=2.10", ("2.10.0", "2.14.1"), "torch>=2.10"),
        (["torch>=2.12"], "torch>=2.10", ("2.10.0", "2.14.1"), "torch>=2.10,>=2.12"),
        (["torch==2.4.1"], "torch==2.4.*", ("2.4.1",), "torch==2.4.*"),
    ],
)
def test_the_torch_range_is_the_binarys_within_the_projects(
    stated: list[str], requires: str, releases: tuple[str, ...], expected: str
) -> None:
    assert label.torch_requirement(stated, wheel(requires), releases) == expected


def test_a_range_that_nobody_could_install_is_an_error() -> None:
    with pytest.raises(InputError, match="nobody could install"):
        label.torch_requirement(["torch>=2.13"], wheel("torch==2.4.*"), ("2.4.1",))
