"""What a build is told: targets in CMake's words, and how many compilers at once."""

from collections.abc import Callable
from pathlib import Path

import pytest

from wheelmill import backend
from wheelmill.backend import Load, cmake_architectures
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


def failing(output: str, until: int, seen: list[Load]) -> Callable[[Load], int]:
    """A build that fails with that output under more than `until` jobs."""

    def run(load: Load) -> int:
        seen.append(load)
        if load.jobs > until:
            raise ProcessError(["ninja"], 1, output, Path("build.log"))
        return load.jobs

    return run


def test_a_starved_build_is_tried_once_more_with_half_the_jobs() -> None:
    seen: list[Load] = []
    told: list[str] = []
    assert backend.with_memory(failing(KILLED, 4, seen), Load(jobs=8, threads=2), told.append) == 4
    assert seen == [Load(jobs=8, threads=2), Load(jobs=4, threads=2)]
    assert told == [
        "note: a compiler was killed for lack of memory with 8 jobs at once, each nvcc in 2 threads",
    ]


def test_one_starved_compiler_is_tried_once_more_with_half_its_threads() -> None:
    seen: list[Load] = []
    with pytest.raises(BuildError):
        backend.with_memory(failing(KILLED, 0, seen), Load(jobs=1, threads=4), lambda _: None)
    assert seen == [Load(jobs=1, threads=4), Load(jobs=1, threads=2)]


def test_a_build_starved_twice_says_what_it_was() -> None:
    seen: list[Load] = []
    with pytest.raises(BuildError, match="lack of memory") as caught:
        backend.with_memory(failing(KILLED, 0, seen), Load(jobs=8), lambda _: None)
    assert [load.jobs for load in seen] == [8, 4]
    assert "MAX_JOBS" in caught.value.remedy


def test_a_build_starved_with_one_job_is_not_tried_again() -> None:
    seen: list[Load] = []
    with pytest.raises(BuildError, match="lack of memory"):
        backend.with_memory(failing(KILLED, 0, seen), Load(jobs=1), lambda _: None)
    assert seen == [Load(jobs=1)]


def test_another_failure_is_not_tried_again() -> None:
    seen: list[Load] = []
    with pytest.raises(ProcessError):
        backend.with_memory(failing("error: no", 0, seen), Load(jobs=8), lambda _: None)
    assert len(seen) == 1


GIB = 1 << 30


@pytest.mark.parametrize(
    ("sources", "targets", "memory", "cores", "jobs", "threads"),
    [
        (40, 5, 64 * GIB, 16, 16, 1),  # enough sources for every core
        (2, 5, 64 * GIB, 16, 2, 5),  # few sources: their targets side by side
        (4, 5, 64 * GIB, 16, 4, 4),
        (40, 5, 7 * GIB, 16, 3, 1),  # memory for three compilers
        (2, 5, 7 * GIB, 16, 2, 1),
        (40, 5, 1 * GIB, 16, 1, 1),  # too little for one, and one is tried
        (0, 5, 64 * GIB, 16, 16, 1),  # sources that the build itself makes
        (2, 0, 64 * GIB, 16, 2, 1),  # no CUDA
    ],
)
def test_cores_and_memory_decide_the_load(
    monkeypatch: pytest.MonkeyPatch, sources: int, targets: int, memory: int, cores: int, jobs: int, threads: int
) -> None:
    monkeypatch.setattr(backend, "free_memory", lambda: 64 * GIB)
    for name in ("MAX_JOBS", "NVCC_THREADS"):
        monkeypatch.delenv(name, raising=False)
    assert backend.load(sources, targets, memory=memory, cores=cores) == Load(jobs=jobs, threads=threads)


@pytest.mark.parametrize(("stated", "fits"), [("3", True), ("0", False), ("many", False), ("", False)])
def test_the_callers_max_jobs_counts_where_it_is_a_number(
    monkeypatch: pytest.MonkeyPatch, stated: str, *, fits: bool
) -> None:
    monkeypatch.setattr(backend, "free_memory", lambda: 64 * GIB)
    monkeypatch.setenv("MAX_JOBS", stated)
    monkeypatch.setenv("NVCC_THREADS", stated)
    assert backend.load(40, 5, cores=8) == (Load(jobs=3, threads=3) if fits else Load(jobs=8))
