"""Whether a wheel's device code runs under an environment's driver and on its GPUs. Facts → reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelmill import hardware
from wheelmill.names import listing, version_key
from wheelmill.reasons import Reason, reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelmill.facts import Facts
    from wheelmill.records import Library
    from wheelmill.which_candidate import Candidate
    from wheelmill.which_env import Environment, Gpu


def reasons(env: Environment, candidate: Candidate, known: Facts) -> Iterator[Reason]:
    if candidate.pure or not computes(candidate):
        return
    yield from _driver(env, candidate)
    yield from _code(env, candidate, known)


def computes(candidate: Candidate) -> bool:
    """Whether it is for a GPU: it needs CUDA's runtime, or holds code for GPUs."""
    held = any(one.sass or one.ptx for one in (candidate.libraries or {}).values())
    return candidate.runtime is not None or held


def _driver(env: Environment, candidate: Candidate) -> Iterator[Reason]:
    major, driver = candidate.runtime, env.driver
    if major is None:
        return
    if driver is None:
        yield reason("driver-unknown", have=major)
    elif driver.version is None and driver.cuda is None:
        yield reason("driver-absent")
    elif driver.serves is None or version_key(driver.serves)[0] < major:
        version = f" ({driver.version})" if driver.version else ""
        branch = hardware.branch_for(f"{major}.0")
        yields = driver.serves or "an older one"
        yield reason("driver-old", have=major, branch=branch or "a newer one", version=version, yours=yields)


def _code(env: Environment, candidate: Candidate, known: Facts) -> Iterator[Reason]:
    if candidate.together is None:
        if env.gpus != ():
            yield reason("sass-unknown")
        return
    libraries = [one for one in candidate.together.values() if one.sass or one.ptx]
    if any(
        (one.sass or one.ptx) and path not in candidate.together for path, one in (candidate.libraries or {}).items()
    ):
        yield reason("alternatives")
    if env.gpus is None:
        if libraries:
            yield reason("gpu-unknown")
        return
    # A library for one architecture alone is a faster path beside the others, which serve the rest.
    general = [one for one in libraries if any(not target.endswith("a") for target in (*one.sass, *one.ptx))]
    libraries = general or libraries
    for gpu in dict.fromkeys(env.gpus):
        # Of several libraries the worst decides.
        found = [one for library in libraries for one in _one(env, candidate, gpu, library, known)]
        yield from sorted(found, key=lambda one: ("no", "unknown", "note").index(one.kind))[:1]


def _one(env: Environment, candidate: Candidate, gpu: Gpu, library: Library, known: Facts) -> Iterator[Reason]:
    if gpu.capability is None:
        yield reason("capability-unknown", gpu=gpu)
        return
    if hardware.runs(gpu.capability, library.sass):
        return
    if not hardware.compiles(gpu.capability, library.ptx):
        ptx = f"its PTX is for {listing(library.ptx)}" if library.ptx else "no PTX"
        yield reason("no-code", gpu=gpu.capability, sass=listing(library.sass), ptx=ptx)
        return
    isa, serves = _isa(candidate, library, known), env.driver.serves if env.driver else None
    needs = hardware.cuda_of_isa(isa) if isa else None
    words = {"gpu": gpu.capability, "isa": isa or "unknown", "needs": needs or "unknown"}
    if needs is None or serves is None:
        yield reason("ptx-driver-unknown", **words)
    elif version_key(serves) < version_key(needs):
        yield reason("ptx-new", **words, yours=serves)
    else:
        yield reason("ptx", gpu=gpu.capability)


def _isa(candidate: Candidate, library: Library, known: Facts) -> str | None:
    """The PTX ISA of a library, as read, else as the toolkit that built it writes it."""
    if library.ptx_isa is not None:
        return library.ptx_isa
    row = known.cuda.get(candidate.cuda or "")
    return "{}.{}".format(*row.ptx) if row and row.ptx else None


def native(env: Environment, candidate: Candidate) -> int:
    """How many of the environment's GPUs have code of their own in every library that computes."""
    libraries = [one for one in (candidate.together or {}).values() if one.sass or one.ptx]
    known = [gpu.capability for gpu in env.gpus or () if gpu.capability]
    return sum(bool(libraries) and all(hardware.runs(one, library.sass) for library in libraries) for one in known)
