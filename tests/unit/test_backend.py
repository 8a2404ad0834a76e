"""What a build is told: targets in CMake's words, and how many compilers at once."""

from pathlib import Path

import pytest

from wheelmill import backend
from wheelmill.backend import cmake_architectures
from wheelmill.errors import BuildError
from wheelmill.proc import ProcessError


def test_targets_in_cmakes_words() -> None:
    assert (
        cmake_architectures(("7.5", "9.0a", "10.0f", "12.0+PTX")) == "75-real;90a-real;100f-real;120-real;120-virtual"
    )
    assert cmake_architectures(()) == ""


KILLED = "g++: fatal error: Killed signal terminated program cc1plus\ncompilation terminated."


@pytest.mark.parametrize(
    ("output", "starved"),
    [
        (KILLED, True),
        ("nvcc error   : 'cicc' died due to signal 9 (Kill signal)", True),
        ("ninja: build stopped\nKilled\n", True),
        ("a.cpp:1:1: error: 'x' was not declared in this scope", False),
        ("note: Killed the old process", False),
    ],
)
def test_a_compiler_killed_for_memory_is_told_from_one_that_failed(output: str, starved: bool) -> None:
    assert backend.starved(output) is starved


def failing(output: str, until: int, seen: list[int]) -> object:
    def run(jobs: int) -> int:
        seen.append(jobs)
        if jobs > until:
            raise ProcessError(["ninja"], 1, output, Path("build.log"))
        return jobs

    return run


def test_a_starved_build_is_tried_once_more_with_half_the_jobs() -> None:
    seen: list[int] = []
    told: list[str] = []
    assert backend.with_memory(failing(KILLED, 4, seen), 8, told.append) == 4
    assert seen == [8, 4]
    assert len(told) == 1


def test_a_build_starved_twice_says_what_it_was() -> None:
    seen: list[int] = []
    with pytest.raises(BuildError, match="lack of memory") as caught:
        backend.with_memory(failing(KILLED, 0, seen), 8, lambda _: None)
    assert seen == [8, 4]
    assert "MAX_JOBS" in caught.value.remedy


def test_a_build_starved_with_one_job_is_not_tried_again() -> None:
    seen: list[int] = []
    with pytest.raises(BuildError, match="lack of memory"):
        backend.with_memory(failing(KILLED, 0, seen), 1, lambda _: None)
    assert seen == [1]


def test_another_failure_is_not_tried_again() -> None:
    seen: list[int] = []
    with pytest.raises(ProcessError):
        backend.with_memory(failing("error: no", 0, seen), 8, lambda _: None)
    assert seen == [8]


@pytest.mark.parametrize(("stated", "fits"), [("3", True), ("0", False), ("many", False), ("", False)])
def test_the_callers_max_jobs_counts_where_it_is_a_number(
    monkeypatch: pytest.MonkeyPatch, stated: str, fits: bool
) -> None:
    monkeypatch.setenv("MAX_JOBS", stated)
    monkeypatch.setattr(backend, "jobs", lambda: 7)
    assert backend.wanted_jobs() == (3 if fits else 7)
