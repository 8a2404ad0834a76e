"""The tables hold together, and a site's own rows are merged over them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from wheelmill import facts
from wheelmill.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from wheelmill.facts import Facts


def test_order_is_by_number(known: Facts) -> None:
    numbers = [[int(part) for part in minor.split(".")] for minor in known.torch]
    assert numbers == sorted(numbers)
    assert list(known.torch).index("2.9") < list(known.torch).index("2.10")
    assert known.tags[0] == "cpu"


def test_each_row_agrees_with_the_others(known: Facts) -> None:
    for row in known.torch.values():
        # Where only the PyPI variant is known yet, cpu is not.
        assert row.cuda[0] == "cpu" or row.cuda == (row.pypi,)
        assert row.pypi in row.cuda
        assert set(row.sm) <= set(row.cuda)
        for tag, targets in row.sm.items():
            assert {target.name for target in targets} <= known.cuda[tag].names, (row.minor, tag)


def test_toolkits_of_one_major_share_a_driver_floor(known: Facts) -> None:
    floors = {(row.minor.split(".")[0], row.driver) for row in known.cuda.values()}
    assert floors == {("11", "450"), ("12", "525"), ("13", "580")}


def test_only_cuda_13_has_a_compiler_on_the_package_index(known: Facts) -> None:
    assert all((row.pypi is not None) == row.minor.startswith("13.") for row in known.cuda.values())


def test_names_of_generations_are_targets(known: Facts) -> None:
    assert known.arch_names["Hopper"] == "9.0+PTX"


def test_variants_elsewhere_than_on_pypi_have_an_index(known: Facts) -> None:
    assert known.torch_index("2.11", "cu130") is None
    assert known.torch_index("2.11", "cu128") == "https://download.pytorch.org/whl/cu128"
    assert known.torch_index("2.11", "cpu") == "https://download.pytorch.org/whl/cpu"


def test_cxx11_abi_of_2_6_depends_on_the_variant(known: Facts) -> None:
    assert known.torch["2.6"].cxx11("cu124") is False
    assert known.torch["2.6"].cxx11("cu126") is True


def test_extra_rows_add_and_replace_fields(tmp_path: Path) -> None:
    file = tmp_path / "extra.toml"
    file.write_text(
        'index = "https://torch.example/{cuda}"\n'
        '[torch."2.11"]\ncuda = ["cpu", "cu130", "cu134"]\n'
        '[torch."3.0"]\nrelease = "3.0.1"\ncuda = ["cu130"]\npython = ["3.14"]\n'
        '[cuda.cu140]\nminor = "14.0"\nsm = ["8.0"]\n'
    )
    merged = facts.load(file)
    assert merged.torch["2.11"].cuda == ("cpu", "cu130", "cu134")
    assert merged.torch["2.11"].release == "2.11.0"
    assert list(merged.torch)[-1] == "3.0"
    assert merged.cuda["cu140"].pypi is None
    assert merged.torch_index("3.0", "cu130") == "https://torch.example/cu130"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("not toml", "is not TOML"),
        ("[torhc]\n", "torhc: no such table"),
        ('[torch."2.11"]\nreleese = "1"\n', "torch.2.11.releese: no such field"),
        ('[torch."3.0"]\nrelease = "3.0.0"\n', "torch.3.0: lacks `cuda`"),
        ('[torch."3.0"]\nrelease = "2.9.0"\ncuda = ["cpu"]\npython = ["3.14"]\n', "is no release of 3.0"),
        ('[torch."2.11"]\ncuda = "cu130"\n', "torch.2.11.cuda: must be"),
        ('[torch."2.11"]\ncuda = ["13.0"]\n', "torch.2.11.cuda: '13.0'"),
        ('[torch."3"]\nrelease = "3.0.0"\n', "torch.3: is no minor release"),
        ('[cuda.cu140]\nminor = "13.9"\nsm = ["8.0"]\n', "cuda.cu140.minor"),
        ('[cuda.cu140]\nminor = "14.0"\nsm = ["80"]\n', "cuda.cu140.sm"),
        ("torch = 3\n", "torch: must be a table"),
        ('index = "https://torch.example"\n', "index: must be an address"),
    ],
)
def test_bad_rows_are_refused_by_file_and_key(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "extra.toml"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        facts.load(file)
    assert str(file) in str(caught.value)
    assert told in str(caught.value)
    assert caught.value.remedy


def test_a_missing_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        facts.load(tmp_path / "none.toml")
