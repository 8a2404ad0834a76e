"""The jobs of a plan: wheels grouped, within what GitHub allows, over as many workflow runs as that takes. No I/O."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from wheelmill import arch, ci_limits, hardware
from wheelmill.errors import InputError
from wheelmill.store import digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from wheelmill.facts import Facts
    from wheelmill.model import Plan, Step

KEY = 16
MOST, OUTPUTS = ci_limits.number("matrix-jobs"), ci_limits.number("job-outputs")
FIXED = 1000  # of the outputs, for their names and what is around the jobs


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """What is known before a build of that which all wheels are made of. `images` is by CUDA tag."""

    engine: Sequence[str]
    sources: str
    lock: str | None
    images: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """At most `jobs` of each matrix, at most `per_job` wheels each. `gpus` are capabilities such as `9.0`."""

    gpus: tuple[str, ...] = ()
    jobs: int = MOST
    per_job: int = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Build:
    """A job that builds wheels of one CUDA. `key` changes when, and only when, something known of its inputs does."""

    id: str
    name: str
    cuda: str
    wheels: tuple[str, ...]
    key: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Gpu:
    """A job that tests those wheels of the build job `group` that have code for a GPU, on a runner that has one.

    `group` and `group_key` are that job's id and key, which name the artifact that holds its wheels.
    """

    id: str
    name: str
    group: str
    group_key: str
    sm: str
    runner: tuple[str, ...]
    wheels: tuple[str, ...]
    key: str


# A build job with the GPU jobs of its wheels: they go into the same workflow run, where its artifact is.
Job = tuple[Build, tuple[Gpu, ...]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """The jobs of one workflow run. `cells` and `wheels` count the whole plan."""

    part: int
    parts: int
    cells: int
    wheels: int
    build: tuple[Build, ...]
    gpu: tuple[Gpu, ...]


def identities(plan: Plan, facts: Facts, known: Known) -> dict[str, str]:
    """By wheel, a digest of all that is known of its inputs. The store's own key still decides what is built."""
    return {step.wheel.id: digest(_inputs(step, facts, known)) for step in plan.steps}


def _inputs(step: Step, facts: Facts, known: Known) -> dict[str, Any]:
    return {
        "engine": list(known.engine),
        "sources": known.sources,
        "lock": known.lock,
        "image": known.images.get(step.wheel.cuda),
        "wheel": asdict(step.wheel),
        "torch": step.torch_release,
        "toolkit": step.toolkit,
        "python": step.python,
        "releases": facts.releases(step.wheel),
    }


def parts(plan: Plan, keys: Mapping[str, str], options: Options) -> tuple[Part, ...]:
    """Every workflow run that the plan takes: each wheel is in exactly one build job of one part.

    A wheel is a job of its own where all fit in one run; else those of a CUDA are grouped evenly. The same plan
    gives the same jobs, and a group's id depends on its wheels alone.
    Raises InputError where one job alone is beyond a limit.
    """
    jobs = [_with_gpus(group, keys, options) for group in _groups(plan, 1)]
    if not _fits(jobs, options):
        jobs = [_with_gpus(group, keys, options) for group in _groups(plan, options.per_job)]
    packed = list(_packed(jobs, options))
    return tuple(
        Part(
            part=number,
            parts=len(packed),
            cells=len(plan.cells),
            wheels=len(plan.wheels),
            build=tuple(build for build, _ in members),
            gpu=tuple(gpu for _, gpus in members for gpu in gpus),
        )
        for number, members in enumerate(packed, 1)
    )


