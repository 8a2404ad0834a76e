"""The lock of a bucket: who gets it, who takes it over, and who learns that it is lost."""

from __future__ import annotations

import threading
import time

import pytest

from wheelmill import lease as module
from wheelmill.errors import MissingError
from wheelmill.lease import Holder, Lease


class Memory:
    """A slot in memory that keeps its conditions, as a server does. `silent` is what it says of the holder's age."""

    def __init__(self) -> None:
        self.holder: tuple[str, str, str, float] | None = None
        self.silent = 0.0
        self.writes = 0
        self.guard = threading.Lock()
        self.fails = False

    def look(self) -> Holder | None:
        if self.holder is None:
            return None
        state, owner, since, seconds = self.holder
        return Holder(state=state, owner=owner, since=since, seconds=seconds, silent=self.silent)

    def write(self, state: str | None, owner: str, since: str, seconds: float) -> str | None:
        with self.guard:
            if self.fails:
                raise OSError("no answer")
            if (self.holder[0] if self.holder else None) != state:
                return None
            self.writes += 1
            self.silent = 0.0
            self.holder = (f"{owner}-{self.writes}", owner, since, seconds)
            return self.holder[0]

    def free(self, state: str) -> None:
        with self.guard:
            if self.holder is not None and self.holder[0] == state:
                self.holder = None


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POLL", 0.02)


def lease(slot: Memory, owner: str, *, seconds: float = 60, wait: float = 0, said: list[str] | None = None) -> Lease:
    return Lease(slot, owner, seconds=seconds, wait=wait, tell=[].append if said is None else said.append)


def test_it_is_free_again_afterwards_also_after_a_failure() -> None:
    slot = Memory()
    one = lease(slot, "a")
    for _ in range(2):
        with one.hold():
            one.check()
        assert slot.holder is None
    with pytest.raises(ZeroDivisionError), one.hold():
        _ = 1 / 0
    assert slot.holder is None


def test_another_run_is_waited_for_and_then_told() -> None:
    slot, said = Memory(), []
    with (
        lease(slot, "a").hold(),
        pytest.raises(MissingError, match="a has been writing this index since") as told,
        lease(slot, "b", wait=0.1, said=said).hold(),
    ):
        pass
    assert "60 s after its last sign of life" in told.value.remedy
    assert len(said) == 1
    assert said[0].startswith("waiting for a, who writes this index since 2")


def test_a_dead_run_is_taken_over_after_its_own_lease() -> None:
    slot, said = Memory(), []
    slot.write(None, "dead", "some day", 30)
    slot.silent = 29
    with pytest.raises(MissingError), lease(slot, "b", seconds=5).hold():
        pass
    slot.silent = 31
    one = lease(slot, "b", said=said)
    with one.hold():
        one.check()
    assert said == ["took over the lock of dead, silent for 31 s"]


def test_who_was_taken_over_writes_no_more_and_frees_nothing() -> None:
    slot = Memory()
    first, second = lease(slot, "a", seconds=0.4), lease(slot, "b")
    with first.hold():
        slot.silent = 1
        with second.hold():
            time.sleep(0.2)  # its beat finds another state
            with pytest.raises(MissingError, match="lost its lock"):
                first.check()
            second.check()
        assert slot.holder is None


def test_who_cannot_renew_stops_before_the_lease_ends() -> None:
    slot = Memory()
    one = lease(slot, "a", seconds=0.5)
    with one.hold():
        slot.fails = True
        one.check()
        time.sleep(0.5 * module.RELY + 0.05)
        with pytest.raises(MissingError, match="lost its lock"):
            one.check()
        slot.fails = False
        time.sleep(0.5 * module.RENEW + 0.1)
        one.check()  # it was nobody else's meanwhile


def test_a_long_run_renews_it() -> None:
    slot = Memory()
    one = lease(slot, "a", seconds=0.2)
    with one.hold():
        time.sleep(0.4)
        one.check()
    assert slot.writes > 4


def test_many_at_once_hold_it_one_by_one() -> None:
    slot, inside, most = Memory(), [], []

    def work(name: str) -> None:
        with lease(slot, name, wait=20).hold():
            inside.append(name)
            most.append(len(inside))
            time.sleep(0.01)
            inside.remove(name)

    threads = [threading.Thread(target=work, args=(str(number),)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 8


def test_a_lock_that_looks_free_and_cannot_be_taken_is_given_up() -> None:
    class Never(Memory):
        def write(self, state: str | None, owner: str, since: str, seconds: float) -> str | None:  # noqa: ARG002
            return None

    with pytest.raises(MissingError, match="could not be taken"), lease(Never(), "a", wait=0.05).hold():
        pass
