"""Reading: what is no YAML, and where things stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from wheelmill import document
from wheelmill.errors import InputError
from wheelmill.schema import MatrixFile

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        (b"", 1, "the file is empty"),
        (b"# nothing but a remark\n", 1, "the file is empty"),
        (b"version: 1\ntorch: [\ncuda: [cu130]\n", 4, "begun on line 2"),
        (b"version: 1\nabi:\n\ttorch: per-release\n", 3, "indented with a tab"),
        (b"version: 1\n---\nversion: 1\n", 2, "another document"),
        (b"version: 1\ntorch: *other\n", 2, "undefined alias"),
        (b"version: 1\ntorch: \x00\n", 1, "not YAML"),
    ],
)
def test_what_is_no_yaml_is_refused_with_its_line(tmp_path: Path, text: bytes, line: int, told: str) -> None:
    file = tmp_path / "matrix.yaml"
    file.write_bytes(text)
    with pytest.raises(InputError) as caught:
        document.read(file, MatrixFile)
    assert str(caught.value).startswith(f"{file}:{line}: ")
    assert told in str(caught.value)
    assert caught.value.remedy


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "matrix.yaml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="is not UTF-8 text"):
        document.read(file, MatrixFile)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file") as caught:
        document.read(tmp_path / "matrix.yaml", MatrixFile)
    assert "--matrix" in caught.value.remedy


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        document.read(tmp_path, MatrixFile)


def test_values_and_lines_share_their_keys(tmp_path: Path) -> None:
    file = tmp_path / "matrix.yaml"
    file.write_text(
        'version: 1\ntorch: ">=2.4"\ncuda:\n  - cpu\n  - cu130\npolicy: {size: 200MB}\n', encoding="utf-8-sig"
    )
    found = document.read(file, MatrixFile)
    assert found.content.model_dump(exclude_unset=True) == {
        "version": 1,
        "torch": ">=2.4",
        "cuda": ["cpu", "cu130"],
        "policy": {"size": "200MB"},
    }
    assert found.lines["cuda[1]"] == 5
    assert found.lines["policy.size"] == 6


def test_a_list_that_holds_itself_ends(tmp_path: Path) -> None:
    file = tmp_path / "matrix.yaml"
    file.write_text("version: 1\ntorch: &a [*a]\ncuda: [cpu]\n")
    with pytest.raises(InputError, match=r":2: torch\[0\]: this is a list, but a text is needed"):
        document.read(file, MatrixFile)
