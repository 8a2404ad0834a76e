"""Publishing an index: what is new or changed here goes there, once nothing is refused, by the writer of every index.

The same writer runs against a folder and a bucket: wheels first, what lies beside them next, pages last, in one lock.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from wheelmill import attest, entries, listing, publish_policy, publish_site, signing, writer, yanks
from wheelmill.change import Source
from wheelmill.errors import GateError, InputError
from wheelmill.publish_policy import Published, Refusal
from wheelmill.store import write_atomic

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from wheelmill.listing import Current
    from wheelmill.publish_site import Local
    from wheelmill.records import Record
    from wheelmill.storage import Storage


class RefusedError(GateError):
    """Nothing was published; `refusals` says why."""

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        lines = [f"    {one.subject}: {one.what};\n        {one.why}; {one.remedy}" for one in refusals]
        super().__init__(
            "nothing is published, because of this:\n" + "\n".join(lines),
            remedy="see to each of these and run the same command again",
        )
        self.refusals = tuple(refusals)


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """`demanded` are the matrix's gates, `operators` its namespace and samples, which they must be of.

    With `exactly`, what the site has not is unlisted, and goes after `grace`. With `variants` the index there gets
    variant metadata; without, it stays with or without it.
    """

    demanded: tuple[str, ...]
    operators: tuple[str, str | None] | None = None
    allow_older: bool = False
    exactly: bool = False
    dry_run: bool = False
    attest: bool = False
    variants: bool = False
    grace: dt.timedelta = writer.GRACE


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What was done, or would be: files new, changed, as they were, and listed no more; those that were signed."""

    new: tuple[str, ...]
    changed: tuple[str, ...]
    unchanged: int
    removed: tuple[str, ...]
    expired: tuple[str, ...] = ()
    signed: tuple[str, ...] = ()
    size: int


@dataclass(frozen=True, kw_only=True, slots=True)
class _Plan:
    """What is here, and of that what is not yet there, or is there with another record."""

    here: list[Local]
    current: Current
    there: dict[str, Published]
    verdicts: Mapping[str, signing.Verdict] = field(default_factory=dict)

    @property
    def records(self) -> dict[str, Record]:
        """Each wheel's record, with who vouches for it."""
        return {
            one.record.file: one.record.model_copy(update={"vouched": self.verdicts[one.record.file].by})
            for one in self.here
        }

    @property
    def fresh(self) -> list[Local]:
        return [one for one in self.here if one.record.file not in self.there]

    @property
    def touched(self) -> list[Local]:
        """Those of which anything would be sent."""
        encoded, there = _encoded(self.records), self.there
        return [
            one
            for one in self.here
            if (old := there.get(one.record.file)) is None or old.record != encoded[one.record.file]
        ]


def publish(
    site: Path,
    storage: Storage,
    asked: Asked,
    *,
    key: Ed25519PrivateKey | None = None,
    begin: Callable[[Outcome], None] = lambda _: None,
) -> Outcome:
    """Publish a site. `begin` hears what is about to be done, before anything is sent.

    Raises RefusedError with every refusal, before anything is sent; what storage and writer raise besides.
    """
    here, damaged = publish_site.read(site)
    if not here and not damaged:
        raise InputError(f"{site} has no wheel in files/", remedy=publish_site.AGAIN)
    try:
        current = listing.read(storage, anew=False)
        there = _there(current, [one.record for one in here])
    except InputError as error:
        raise InputError(
            f"the index that is there already is damaged: {str(error).splitlines()[0]}",
            remedy="put that file back from a good copy of the index, or publish to an empty place",
        ) from error
    plan = _vouched(_Plan(here=here, current=current, there=there))
    damaged += [fault for one in plan.touched if (fault := publish_site.bytes_differ(one)) is not None]
    if damaged:
        raise RefusedError(damaged)
    _refuse(plan, plan.current, plan.there, asked)
    signed: tuple[str, ...] = ()
    if not asked.dry_run and (key is not None or asked.attest):
        signed = _sign(plan, key, attesting=asked.attest)
        plan = _vouched(plan)
        _refuse(plan, plan.current, plan.there, asked)
    outcome = _outcome(plan, asked, signed)
    begin(outcome)
    if asked.dry_run:
        return outcome
    return _write(plan, storage, asked, outcome)


