"""The store: entries appear whole or not at all, and a killed run's leavings go."""

import threading
from pathlib import Path

import pytest
from filelock import FileLock

from wheelmill.store import Store, digest, write_atomic


def test_an_entry_is_made_once(tmp_path: Path) -> None:
    store, calls = Store(tmp_path), []

    def make(folder: Path) -> None:
        calls.append(folder)
        (folder / "file").write_text("content")

    first = store.entry("wheels", "key", make)
    assert store.entry("wheels", "key", make) == first
    assert len(calls) == 1
    assert (first / "file").read_text() == "content"


def test_an_entry_that_is_not_sound_is_made_again(tmp_path: Path) -> None:
    store = Store(tmp_path)

    def make(folder: Path) -> None:
        (folder / "file").write_text("content")

    def sound(folder: Path) -> bool:
        return (folder / "file").read_text() == "content"

    first = store.entry("wheels", "key", make, sound=sound)
    (first / "file").write_text("cut")
    assert (store.entry("wheels", "key", make, sound=sound) / "file").read_text() == "content"


def test_git_ignores_the_store(tmp_path: Path) -> None:
    Store(tmp_path / ".wheelmill")
    assert (tmp_path / ".wheelmill" / ".gitignore").read_text() == "*\n"


def test_a_failed_make_leaves_no_entry(tmp_path: Path) -> None:
    store = Store(tmp_path)

    def fail(folder: Path) -> None:
        (folder / "half").write_text("half")
        raise RuntimeError("compiler crashed")

    with pytest.raises(RuntimeError):
        store.entry("wheels", "key", fail)
    assert not store.path("wheels", "key").exists()
    assert list((tmp_path / "tmp").iterdir()) == []


def test_two_threads_make_one_entry(tmp_path: Path) -> None:
    store, calls = Store(tmp_path), []
    threads = [threading.Thread(target=store.entry, args=("wheels", "key", calls.append)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1


def test_the_next_store_sweeps_what_a_killed_run_left(tmp_path: Path) -> None:
    Store(tmp_path)
    left = tmp_path / "tmp" / "wheels-key-0000"
    left.mkdir()
    (left / "half.o").write_text("half")
    left.with_suffix(".lock").touch()
    Store(tmp_path)
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_sweep_spares_a_folder_in_use(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.work("build") as folder:
        Store(tmp_path)
        assert folder.is_dir()
    assert not folder.exists()


def test_waiting_is_told_when_another_run_holds_the_lock(tmp_path: Path) -> None:
    store, told = Store(tmp_path), []
    held = FileLock(tmp_path / "locks" / "name.lock")
    held.acquire()
    waiter = threading.Thread(target=lambda: store.lock("name", lambda: told.append(1)).__enter__())
    waiter.start()
    waiter.join(0.5)
    held.release()
    waiter.join()
    assert told == [1]


def test_an_unreadable_record_is_no_record(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put_record("proofs", "key", {"sha256": "0"})
    assert store.record("proofs", "key") == {"sha256": "0"}
    store.path("proofs", "key.json").write_text("{")
    assert store.record("proofs", "key") is None
    assert store.record("proofs", "absent") is None


def test_the_digest_does_not_depend_on_order() -> None:
    assert digest({"a": 1, "b": [2]}) == digest({"b": [2], "a": 1})
    assert digest({"a": 1}) != digest({"a": 2})


def test_an_atomic_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "page.html"
    write_atomic(path, "old")

    def refuse(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(OSError, match="No space"):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]
