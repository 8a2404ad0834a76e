"""A folder as the storage of an index."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from wheelmill.errors import InputError
from wheelmill.storage import Folder
from wheelmill.store import file_sha256

if TYPE_CHECKING:
    from pathlib import Path


def test_what_is_written_is_read_and_has_its_size(tmp_path: Path) -> None:
    site = Folder(tmp_path / "site")
    source = tmp_path / "a.whl"
    source.write_bytes(b"wheel")
    site.put("files/a+b.whl", source, file_sha256(source))
    site.write("simple/a/index.html", b"<a>")
    assert site.read("files/a+b.whl") == b"wheel"
    assert site.size("simple/a/index.html") == 3
    assert (tmp_path / "site/files/a+b.whl").stat().st_mode & 0o777 == 0o644


def test_a_hash_is_read_from_the_file(tmp_path: Path) -> None:
    site = Folder(tmp_path)
    site.write("a", b"1")
    assert site.sha256("a") == hashlib.sha256(b"1").hexdigest()
    assert site.sha256("b") is site.sha256("a/b") is None


def test_what_is_not_there_is_none_also_below_a_file(tmp_path: Path) -> None:
    site = Folder(tmp_path)
    site.write("a", b"")
    assert site.read("b") is site.size("b") is site.read("a/b") is site.size("a/b") is None
    site.remove("b")


def test_a_prefix_is_letters_and_hidden_files_are_not_listed(tmp_path: Path) -> None:
    site = Folder(tmp_path)
    for path in ("simple/index.html", "simple/ab/index.html", "simple/b/index.html", "all.html"):
        site.write(path, b"")
    (tmp_path / "simple/.index.html.x").write_bytes(b"half")
    with site.lock():
        assert sorted(site.list("")) == ["all.html", "simple/ab/index.html", "simple/b/index.html", "simple/index.html"]
    assert list(site.list("simple/a")) == ["simple/ab/index.html"]
    assert list(site.list("nothing/")) == []


def test_the_last_file_takes_its_folder_with_it(tmp_path: Path) -> None:
    site = Folder(tmp_path / "site")
    site.write("cpu-torch2.9/a/index.html", b"")
    site.write("cpu-torch2.9/index.html", b"")
    site.remove("cpu-torch2.9/a/index.html")
    assert [path.name for path in (tmp_path / "site/cpu-torch2.9").iterdir()] == ["index.html"]
    site.remove("cpu-torch2.9/index.html")
    assert list((tmp_path / "site").iterdir()) == []


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/"])
def test_a_path_that_leaves_the_index_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(InputError, match="no path inside an index"):
        Folder(tmp_path / "site").write(path, b"")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_changed_since_it_was_read_is_not_put_there(tmp_path: Path) -> None:
    site, source = Folder(tmp_path / "site"), tmp_path / "source"
    source.write_bytes(b"other bytes")
    with pytest.raises(InputError, match="was changed while"):
        site.put("files/a.whl", source, "0" * 64)
    assert list((tmp_path / "site/files").iterdir()) == []