def _there(current: Current, local: Iterable[Record]) -> dict[str, Published]:
    """What the index there lists of the projects at hand, and files that it has and lists no more."""
    found: dict[str, Published] = {}
    records = list(local)
    for project in sorted({one.project for one in records}):
        for entry in current.project(project).values():
            found[entry.file] = Published(
                file=entry.file,
                project=project,
                release=entry.release,
                sha256=entry.sha256,
                record=entry.record,
                yanked=entry.yanked,
            )
    for one in records:
        # A file that left the pages is still in users' lock files.
        if one.file not in found and (old := current.record(one.file)) is not None and old.sha256 != one.sha256:
            found[one.file] = Published(
                file=old.file, project=old.project, release=old.release, sha256=old.sha256, record="", yanked="unlisted"
            )
    return found


def _vouched(plan: _Plan) -> _Plan:
    """The plan with its signatures checked."""
    return replace(plan, verdicts={one.record.file: publish_site.vouched(one) for one in plan.here})


def _refuse(plan: _Plan, current: Current, there: Mapping[str, Published], asked: Asked) -> None:
    # A yank of which only the other end knows changes nothing, and one that was ended there excuses nothing.
    differing = {one.record.file for one in plan.touched} & there.keys()
    records = {
        file: yanks.newest(record, current.record(file)) if file in differing else record
        for file, record in plan.records.items()
    }
    found = publish_policy.refusals(
        list(records.values()),
        _encoded(records),
        there.values(),
        current.known,
        asked.demanded,
        plan.verdicts,
        operators=asked.operators,
        allow_older=asked.allow_older,
    )
    if found:
        raise RefusedError(found)


def _sign(plan: _Plan, key: Ed25519PrivateKey | None, *, attesting: bool) -> tuple[str, ...]:
    """Write a signature or a provenance object beside each new wheel that nobody vouches for."""
    todo = [one for one in plan.fresh if plan.verdicts[one.record.file].state == "unsigned"]
    if attesting and todo:
        for file, content in attest.make([(one.record.file, one.record.sha256) for one in todo]).items():
            write_atomic(next(one for one in todo if one.record.file == file).beside(entries.PROVENANCE), content)
    if key is not None:
        for one in todo:
            write_atomic(one.beside(entries.SIGNATURE), signing.sign(key, one.record.file, one.record.sha256))
    return tuple(one.record.file for one in todo)


def _encoded(records: Mapping[str, Record]) -> dict[str, str]:
    return {file: hashlib.sha256(entries.encoded(record)).hexdigest() for file, record in records.items()}


def _outcome(plan: _Plan, asked: Asked, signed: tuple[str, ...]) -> Outcome:
    encoded, fresh = _encoded(plan.records), {one.record.file for one in plan.fresh}
    changed = tuple(file for file in sorted(encoded) if file not in fresh and plan.there[file].record != encoded[file])
    removed: tuple[str, ...] = ()
    if asked.exactly:
        listed = {file for project in plan.current.known for file in plan.current.project(project)}
        removed = tuple(sorted(listed - encoded.keys()))
    return Outcome(
        new=tuple(sorted(fresh)),
        changed=changed,
        unchanged=len(encoded) - len(fresh) - len(changed),
        removed=removed,
        signed=signed,
        size=sum(one.record.size for one in plan.fresh),
    )


def _write(plan: _Plan, storage: Storage, asked: Asked, planned: Outcome) -> Outcome:
    todo = {*planned.new, *planned.changed}
    sources = {one.record.file: _source(one) for one in plan.here if one.record.file in todo}
    keep = None if not asked.exactly else {*plan.records} - todo

    locked: list[Current] = []

    def check(current: Current) -> None:
        locked.append(current)
        listing.refuse_foreign(current)
        # What another run published since this one looked counts too.
        _refuse(plan, current, _there(current, plan.records.values()), asked)

    def latest(record: Record) -> Record:
        return yanks.newest(record, locked[0].record(record.file))

    # Read by the writer when it has the lock, so that a yank which another run publishes meanwhile is not lost.
    records = (latest(one) for file, one in plan.records.items() if file in todo)
    done = writer.update(
        storage, records, sources, keep=keep, grace=asked.grace, variants=asked.variants or None, check=check
    )
    changed = set(done.changed)
    return Outcome(
        new=planned.new,
        changed=tuple(file for file in planned.changed if file in changed),
        unchanged=len(plan.here) - len(planned.new) - len(changed & {*planned.changed}),
        removed=done.removed,
        expired=done.expired,
        signed=planned.signed,
        size=planned.size,
    )


def _source(one: Local) -> Source:
    beside: dict[str, Any] = {
        name: path.read_bytes()
        for name, path in (
            ("provenance", one.beside(entries.PROVENANCE)),
            ("signature", one.beside(entries.SIGNATURE)),
        )
        if path.exists()
    }
    return Source(wheel=one.wheel, metadata=one.metadata.read_bytes(), **beside)
