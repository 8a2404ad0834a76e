"""What may not be published, and why: a function of what is here, what is there, and what the matrix demands."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from wheelmill.gates_demand import of_others
from wheelmill.names import listing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from wheelmill.records import Record
    from wheelmill.signing import Verdict

PLAIN = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
# Gates with a command of their own; the others are of operators.
STATIC = frozenset({"audit", "cover", "repro"})
# Letters that PyPI, too, takes for one another when it refuses a new name.
ALIKE = str.maketrans({"0": "o", "1": "l", "i": "l", "-": None})


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """A wheel, or the site, that is not published: the rule, what is so, why it matters, what to do."""

    subject: str
    rule: str
    what: str
    why: str
    remedy: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Published:
    """A wheel that the index at the other end lists. `record` is the SHA-256 of its record there."""

    file: str
    project: str
    release: str
    sha256: str
    record: str
    yanked: str | None = None


def refusals(
    local: Sequence[Record],
    encoded: Mapping[str, str],
    remote: Iterable[Published],
    projects: Iterable[str],
    demanded: Sequence[str],
    verdicts: Mapping[str, Verdict],
    *,
    operators: tuple[str, str | None] | None = None,
    allow_older: bool = False,
) -> tuple[Refusal, ...]:
    """Every refusal, in the order of the wheels. With any, nothing is published.

    `encoded` is the SHA-256 of each local record as it would be published, by file; `remote` what the index lists of
    the projects at hand, `projects` every project's name there; `verdicts` what signatures say, by file; `operators`
    the namespace and the module of samples that the matrix names, of which the dynamic gates must be.
    """
    there = {one.file: one for one in remote}
    alike: dict[str, list[str]] = {}
    for owner in sorted({*projects, *(one.project for one in there.values())}):
        alike.setdefault(_alike(owner), []).append(owner)
    newest = _newest(there.values())
    found: list[Refusal] = []
    for record in sorted(local, key=lambda one: one.file):
        if (named := _misnamed(record)) is not None:
            found.append(named)
            continue
        old = there.get(record.file)
        same = old is not None and old.sha256 == record.sha256
        if old is not None and not same:
            found.append(_overwrite(record, old))
        if old is None:
            found += _confusable(record, alike.get(_alike(record.project), ()))
            if not allow_older:
                found += _downgrade(record, newest.get(record.project))
        # A yank must always come through, and what changes nothing asks for nothing.
        if not (same and (record.yanked is not None or (old and old.record == encoded[record.file]))):
            found += _gates(record, demanded, operators)
        found += _signature(record, verdicts.get(record.file))
    return (*found, *_confusable_here(local))


def missing_gate(record: Record, gate: str, operators: tuple[str, str | None] | None = None) -> str | None:
    """Why a record does not show that gate passed, None where it does."""
    verdict: str | None
    match gate:
        case "audit":
            verdict = record.audit.verdict if record.audit else None
        case "cover":
            return _uncovered(record)
        case _:
            verdict = record.gates.verdicts.get(gate) if record.gates else None
    if verdict is None:
        return "it was never run on these bytes"
    if operators and record.gates and gate not in STATIC:
        why = of_others((record.gates.namespace, record.gates.samples), operators)
        if why is not None:
            return why
    return None if verdict == "pass" else f"its verdict is {verdict}"


def _uncovered(record: Record) -> str | None:
    if record.cover is None:
        return "it was never run on these bytes"
    claimed = [one for one in record.cover if one.unclaimed is None]
    failed = [f"{one.cuda}-torch{one.torch} with Python {one.python}" for one in claimed if one.result == "fail"]
    if failed:
        return f"the wheel fails where it promises to work: {listing(failed, limit=3)}"
    return None if any(one.result == "pass" for one in claimed) else "no environment that it promises was available"


def _gates(record: Record, demanded: Sequence[str], operators: tuple[str, str | None] | None) -> Iterator[Refusal]:
    missing = [(gate, why) for gate in demanded if (why := missing_gate(record, gate, operators)) is not None]
    if missing:
        yield Refusal(
            subject=record.file,
            rule="gates",
            what="it has not passed " + "; ".join(f"{gate} ({why})" for gate, why in missing),
            why="the matrix demands these gates of the very bytes that are published",
            remedy="run "
            + " and ".join(dict.fromkeys(_command(gate) for gate, _ in missing))
            + " on it, then index it "
            "again, or take it out",
        )


def _command(gate: str) -> str:
    return f"`wheelmill {gate}`" if gate in STATIC else "`wheelmill test`"


def _overwrite(record: Record, old: Published) -> Refusal:
    return Refusal(
        subject=record.file,
        rule="overwrite",
        what=f"a file of that name is published with SHA-256 {old.sha256}, and this one has {record.sha256}",
        why="users have the first hash in their lock files, and their installs would fail",
        remedy="give the new wheel a new version or a build number",
    )


def _newest(remote: Iterable[Published]) -> dict[str, Version]:
    """Each project's newest release.

    Yanked ones do not count: after a yank, the fix of an older line is what is wanted.
    """
    found: dict[str, Version] = {}
    for project, release in {(one.project, one.release) for one in remote if one.yanked is None}:
        version = Version(Version(release).public)
        found[project] = max(version, found.get(project, version))
    return found


def _downgrade(record: Record, newest: Version | None) -> Iterator[Refusal]:
    if newest is not None and Version(Version(record.release).public) < newest:
        yield Refusal(
            subject=record.file,
            rule="downgrade",
            what=f"{record.project} {newest} is published, and this is {record.release}",
            why="an older release that comes later is most often an old folder published by mistake",
            remedy="build the release that you mean, or say --allow-older",
        )


def _misnamed(record: Record) -> Refusal | None:
    """A record whose file name, project and release do not agree; nothing else can be said of it."""
    what = None
    try:
        name, version, _, _ = parse_wheel_filename(record.file)
        if (name, version) != (record.project, Version(record.release)):
            what = f"its name says {name} {version}, and its record {record.project} {record.release}"
        elif not PLAIN.fullmatch(name):
            what = f"its project's name, {name!a}, has other letters than a to z and 0 to 9"
    except (InvalidWheelFilename, InvalidVersion) as error:
        what = f"its name or release is none: {error}"
    if what is None:
        return None
    return Refusal(
        subject=record.file,
        rule="name",
        what=what,
        why="installers go by the name, and would show or install something else than the record proves",
        remedy="build the wheel again under its plain name, and index it again",
    )


def _alike(name: str) -> str:
    return canonicalize_name(name).translate(ALIKE)


def _confusable(record: Record, owners: Iterable[str]) -> Iterator[Refusal]:
    """`owners` are the projects whose names look like the record's."""
    for owner in owners:
        if owner != record.project:
            yield _confused(record.file, record.project, f"{owner}, which this index has")


def _confusable_here(local: Sequence[Record]) -> Iterator[Refusal]:
    """Two new names that are alike, where neither is published yet."""
    first: dict[str, str] = {}
    for record in sorted(local, key=lambda one: one.file):
        owner = first.setdefault(_alike(record.project), record.project)
        if owner != record.project:
            yield _confused(record.file, record.project, f"{owner}, which is to be published with it")


def _confused(file: str, project: str, owner: str) -> Refusal:
    return Refusal(
        subject=file,
        rule="confusable",
        what=f"its project {project} is easily taken for {owner}",
        why="who mistypes one gets the other, which is how packages are impersonated",
        remedy="build it under the project's own name",
    )


def _signature(record: Record, verdict: Verdict | None) -> Iterator[Refusal]:
    if verdict is not None and (verdict.state == "wrong" or verdict.trusted is False):
        yield Refusal(
            subject=record.file,
            rule="signature",
            what=verdict.text,
            why="users who check would refuse the wheel, and who does not check would be misled",
            remedy="remove the signature and sign again, if these are the bytes that you mean to publish",
        )