def _groups(plan: Plan, most: int) -> Iterator[list[Step]]:
    """Wheels of one CUDA together, as evenly as it goes, at most that many."""
    for _, found in groupby(plan.steps, key=lambda step: step.wheel.cuda):
        steps = list(found)
        count = -(-len(steps) // most)
        for number in range(count):
            yield steps[len(steps) * number // count : len(steps) * (number + 1) // count]


def _with_gpus(steps: Sequence[Step], keys: Mapping[str, str], options: Options) -> Job:
    build = _build(steps, keys)
    return build, tuple(gpu for one in options.gpus if (gpu := _gpu(build, one, steps, keys)))


def _build(steps: Sequence[Step], keys: Mapping[str, str]) -> Build:
    wheels = tuple(step.wheel.id for step in steps)
    return Build(
        id=group_id(wheels),
        name=ci_limits.safe(wheels[0]) + (f" and {len(wheels) - 1} more" if wheels[1:] else ""),
        cuda=steps[0].wheel.cuda,
        wheels=wheels,
        key=_key(wheels, keys),
    )


def group_id(wheels: Sequence[str]) -> str:
    """A group's id, of its wheels alone: the wheel's own where it is one."""
    cuda = wheels[0].partition("-")[0]
    return ci_limits.safe(f"{cuda}-{len(wheels)}x{digest(wheels)[:12]}" if wheels[1:] else wheels[0])


def _key(wheels: Sequence[str], keys: Mapping[str, str]) -> str:
    return digest([keys[wheel] for wheel in wheels])[:KEY]


def _gpu(build: Build, capability: str, steps: Sequence[Step], keys: Mapping[str, str]) -> Gpu | None:
    wheels = tuple(step.wheel.id for step in steps if has_code(step.wheel.sm, capability))
    if not wheels:
        return None
    sm = f"sm_{capability.replace('.', '')}"
    return Gpu(
        id=ci_limits.safe(f"{build.id}.{sm}"),
        name=f"{build.name} on {sm}",
        group=build.id,
        group_key=build.key,
        sm=sm,
        runner=("self-hosted", "linux", "gpu", sm),
        wheels=wheels,
        key=_key(wheels, keys),
    )


def has_code(words: Sequence[str], capability: str) -> bool:
    """Whether a wheel for those targets has SASS that runs on a GPU, or PTX that its driver can compile."""
    targets = [target for target in map(arch.parse, words) if target is not None]
    named = [(f"{target.order}{target.suffix}", target.ptx) for target in targets]
    return hardware.runs(capability, [name for name, _ in named]) or hardware.compiles(
        capability, [name for name, ptx in named if ptx]
    )


def _fits(jobs: Sequence[Job], options: Options) -> bool:
    most = min(options.jobs, MOST)
    return len(jobs) <= most and sum(len(gpus) for _, gpus in jobs) <= most


def _weight(job: Job) -> int:
    """What a job takes of the outputs, with the comma after each entry."""
    entries = [asdict(job[0]), *(asdict(one) for one in job[1])]
    return sum(ci_limits.utf16(json.dumps(entry) + ", ") for entry in entries)


def _packed(jobs: Sequence[Job], options: Options) -> Iterator[list[Job]]:
    """The jobs in order, a list a workflow run, each as full as its limits allow."""
    most, room = min(options.jobs, MOST), OUTPUTS - FIXED
    members: list[Job] = []
    gpus = size = 0
    for job in jobs:
        more, weight = len(job[1]), _weight(job)
        if more > most or weight > room:
            raise InputError(
                f"the job {job[0].id} with {len(job[0].wheels)} wheels and {more} GPUs is beyond what GitHub allows: "
                f"{most} jobs of a matrix, {OUTPUTS} bytes of outputs",
                remedy="put fewer wheels in a job (--per-job), or name fewer GPUs",
            )
        if members and (len(members) + 1 > most or gpus + more > most or size + weight > room):
            yield members
            members, gpus, size = [], 0, 0
        members.append(job)
        gpus, size = gpus + more, size + weight
    if members:
        yield members


def to_json(part: Part) -> dict[str, Any]:
    return {"version": 1, **asdict(part)}


def set_name(part: int, project: str, matrix: str, select: Sequence[str]) -> str:
    """What names the artifacts of one plan among those of a workflow run, which may be of several matrices.

    The part where everything that a project's `matrix.yaml` names is built; else with a digest of what was asked.
    It holds no `-`, so that a pattern such as `wheels-1-*` matches no other set's.
    """
    usual = (project, matrix, tuple(select)) == (".", "matrix.yaml", ())
    return str(part) if usual else f"{part}x{digest([project, matrix, *select])[:8]}"


def outputs(part: Part, name: str) -> dict[str, str]:
    """The part as outputs of a GitHub job; `name` is its set's. Raises InputError where they are beyond the limit."""
    made = {
        "build": json.dumps({"include": [asdict(one) for one in part.build]}),
        "gpu": json.dumps({"include": [asdict(one) for one in part.gpu]}),
        "builds": str(len(part.build)),
        "gpus": str(len(part.gpu)),
        "part": str(part.part),
        "parts": str(part.parts),
        "next": str(part.part + 1) if part.part < part.parts else "",
        "set": name,
    }
    size = sum(ci_limits.utf16(name + value) for name, value in made.items())
    if size > OUTPUTS:
        raise InputError(
            f"the job matrix takes {size} bytes of a job's outputs, and GitHub allows {OUTPUTS}",
            remedy="put fewer jobs in a workflow run (--jobs), and the rest in further parts (--part)",
        )
    return made
