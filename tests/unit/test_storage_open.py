"""Where `--to` points, and what is no place to publish to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from wheelmill import s3_errors, storage_open
from wheelmill.errors import InputError, MissingError
from wheelmill.storage import Folder
from wheelmill.store import file_sha256

if TYPE_CHECKING:
    from pathlib import Path


def test_a_path_and_a_file_url_are_folders_that_tell_what_they_took(tmp_path: Path) -> None:
    source, sent = tmp_path / "a.whl", []
    source.write_bytes(b"wheel")
    for url in (f"{tmp_path}/an index", f"file://{tmp_path}/an%20index", f"file://localhost{tmp_path}/an index"):
        place = storage_open.open_storage(url, sent=sent.append, seconds=2)
        assert isinstance(place, Folder)
        assert place.root == tmp_path / "an index"
        place.put("files/a.whl", source, file_sha256(source))
    assert sent == [5, 5, 5]


@pytest.mark.parametrize(
    ("url", "endpoint", "message"),
    [
        ("", None, "is empty"),
        ("https://host/x", None, "nothing can be published to https"),
        ("s4://host/x", None, "nothing can be published to s4"),
        ("s3:/bucket", None, "is no URL"),
        ("s3://", None, "no name of a bucket"),
        ("s3://a b/x", None, "no name of a bucket"),
        ("s3://bucket/x?versionId=1", None, "after"),
        ("s3://bucket/x#y", None, "after"),
        ("file://host/x", None, "names a host"),
        ("s3://bucket", "localhost:9000", "is no address"),
    ],
)
def test_what_is_no_place_is_told(url: str, endpoint: str | None, message: str) -> None:
    with pytest.raises(InputError, match=message) as told:
        storage_open.open_storage(url, endpoint=endpoint)
    assert told.value.remedy


def test_credentials_in_the_address_are_refused_and_not_repeated() -> None:
    with pytest.raises(InputError, match="credentials") as told:
        storage_open.open_storage("s3://KEY:hunter2@bucket/x")
    assert "hunter2" not in f"{told.value} {told.value.remedy}"


def test_the_owner_of_a_lock_can_stand_in_a_header(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_RUN_ID", "7")
    monkeypatch.setenv("GITHUB_REPOSITORY", "owner/répo")
    said = storage_open.owner()
    assert said.isascii()
    assert said.endswith("run 7 of owner/r?po")


def test_credentials_in_the_endpoint_are_refused_and_not_repeated() -> None:
    with pytest.raises(InputError, match="credentials") as told:
        storage_open.open_storage("s3://bucket/x", endpoint="https://KEY:hunter2@host")
    assert "hunter2" not in f"{told.value} {told.value.remedy}"


def test_an_answer_does_not_repeat_the_password_of_an_address() -> None:
    with pytest.raises(MissingError, match="Could not connect to http://host:1") as told, s3_errors.told("s3://b", "p"):
        raise ConnectionError("Could not connect to http://KEY:hunter2@host:1")
    assert "hunter2" not in str(told.value)
