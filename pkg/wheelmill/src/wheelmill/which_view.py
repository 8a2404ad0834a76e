"""An answer as text and as JSON. Names of an index are a stranger's: control characters are shown as such."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from wheelmill import reasons, web, which_command, which_fit, which_torch
from wheelmill.findings import printable
from wheelmill.names import listing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wheelmill.facts import Facts
    from wheelmill.reasons import Reason
    from wheelmill.which import Answer, Judged
    from wheelmill.which_advice import Advice
    from wheelmill.which_env import Environment
    from wheelmill.which_index import Source

GROUPS, NAMES, SKIPPED = 12, 3, 5


def to_json(
    answer: Answer, source: Source, known: Facts, advice: Sequence[Advice], verified: str | None = None
) -> dict[str, Any]:
    choice = answer.choice
    return {
        "version": 1,
        "project": answer.wanted.project,
        "environment": {**answer.environment.model_dump(mode="json"), "id": answer.environment.id},
        "index": {
            "kind": source.kind,
            "url": web.shown(source.url),
            "site": web.shown(source.site) if source.site else None,
        },
        "choice": choice.candidate.file if choice else None,
        "sha256": choice.candidate.link.sha256 if choice else None,
        "measured": bool(choice and answer.environment.measured_id in (choice.candidate.measured or ())),
        "verified": verified,
        "command": which_command.pip(answer, source),
        "uv": which_command.uv(answer, source),
        "requirements": which_command.requirements(answer, source),
        "candidates": [
            {"file": one.candidate.file, "accepted": one.accepted, "reasons": [_told(reason) for reason in one.reasons]}
            for one in answer.judged
        ],
        "skipped": list(source.listing.skipped),
        "sdists": list(source.listing.sdists),
        "remarks": list(remarks(answer.environment, known)),
        "advice": [
            {"change": one.change, "command": one.command, "file": one.file, "sure": one.sure} for one in advice
        ],
    }


def _told(reason: Reason) -> dict[str, str]:
    return {"rule": reason.rule, "kind": reason.kind, "message": reason.message}


def environment(env: Environment) -> Iterator[str]:
    """The environment, a line a fact; what is not known says so."""
    yield f"Python   {which_fit.named(env.python) if env.python else 'unknown'}"
    libc = f", {env.libc.kind} {env.libc.version or 'of unknown version'}" if env.libc else ""
    system = f"{which_fit.SYSTEMS[env.system]} {env.machine or ''}".strip() if env.system else "unknown"
    yield f"system   {system}{libc}{' (WSL)' if env.wsl else ''}"
    torch = env.torch
    if torch is None or torch.version is None:
        yield f"torch    {'unknown' if torch is None else 'none'}"
    else:
        abi = "" if torch.cxx11_abi is None else f", {which_torch.ABIS[torch.cxx11_abi]} ABI"
        origin = f", {which_torch.ORIGINS[torch.origin]}" if torch.origin in ("conda", "other") else ""
        yield f"torch    {torch.version}, for {which_torch.said(torch)}{abi}{origin}"
    driver = env.driver
    if driver is None or (driver.version is None and driver.cuda is None):
        yield f"driver   {'unknown' if driver is None else 'none'}"
    else:
        yield f"driver   {driver.version or 'of unknown version'}, serves CUDA {driver.serves or 'unknown'}"
    yield f"GPUs     {'unknown' if env.gpus is None else listing(map(str, env.gpus), limit=8)}"
    for note in env.notes:
        yield f"note     {note}"


def remarks(env: Environment, known: Facts) -> Iterator[str]:
    """What is odd about an environment, whatever the wheel."""
    torch, serves = env.torch, env.driver.serves if env.driver else None
    if torch is None or torch.version is None:
        return
    if torch.tag == "cpu" and env.gpus:
        yield "your torch is a CPU build, so the GPU is not used: a torch for CUDA would use it"
    if torch.major is not None and serves is not None and int(serves.partition(".")[0]) < torch.major:
        yield f"your torch itself, for CUDA {torch.cuda}, needs a newer driver than one that serves CUDA {serves}"
    lacking = which_torch.lacking(env, torch, known)
    if lacking:
        yield f"your torch {torch.version} has no code for {listing(lacking)} itself, whatever the wheel"


def text(
    answer: Answer, source: Source, known: Facts, advice: Sequence[Advice], *, every: bool, verified: str | None
) -> Iterator[str]:
    """The answer, a line at a time."""
    for line in (*environment(answer.environment), ""):
        yield printable(line)
    for remark in remarks(answer.environment, known):
        yield printable(f"note: {remark}")
    if answer.choice is None:
        yield from _none(answer, advice)
    else:
        yield from _choice(answer, source, answer.choice, verified)
    others = answer.judged[1:] if answer.choice else answer.judged
    if others:
        yield ""
        yield f"Why not the other{'s' if len(others) > 1 else ''} ({len(others)}):" if answer.choice else "Why not:"
        yield from _each(answer, others) if every else _grouped(answer, others)
    skipped = source.listing.skipped
    if skipped:
        yield f"{len(skipped)} left out, not to be read as a wheel: {printable(listing(skipped, limit=SKIPPED))}"


def _choice(answer: Answer, source: Source, choice: Judged, verified: str | None) -> Iterator[str]:
    yield printable(choice.candidate.file)
    for reason in choice.reasons:
        yield f"  {'not known: ' if reason.kind == 'unknown' else ''}{reason.message}"
    if verified is not None:
        yield f"  {printable(verified)}"
    yield ""
    yield f"  {which_command.pip(answer, source)}"
    yield f"  {which_command.uv(answer, source)}"


def _none(answer: Answer, advice: Sequence[Advice]) -> Iterator[str]:
    nearest = answer.judged[0] if answer.judged else None
    yield f"No wheel of {answer.wanted.project} fits here."
    if nearest is not None:
        yield printable(f"The nearest is {nearest.candidate.file}:")
        yield from (f"  {reason.message}" for reason in nearest.reasons if reason.kind != "note")
    if advice:
        yield "What would help:"
    for one in advice:
        would = f": {one.file} would fit" if one.file else ""
        yield printable(f"  {one.change}{would}{'' if one.sure else ', as far as is known'}")
        if one.command:
            yield f"    {one.command}"


def _each(answer: Answer, judged: Sequence[Judged]) -> Iterator[str]:
    for one in judged:
        yield printable(f"  {one.candidate.file}")
        for line in why(answer, one):
            yield f"    {line}"


def why(answer: Answer, one: Judged) -> list[str]:
    if one.accepted:
        older = answer.choice is not None and one.candidate.version.public != answer.choice.candidate.version.public
        return ["fits too, and is an older release" if older else "fits too, and ranks below the choice"]
    return [reason.message for reason in one.against or one.of("unknown")]


def _grouped(answer: Answer, judged: Sequence[Judged]) -> Iterator[str]:
    """A line for each reason that keeps wheels out, the nearest first; other Pythons and systems last."""
    groups: defaultdict[tuple[int, str], list[str]] = defaultdict(list)
    for one in judged:
        worst = max(one.against, key=lambda reason: reason.weight, default=None)
        label = reasons.rows()[worst.rule].group if worst else ""
        groups[worst.weight if worst and label else 0, label or why(answer, one)[0]].append(one.candidate.file)
    rows = sorted(groups.items(), key=lambda row: row[0][0])
    for (_, message), files in rows[:GROUPS]:
        yield f"  {message}: {len(files)}"
        yield printable(f"    {listing(files, limit=NAMES)}")
    if len(rows) > GROUPS:
        left = sum(len(files) for _, files in rows[GROUPS:])
        yield f"  for {len(rows) - GROUPS} more reasons: {left}"
    yield "  --all shows each"
