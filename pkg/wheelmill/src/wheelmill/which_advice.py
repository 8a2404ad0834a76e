"""What would help where nothing fits: the same decision, for environments that differ in one thing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelmill import hardware, which, which_fit, which_torch
from wheelmill.names import cuda_key, version_key
from wheelmill.which_env import Driver, Environment, Python, Torch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from wheelmill.facts import Facts
    from wheelmill.which import Answer, Judged
    from wheelmill.which_candidate import Candidate

# Reasons that another torch, driver or Python may lift; every other one keeps a wheel out whatever is changed.
TORCH = frozenset(
    {"torch-absent", "torch-unknown", "torch-abi", "torch-requires", "torch-floor", "torch-snapshot", "torch-origin"}
    | {
        "cxx11-abi",
        "cuda-unknown",
        "cuda-unlikely",
        "cpu-only",
        "torch-kind",
        "other-stack",
        "cuda-major",
        "cuda-minor",
    }
    | {"failed-there"}
)
DRIVER = frozenset({"driver-old", "ptx-new"})
PYTHON = frozenset({"python-tag", "python-requires", "python-unknown"})
LIFTABLE = TORCH | DRIVER
LOOKED = 60
NEWEST_DRIVER = "99.0"


@dataclass(frozen=True, kw_only=True, slots=True)
class Advice:
    """One thing to change, in words, the command for it where there is one, and the wheel that would fit then.

    `sure` says that nothing which decides is unknown of that wheel.
    """

    change: str
    command: str | None
    file: str | None
    sure: bool = True


def advise(answer: Answer, known: Facts) -> tuple[Advice, ...]:
    """What would help, the smallest change first. Empty where there is a choice."""
    if answer.choice is not None:
        return ()
    found = [one for one in (_driver(answer, known), _torch(answer, known), _python(answer, known)) if one]
    if not found:
        found = [one for one in (_both(answer, known),) if one]
    return (*found, *_build(answer.environment, known))


def liftable(judged: Iterable[Judged], rules: frozenset[str]) -> list[Candidate]:
    """Candidates that nothing but those rules keeps out, the nearest first."""
    every = [one.candidate for one in judged if one.against and {reason.rule for reason in one.against} <= rules]
    return every[:LOOKED]


def _fitting(env: Environment, candidates: Sequence[Candidate], known: Facts, answer: Answer) -> Judged | None:
    # A name that says nothing of torch, in a wheel that nobody read, fits any environment.
    told = [one for one in candidates if one.metadata or one.record is not None or one.tied is not None]
    return which.decide(env, told, known, answer.wanted).choice if told else None


def _driver(answer: Answer, known: Facts) -> Advice | None:
    env = answer.environment
    better = env.model_copy(update={"driver": Driver(version=None, cuda=NEWEST_DRIVER)})
    found = _fitting(better, liftable(answer.judged, DRIVER), known, answer)
    if found is None:
        return None
    cuda = _needed(found, env, known, answer)
    branch = hardware.branch_for(cuda)
    change = f"a driver that serves CUDA {cuda}" + (f" ({branch} or newer)" if branch else "")
    return Advice(change=change, command=None, file=found.candidate.file, sure=not found.of("unknown"))


def _needed(found: Judged, env: Environment, known: Facts, answer: Answer) -> str:
    """The oldest CUDA that a driver must serve for the wheel to fit."""
    table = hardware.table()
    steps = sorted({*table.drivers.values(), *table.isa.values()}, key=version_key)
    for cuda in steps:
        with_it = env.model_copy(update={"driver": Driver(version=None, cuda=cuda)})
        if which.judge(with_it, found.candidate, known, answer.wanted).accepted:
            return cuda
    return NEWEST_DRIVER


def _torches(env: Environment, known: Facts) -> Iterator[Torch]:
    """Every torch of PyTorch's that this Python can have, the nearest to the one that is there first."""
    now = env.torch
    minors = list(known.torch)
    here = minors.index(now.minor) if now and now.version and now.minor in known.torch else len(minors)
    tag = now.tag if now and now.version else None
    rows = []
    for place, row in enumerate(known.torch.values()):
        if env.python is not None and which_fit.cell_python(env.python) not in row.python:
            continue
        for variant in row.cuda:
            same = 0 if variant == tag else 1 if tag and tag.startswith("cu") and variant[:4] == tag[:4] else 2
            # Without a torch to be near to, the newest that PyPI has.
            usual = 0 if variant == row.pypi else 1
            far = (abs(place - here), same, usual) if tag else (-place, usual, same)
            # A build for the processor alone helps nobody who has a GPU or asks for one.
            mild = (variant == "cpu") != (tag == "cpu" and not env.gpus)
            rows.append(((mild, *far, -cuda_key(variant)), variant, row.release))
    for _, variant, release in sorted(rows):
        plain = release.split("+", maxsplit=1)[0]
        cuda = "cpu" if variant == "cpu" else f"{variant[2:-1]}.{variant[-1]}"
        yield Torch(version=f"{plain}+{variant}", cuda=cuda, origin="pytorch")


