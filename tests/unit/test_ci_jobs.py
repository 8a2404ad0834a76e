"""Jobs of a plan: within every limit, each wheel once, names that are safe, keys that follow the inputs."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wheelmill import ci_jobs, ci_limits, facts, matrix, plan
from wheelmill.ci_jobs import Known, Options
from wheelmill.errors import InputError
from wheelmill.model import Cell, Plan, Step, Wheel

if TYPE_CHECKING:
    from collections.abc import Callable

    from wheelmill.ci_jobs import Part
    from wheelmill.facts import Facts

ROOT = Path(__file__).parents[2]
INPUTS = Known(engine=("1.0", "code"), sources="s" * 64, lock=None, images={"cu130": "i" * 64})
FORBIDDEN = set('":<>|*?\r\n\\/')


def step(cuda: str, torch: str, python: str, sm: tuple[str, ...] = ("7.5", "9.0+PTX")) -> Step:
    cell = Cell(cuda=cuda, torch=torch, python=python)
    wheel = Wheel(
        id=cell.id,
        cuda=cuda,
        torch=torch,
        torch_abi="release",
        python=python,
        python_abi="version",
        sm=() if cuda == "cpu" else sm,
        local=f"{cuda}.torch{torch}",
        requires=f"torch=={torch}.*",
        cells=(cell,),
    )
    return Step(wheel=wheel, torch_release=f"{torch}.0", toolkit=None if cuda == "cpu" else "13.0", python=python)


def of(steps: list[Step]) -> Plan:
    return Plan(
        cells=tuple(cell for one in steps for cell in one.wheel.cells),
        drops=(),
        wheels=tuple(one.wheel for one in steps),
        steps=tuple(steps),
    )


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Up to 1,600 cells: CUDAs, torches and Pythons, and which of their combinations exist."""
    cudas = draw(
        st.lists(st.sampled_from(["cpu", "cu118", "cu126", "cu128", "cu130", "cu132"]), min_size=1, unique=True)
    )
    torches = draw(st.integers(1, 30))
    pythons = draw(
        st.lists(
            st.sampled_from(["3.10", "3.11", "3.12", "3.13", "3.13t", "3.14", "3.14t", "3.15"]), min_size=1, unique=True
        )
    )
    dropped = draw(st.sets(st.integers(0, 400)))
    words = draw(st.sampled_from([("7.5", "9.0+PTX"), ("8.0",), ("9.0a",), ("10.0f", "12.0+PTX"), ("7.5+PTX",)]))
    every = [
        step(cuda, f"2.{minor}", python, words)
        for cuda in sorted(cudas, key=lambda tag: (tag != "cpu", tag))
        for minor in range(4, 4 + torches)
        for python in pythons
    ]
    return of([one for number, one in enumerate(every) if number == 0 or number not in dropped])


def made(planned: Plan, options: Options, inputs: Known = INPUTS) -> tuple[Part, ...]:
    return ci_jobs.parts(planned, {one.wheel.id: ci_jobs.digest(repr((one, inputs))) for one in planned.steps}, options)


GPUS = st.lists(st.sampled_from(["7.5", "8.0", "9.0", "10.0", "12.0"]), max_size=4, unique=True).map(tuple)


@settings(max_examples=60, deadline=None)
@given(plans(), GPUS, st.integers(1, 256), st.integers(1, 12))
def test_whatever_the_matrix(planned: Plan, gpus: tuple[str, ...], jobs: int, per_job: int) -> None:
    options = Options(gpus=gpus, jobs=max(jobs, len(gpus)), per_job=per_job)
    parts = made(planned, options)
    assert parts == made(planned, options)
    by_id = {one.wheel.id: one.wheel for one in planned.steps}
    assert [wheel for part in parts for job in part.build for wheel in job.wheels] == list(by_id)
    ids = [job.id for part in parts for job in (*part.build, *part.gpu)]
    assert len({name.lower() for name in ids}) == len(ids)
    for name in ids:
        assert 0 < len(name) <= 80
        assert not FORBIDDEN & set(name)
        assert name[0].isalnum()
    for number, part in enumerate(parts, 1):
        assert (part.part, part.parts) == (number, len(parts))
        assert 0 < len(part.build) <= min(options.jobs, 256)
        assert len(part.gpu) <= min(options.jobs, 256)
        told = ci_jobs.outputs(part, "1")
        assert sum(len((name + value).encode("utf-16-le")) for name, value in told.items()) <= 1_000_000
        assert all("\n" not in value for value in told.values())
        assert json.loads(told["build"])["include"] == json.loads(
            json.dumps([dataclasses.asdict(job) for job in part.build])
        )
        assert told["next"] == ("" if number == len(parts) else str(number + 1))
        for job in part.build:
            assert {by_id[wheel].cuda for wheel in job.wheels} == {job.cuda}
            assert len(job.wheels) <= per_job
        for gpu in part.gpu:
            (group,) = [job for job in part.build if job.id == gpu.group]
            assert group.cuda != "cpu"
            assert gpu.wheels
            assert set(gpu.wheels) <= set(group.wheels)
            assert gpu.runner == ("self-hosted", "linux", "gpu", gpu.sm)


