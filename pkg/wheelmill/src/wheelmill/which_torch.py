"""Whether a wheel fits an environment's torch and the CUDA that torch brings. Facts → reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from wheelmill import hardware
from wheelmill.reasons import Reason, reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelmill.facts import Facts
    from wheelmill.which_candidate import Candidate
    from wheelmill.which_env import Environment, Torch

ABIS = {True: "C++11", False: "pre-C++11"}
ORIGINS = {"conda": "conda's build", "other": "somebody's own build", "pytorch": "PyTorch's", None: "of unknown origin"}
STACKS = {"cpu": "the CPU", "rocm": "ROCm", "xpu": "Intel GPUs", None: "an unknown CUDA"}
KINDS = {"cpu": "a CPU build", "rocm": "a ROCm build", "xpu": "an Intel GPU build"}


def reasons(env: Environment, candidate: Candidate, known: Facts) -> Iterator[Reason]:
    if not uses_torch(candidate):
        if candidate.abis is None and not candidate.pure:
            yield reason("libraries-unread")
        return
    torch = env.torch
    if torch is None:
        yield reason("torch-unknown")
    elif torch.version is None:
        yield reason("torch-brought" if candidate.pure else "torch-absent")
    else:
        yield from _release(torch, candidate)
        if not candidate.pure:
            yield from _abi(env, torch, candidate, known)
            yield from _cuda(env, torch, candidate, known)


def uses_torch(candidate: Candidate) -> bool:
    """Whether anything says that it works with torch: its requirement, its libraries, or a name that
    speaks of torch or, where nobody looked into it, of a CUDA.
    """
    if candidate.abis is not None and candidate.abis - {"none"}:
        return True
    named = candidate.claim.minor is not None or (candidate.abis is None and candidate.cuda is not None)
    return candidate.claim.torch is not None or named


def _release(torch: Torch, candidate: Candidate) -> Iterator[Reason]:
    tied, spec = candidate.tied, candidate.claim.torch
    if tied is not None and tied != torch.minor and not candidate.pure:
        yield reason("torch-abi", have=tied, yours=torch.version)
    elif spec is not None and not spec.contains(torch.parsed, prereleases=True):
        yield reason("torch-requires", have=spec, yours=torch.version)
    elif candidate.floor is not None and torch.parsed < candidate.floor:
        yield reason("torch-floor", have=candidate.floor, yours=torch.version)


def _abi(env: Environment, torch: Torch, candidate: Candidate, known: Facts) -> Iterator[Reason]:
    tied, spec = candidate.tied, candidate.claim.torch
    if candidate.abis is None and tied is None:
        yield reason("torch-abi-unstated", have=spec or " of any release")
        return
    if candidate.abis is not None and "unstable" not in candidate.abis:
        return
    if tied is None:
        yield reason("torch-untied", have=spec or " of any release")
    if not torch.final:
        what = "a nightly" if torch.parsed.is_devrelease else "a snapshot"
        yield reason("torch-snapshot", yours=torch.version, what=what)
        return
    yield from _cxx11(env, torch, candidate, known)


def cxx11_of(env: Environment, torch: Torch, known: Facts) -> bool | None:
    """The C++11 ABI of a torch, as it says or as PyTorch's own builds of that release have it."""
    row = known.torch.get(torch.minor)
    if torch.cxx11_abi is not None or torch.origin != "pytorch" or row is None or env.machine != "x86_64":
        return torch.cxx11_abi
    return row.cxx11(torch.tag or "") if torch.tag in row.cuda else None


