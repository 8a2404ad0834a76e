"""Variant metadata, as variantlib reads it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.index_wheels import add
from variantlib.constants import VARIANT_INFO_SCHEMA_URL
from variantlib.models.variant import VariantProperty
from variantlib.variants_json import VariantsJson

from wheelmill import recording, variants

if TYPE_CHECKING:
    from pathlib import Path

    from wheelmill.records import Record


@pytest.fixture
def release(tmp_path: Path) -> list[Record]:
    found = [
        add(tmp_path, "1.0+cu130", ["cu130-torch2.10", "cu130-torch2.11"]),
        add(tmp_path, "1.0+cu130", ["cu130-torch2.12"], tag="py3-none-manylinux_2_28_aarch64"),
        add(tmp_path, "1.0+cu121.torch2.4", ["cu121-torch2.4"]),
        add(tmp_path, "1.0+cpu", ["cpu-torch2.11"]),
        add(tmp_path, "1.0", ["cpu-torch2.11"]),
    ]
    return [recording.read(path).record for path in found]


def test_variantlib_reads_what_is_written_and_gives_it_back(release: list[Record]) -> None:
    content = variants.content(release)
    assert content is not None
    value = json.loads(content)
    assert value["$schema"] == variants.SCHEMA == VARIANT_INFO_SCHEMA_URL
    read = VariantsJson(value)
    assert json.loads(read.to_str()) == value
    assert set(read.variants) == {"cu130", "cu121.torch2.4", "cpu"}
    assert set(read.variants["cu130"].properties) == {
        VariantProperty("nvidia", "cuda_version_lower_bound", "13.0"),
        *(VariantProperty("nvidia", "sm_arch", name) for name in ("80_real", "90a_real", "90_virtual")),
        *(VariantProperty("abi_dependency", "torch", minor) for minor in ("2.10", "2.11", "2.12")),
    }
    assert set(read.variants["cpu"].properties) == {VariantProperty("abi_dependency", "torch", "2.11")}


def test_a_release_without_a_variant_has_no_metadata_of_one(release: list[Record]) -> None:
    assert variants.content(release[4:]) is None
    assert variants.content([]) is None


def test_the_file_is_named_as_wheels_are() -> None:
    assert variants.file("my-other", "1.0") == "my_other-1.0-variants.json"