@settings(max_examples=30, deadline=None)
@given(plans(), st.data())
def test_keys_follow_the_inputs(known: Facts, planned: Plan, data: st.DataObject) -> None:
    """A group's key changes where an input of one of its wheels does, and nowhere else."""
    kept = of([one for one in planned.steps if one.wheel.torch in known.torch][:300])
    keys = ci_jobs.identities(kept, known, INPUTS)
    assert keys == ci_jobs.identities(kept, known, INPUTS)
    assert len(set(keys.values())) == len(keys)
    one = data.draw(st.sampled_from(kept.steps))
    change = data.draw(st.sampled_from(["sm", "torch", "toolkit", "python", "cells"]))
    wheels = {"sm": {"sm": ("8.9",)}, "cells": {"cells": ()}}.get(change, {})
    fields = {"torch": {"torch_release": "2.99.9"}, "toolkit": {"toolkit": "99.9"}, "python": {"python": "3.99"}}
    other = dataclasses.replace(one, wheel=dataclasses.replace(one.wheel, **wheels), **fields.get(change, {}))
    after = ci_jobs.identities(of([other if two == one else two for two in kept.steps]), known, INPUTS)
    assert [wheel for wheel in keys if keys[wheel] != after[wheel]] == [one.wheel.id]
    options = Options(jobs=5)
    before, changed = (
        {job.wheels: job.key for part in ci_jobs.parts(kept, found, options) for job in part.build}
        for found in (keys, after)
    )
    assert [wheels for wheels in before if before[wheels] != changed[wheels]] == [
        wheels for wheels in before if one.wheel.id in wheels
    ]


@pytest.mark.parametrize("name", ["engine", "sources", "lock"])
def test_what_all_wheels_share_is_in_every_key(known: Facts, name: str) -> None:
    planned = of([step("cpu", "2.9", "3.11"), step("cu130", "2.9", "3.11")])
    other = dataclasses.replace(INPUTS, **{name: "changed"})
    before, after = (ci_jobs.identities(planned, known, inputs) for inputs in (INPUTS, other))
    assert all(before[wheel] != after[wheel] for wheel in before)


def test_an_image_is_in_the_keys_of_its_cuda_alone(known: Facts) -> None:
    planned = of([step("cpu", "2.9", "3.11"), step("cu130", "2.9", "3.11")])
    other = dataclasses.replace(INPUTS, images={"cu130": "changed"})
    before, after = (ci_jobs.identities(planned, known, inputs) for inputs in (INPUTS, other))
    assert [wheel for wheel in before if before[wheel] != after[wheel]] == ["cu130-torch2.9-cp311"]


def many(cuda: str, count: int) -> list[Step]:
    return [step(cuda, f"2.{number}", "3.11") for number in range(count)]


def test_a_wheel_is_a_job_while_they_fit_and_grouped_evenly_beyond() -> None:
    (one,) = made(of(many("cu130", 256)), Options())
    assert {len(job.wheels) for job in one.build} == {1}
    assert one.build[0].id == "cu130-torch2.0-cp311"
    (more,) = made(of(many("cu130", 257)), Options())
    assert len(more.build) == 33
    assert {len(job.wheels) for job in more.build} == {7, 8}


def test_what_does_not_fit_into_one_run_goes_to_the_next() -> None:
    parts = made(of(many("cu130", 2100)), Options())
    assert [len(part.build) for part in parts] == [256, 7]
    assert [part.wheels for part in parts] == [2100, 2100]


