"""The lock: what goes in comes out, and a damaged one is no lock."""

from pathlib import Path

import pytest

from wheelmill import fetch, lock
from wheelmill.errors import InputError
from wheelmill.store import Store


def add(path: Path, key: str) -> None:
    pins = "torch==2.10.0 --hash=sha256:00\n"
    lock.add(path, key, lock.Resolution(requirements=["torch==2.10.0"], python="3.12", torch=None, pins=pins))


def test_the_same_resolutions_give_the_same_file(tmp_path: Path) -> None:
    for name, keys in (("one", "ab"), ("two", "ba")):
        for key in keys:
            add(tmp_path / name, key)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert lock.read(tmp_path / "one")["a"].pins == "torch==2.10.0 --hash=sha256:00\n"


def test_no_file_is_an_empty_lock(tmp_path: Path) -> None:
    assert lock.read(tmp_path / "absent") == {}


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"version": 2, "resolutions": {}}', '{"version": 1, "resolutions": {"a": {}}}']
)
def test_a_damaged_lock_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "wheelmill.lock"
    path.write_text(text)
    with pytest.raises(InputError):
        lock.read(path)


def test_a_locked_resolution_asks_nobody(tmp_path: Path) -> None:
    """A unit test may start no process, so an answer can only have come from the lock."""
    store = Store(tmp_path / "store")
    store.lock_file = tmp_path / "wheelmill.lock"
    key = fetch.digest([["torch==2.10.0"], "3.12", None])
    add(store.lock_file, key)
    pins = fetch.resolve(store, ["torch==2.10.0"], python="3.12", log=tmp_path / "log")
    assert pins == "torch==2.10.0 --hash=sha256:00\n"