def _cxx11(env: Environment, torch: Torch, candidate: Candidate, known: Facts) -> Iterator[Reason]:
    yours, have = cxx11_of(env, torch, known), candidate.cxx11
    if yours is None and torch.origin in ("conda", "other"):
        yield reason("torch-origin", what=ORIGINS[torch.origin])
        return
    if have is None:
        row = known.torch.get(candidate.tied or "")
        every = {row.cxx11(tag) for tag in row.cuda} if row else {None}
        # A build against a release whose variants all share one ABI has that one.
        have = row.cxx11(candidate.cuda or "") if row and (len(every) == 1 or candidate.cuda in row.cuda) else None
    if have is None:
        yield reason("cxx11-unstated", yours=torch.version)
    elif yours is None:
        yield reason("cxx11-yours", have=ABIS[have], yours=torch.version)
    elif have != yours:
        yield reason("cxx11-abi", have=ABIS[have], yours=torch.version, other=ABIS[yours])
    elif torch.origin in ("conda", "other"):
        yield reason("torch-origin-near", what=ORIGINS[torch.origin])


def _cuda(env: Environment, torch: Torch, candidate: Candidate, known: Facts) -> Iterator[Reason]:
    label, runtime = candidate.cuda, candidate.runtime
    if candidate.other is not None:
        yield from _other(torch, candidate.other)
        return
    if label == "cpu" and runtime is None:
        if torch.tag is None:
            yield reason("cuda-unknown", have="the CPU alone")
        elif torch.tag != "cpu":
            yield reason("cpu-only", yours=said(torch))
        return
    if runtime is None:
        if candidate.together is None:
            yield from _unstated(env, torch, candidate, known)
        return
    yield from _runtime(env, torch, candidate, runtime)


def _runtime(env: Environment, torch: Torch, candidate: Candidate, runtime: int) -> Iterator[Reason]:
    """The CUDA that a wheel needs against the one that torch brings."""
    have = f"CUDA {candidate.minor or runtime}"
    if torch.tag is None:
        yield reason("cuda-unknown", have=have)
    elif torch.major is None:
        yield reason("torch-kind", have=have, yours=KINDS[torch.tag])
    elif torch.major != runtime:
        yield reason("cuda-major", have=f"CUDA {runtime}", yours=said(torch))
    elif candidate.minor is not None and candidate.minor != torch.cuda and env.id not in (candidate.measured or ()):
        newer = Version(candidate.minor) > Version(torch.cuda or "0")
        yield reason("cuda-minor" if newer else "cuda-near", have=candidate.minor if newer else have, yours=said(torch))


def _other(torch: Torch, stack: str) -> Iterator[Reason]:
    """Of a wheel for another stack than CUDA; which of its GPUs it serves is not judged."""
    if torch.tag == stack:
        yield reason("other-unjudged", have=STACKS[stack])
    else:
        yield reason("other-stack", have=STACKS[stack], yours=said(torch))


def said(torch: Torch) -> str:
    """What a torch computes on: `CUDA 12.8`, `ROCm`, `the CPU`."""
    return f"CUDA {torch.cuda}" if torch.major is not None else STACKS[torch.tag]


def lacking(env: Environment, torch: Torch, known: Facts) -> list[str]:
    """The environment's GPUs for which a torch of PyTorch's has no code itself, where its targets are known."""
    row = known.torch.get(torch.minor)
    targets = row.sm.get(torch.tag or "", ()) if row and torch.origin == "pytorch" else ()
    sass = [target.name.replace(".", "") for target in targets]
    ptx = [target.name.replace(".", "") for target in targets if target.ptx]
    gpus = dict.fromkeys(gpu.capability for gpu in env.gpus or () if gpu.capability)
    return [one for one in gpus if targets and not hardware.runs(one, sass) and not hardware.compiles(one, ptx)]


def _unstated(env: Environment, torch: Torch, candidate: Candidate, known: Facts) -> Iterator[Reason]:
    """Of a wheel that states no CUDA: such a wheel that is tied to a torch is for the one that PyPI has."""
    row = known.torch.get(candidate.tied or "") if env.tabled else None
    usual = row.pypi if row else None
    if row is None or usual is None or usual == torch.tag:
        yield reason("cuda-unstated", hint="")
        return
    said_ = said(torch)
    if torch.major is None or usual[2:-1] != str(torch.major):
        yield reason("cuda-unlikely", minor=row.minor, usual=usual, yours=said_)
    else:
        yield reason("cuda-unstated", hint=f"; PyPI's torch {row.minor} is for {usual}, and yours for {said_}")