def test_gpu_jobs_count_too() -> None:
    (part,) = made(of(many("cu130", 200)), Options(gpus=("9.0", "7.5")))
    assert (len(part.build), len(part.gpu)) == (25, 50)


def test_a_group_stays_when_a_wheel_of_another_cuda_is_added() -> None:
    before, after = (made(of([*many("cu126", 300), *many("cu130", count)]), Options()) for count in (100, 101))
    groups = [{job.id for part in parts for job in part.build if job.cuda == "cu126"} for parts in (before, after)]
    assert groups[0] == groups[1]
    assert len(groups[0]) == 38


def test_one_job_beyond_a_limit_is_an_error() -> None:
    with pytest.raises(InputError, match="beyond what GitHub allows") as caught:
        made(of(many("cu130", 20)), Options(jobs=1, gpus=("9.0", "7.5")))
    assert "--per-job" in caught.value.remedy
    with pytest.raises(InputError, match="1000000 bytes of outputs"):
        made(of(many("cu130", 30_000)), Options(per_job=30_000))


def test_each_plan_of_a_run_names_its_artifacts_otherwise() -> None:
    usual = ci_jobs.set_name(1, ".", "matrix.yaml", ())
    assert usual == "1"
    others = [
        ci_jobs.set_name(*given)
        for given in (
            (2, ".", "matrix.yaml", ()),
            (1, "kernels", "matrix.yaml", ()),
            (1, ".", "other.yaml", ()),
            (1, ".", "matrix.yaml", ("cpu*",)),
        )
    ]
    assert len({usual, *others}) == 5
    for one in (usual, *others):  # a pattern `wheels-SET-*` matches those of the set alone
        assert re.fullmatch(r"\d+(x[0-9a-f]{8})?", one)


def test_a_gpu_job_names_the_artifact_of_its_build_job() -> None:
    (part,) = made(of(many("cu130", 3)), Options(jobs=1, gpus=("9.0",)))
    built = {job.id: job.key for job in part.build}
    assert [(job.group, job.group_key) for job in part.gpu] == list(built.items())


def test_outputs_beyond_the_limit_are_an_error() -> None:
    (part,) = made(of(many("cu130", 20)), Options())
    long = dataclasses.replace(part.build[0], wheels=("x" * 500_000,))
    with pytest.raises(InputError, match="bytes of a job's outputs") as caught:
        ci_jobs.outputs(dataclasses.replace(part, build=(long,)), "1")
    assert "--jobs" in caught.value.remedy


@pytest.mark.parametrize(
    ("words", "capability", "has"),
    [
        (("9.0",), "9.0", True),
        (("8.0",), "8.6", True),  # SASS runs on a later minor of its major
        (("8.6",), "8.0", False),
        (("8.0",), "9.0", False),
        (("8.0+PTX",), "9.0", True),
        (("9.0+PTX",), "8.0", False),
        (("9.0a",), "9.0", True),
        (("9.0a+PTX",), "10.0", False),
        (("10.0f",), "10.3", True),
        ((), "9.0", False),
    ],
)
def test_a_gpu_tests_what_has_code_for_it(words: tuple[str, ...], capability: str, has: bool) -> None:
    assert ci_jobs.has_code(words, capability) is has


def test_a_long_or_odd_name_is_made_safe_and_stays_its_own() -> None:
    assert ci_limits.safe("cu130-stable2.10") == "cu130-stable2.10"
    odd = {ci_limits.safe(text) for text in ("a/b", "a:b", "../a", "x" * 200, "x" * 201, "-a", "")}
    assert len(odd) == 7
    assert all(len(text) <= 80 and not FORBIDDEN & set(text) and text[0] not in ".-" for text in odd)


def test_the_jobs_of_this_repository(golden: Callable[[Path, str], None]) -> None:
    file = ROOT / "matrix.yaml"
    wanted = matrix.load(file)
    known = facts.load(wanted.facts)
    planned = plan.make(wanted, known)
    (part,) = made(planned, Options(gpus=("9.0",)))
    listed = ci_jobs.to_json(part)
    for job in (*listed["build"], *listed["gpu"]):
        assert len(job["key"]) == 16
        job["key"] = "(a digest of the sources too)"
    golden(ROOT / "tests/golden/ci/fusedops.json", json.dumps(listed, indent=1) + "\n")
    assert (part.cells, part.wheels) == (len(planned.cells), len(planned.wheels))
