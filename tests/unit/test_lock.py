"""The lock: what goes in comes out, and a damaged one is no lock."""

from pathlib import Path

import pytest

from wheelmill import fetch, lock
from wheelmill.errors import InputError
from wheelmill.store import Store

PINS = "torch==2.10.0 --hash=sha256:00\n"


def add(path: Path, python: str, pins: str = PINS) -> None:
    lock.add(path, lock.Resolution(requirements=["torch==2.10.0"], python=python, torch=None, pins=pins))


def test_the_same_resolutions_give_the_same_file(tmp_path: Path) -> None:
    for name, pythons in (("one", ("3.11", "3.12")), ("two", ("3.12", "3.11"))):
        for python in pythons:
            add(tmp_path / name, python)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert lock.read(tmp_path / "one")[lock.key_of(["torch==2.10.0"], "3.11", None)].pins == PINS


@pytest.mark.parametrize(("said", "edited"), [("3.12", "3.11"), ("torch==2.10.0", "torch==2.9.0"), ("--hash=", "#")])
def test_a_row_that_was_edited_is_refused(tmp_path: Path, said: str, edited: str) -> None:
    path = tmp_path / "wheelmill.lock"
    add(path, "3.12")
    path.write_text(path.read_text().replace(said, edited))
    with pytest.raises(InputError, match="was edited"):
        lock.read(path)


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
    add(store.lock_file, "3.12")
    pins = fetch.resolve(store, ["torch==2.10.0"], python="3.12", log=tmp_path / "log")
    assert pins == PINS