def _torch(answer: Answer, known: Facts) -> Advice | None:
    env = answer.environment
    candidates = liftable(answer.judged, LIFTABLE)
    if not env.tabled or not candidates:
        return None
    claimed = None
    for torch in _torches(env, known):
        if _outdriven(env, torch) or which_torch.lacking(env, torch, known):
            continue
        found = _fitting(env.model_copy(update={"torch": torch}), candidates, known, answer)
        if found is None:
            continue
        advice = Advice(
            change=f"torch {torch.version}",
            command=_install(torch, env.torch, known),
            file=found.candidate.file,
            sure=not found.of("unknown"),
        )
        # Where a wheel was measured is better than the nearest torch that it claims.
        if any(one.rule == "measured" for one in found.reasons):
            return advice
        claimed = claimed or advice
    return claimed


def _outdriven(env: Environment, torch: Torch) -> bool:
    """Whether the driver that is there is too old for a torch itself."""
    serves = env.driver.serves if env.driver else None
    return torch.major is not None and serves is not None and version_key(serves)[0] < torch.major


def _install(torch: Torch, now: Torch | None, known: Facts) -> str:
    version, variant = (torch.version or "").split("+", maxsplit=1)
    same = now is not None and now.version is not None and now.parsed.public == version
    if known.torch_index(torch.minor, variant) is None and not same:
        return f"pip install torch=={version}"
    # `==2.8.0` is satisfied by any variant of 2.8.0 that is there, and pip would leave it.
    return f"pip install torch=={torch.version} --index-url {known.index.format(cuda=variant)}"


def _python(answer: Answer, known: Facts) -> Advice | None:
    env = answer.environment
    candidates = liftable(answer.judged, PYTHON)
    now = env.python
    if not candidates:
        return None
    same = which_fit.cell_python(now) if now else None
    minors = [minor for minor in known.pythons if not minor.endswith("t") and minor != same]
    here = version_key(now.minor)[1] if now else version_key(minors[-1])[1]
    for minor in sorted(minors, key=lambda one: abs(version_key(one)[1] - here)):
        there = env.model_copy(update={"python": Python(version=minor, abi=f"cp{minor.replace('.', '')}")})
        found = _fitting(there, candidates, known, answer)
        if found is not None:
            return Advice(
                change=f"Python {minor}", command=None, file=found.candidate.file, sure=not found.of("unknown")
            )
    return None


def _both(answer: Answer, known: Facts) -> Advice | None:
    """A torch and a driver changed together."""
    env = answer.environment
    candidates = liftable(answer.judged, LIFTABLE)
    if not env.tabled or not candidates:
        return None
    driven = env.model_copy(update={"driver": Driver(version=None, cuda=NEWEST_DRIVER)})
    for torch in _torches(env, known):
        there = driven.model_copy(update={"torch": torch})
        found = _fitting(there, candidates, known, answer)
        if found is not None:
            cuda = _needed(found, there, known, answer)
            change = f"torch {torch.version} and a driver that serves CUDA {cuda}"
            return Advice(
                change=change,
                command=_install(torch, env.torch, known),
                file=found.candidate.file,
                sure=not found.of("unknown"),
            )
    return None


def _build(env: Environment, known: Facts) -> Iterator[Advice]:
    """A build of one's own, where there is a cell for it."""
    torch, here = env.torch, env.id
    if torch is None or here is None or not env.tabled:
        return
    row = known.torch.get(torch.minor)
    if row is not None and torch.tag in row.cuda and torch.final and torch.origin != "conda":
        change = f"a wheel of your own for {here}, from the project's sources with a matrix.yaml that names it"
        yield Advice(change=change, command=f"wheelmill build {here}", file=None)
