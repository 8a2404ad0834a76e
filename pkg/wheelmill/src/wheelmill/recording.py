"""The record of a wheel in a folder, from its bytes and from what lies beside it. Everything joins by SHA-256."""

from __future__ import annotations

import json
from dataclasses import dataclass
from email.parser import BytesParser
from typing import TYPE_CHECKING, Any, Literal

from packaging.utils import parse_wheel_filename
from pydantic import BaseModel, ValidationError

from wheelmill import entries, index, records, signing
from wheelmill.change import Source
from wheelmill.errors import GateError, InputError

if TYPE_CHECKING:
    from pathlib import Path

    from wheelmill.index import File
    from wheelmill.records import Record

AUDIT, GATES = ".audit.json", ".gates.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Wheel:
    """A folder's wheel: its record, where its bytes lie, whether they were proven, and what beside it was ignored."""

    record: Record
    source: Source
    proven: bool
    notes: tuple[str, ...] = ()


class _Toolkit(BaseModel):
    version: records.Minor


class _Manifest(BaseModel):
    """How a wheel was built; a manifest from elsewhere may not say."""

    wheel: str
    engine: str | None = None
    executor: str | None = None
    built: str | None = None
    cuda: str | None = None
    toolkit: _Toolkit | None = None
    torch: str | None = None
    compiler: str | None = None
    sources: str | None = None
    key: str | None = None
    sm: tuple[str, ...] = ()


class _Audit(records.Audit):
    sha256: str


class _Where(BaseModel):
    card: str | None = None
    torch: str | None = None


class _Median(BaseModel):
    median: float


class _Found(BaseModel):
    card: str | None = None
    sample: str | None = None
    milliseconds: _Median | None = None
    of_reference: float | None = None


class _Row(BaseModel):
    gate: str
    operator: str
    device: str
    result: str
    found: _Found = _Found()
    where: _Where = _Where()


class _Finding(BaseModel):
    severity: str


class _Gates(BaseModel):
    sha256: str
    gates: dict[str, Literal["pass", "fail", "incomplete"]]
    namespace: str | None = None
    samples: str | None = None
    findings: tuple[_Finding, ...] = ()
    operators: tuple[str, ...]
    rows: tuple[_Row, ...]


def read(path: Path) -> Wheel:
    """A wheel under its manifest, with what is known of it.

    Raises InputError for a file that is no wheel or not its manifest's, and for a report beside it that cannot be read.
    """
    return describe(index.measured(index.describe(path, index.manifest_of(path))))


def plain(file: File) -> Record:
    """The record of a file that was read, with nothing of what lies beside it."""
    headers = BytesParser().parsebytes(file.metadata, headersonly=True)
    try:
        return records.Record(
            file=file.path.name,
            sha256=file.sha256,
            size=file.path.stat().st_size,
            project=file.project,
            release=str(parse_wheel_filename(file.path.name)[1]),
            requires_python=file.requires_python,
            requires=tuple(map(str, headers.get_all("Requires-Dist", []))),
            environments=file.environments,
        )
    except ValueError as error:
        raise InputError(f"{file.path.name} cannot be recorded: {error}", remedy=index.REMEDY) from error


def source(file: File) -> Source:
    beside = [file.path.with_name(file.path.name + suffix) for suffix in (entries.PROVENANCE, entries.SIGNATURE)]
    provenance, signature = (one.read_bytes() if one.is_file() else None for one in beside)
    return Source(wheel=file.path, metadata=file.metadata, provenance=provenance, signature=signature)


def _vouched(file: File) -> tuple[str, ...]:
    """Who vouches for a wheel. Raises GateError where a signature beside it is wrong."""
    verdict = signing.verify_file(file.path, sha256=file.sha256)
    if verdict.state == "wrong":
        raise GateError(
            f"{file.path.name}: {verdict.text}",
            remedy="remove the signature, and sign again if these are the bytes that you mean to publish",
        )
    return verdict.by


def describe(file: File) -> Wheel:
    """The wheel of a file that was read; its environments are the record's."""
    notes: list[str] = []
    cover = _beside(file, index.COVER, index.Cover, notes)
    audit = _beside(file, AUDIT, _Audit, notes)
    gates = _beside(file, GATES, _Gates, notes)
    try:
        known = {
            "build": _build(file.path),
            "audit": _audited(file.path) if audit is None else records.Audit.model_validate(audit.model_dump()),
            "cover": cover.cells if cover else None,
            "gates": _gates(gates) if gates else None,
            "vouched": _vouched(file),
        }
    except ValidationError as error:
        raise InputError(f"{file.path.name} cannot be recorded: {error}", remedy=index.REMEDY) from error
    record = plain(file).model_copy(update=known)
    return Wheel(record=record, source=source(file), proven=file.proven, notes=tuple(notes))


def _beside(file: File, suffix: str, form: type[Any], notes: list[str]) -> Any:
    """The report of these bytes beside a wheel; None where there is none, or one of other bytes, which is noted."""
    path = file.path.with_name(file.path.name + suffix)
    try:
        value = json.loads(path.read_bytes())
        if isinstance(value, dict) and value.get("sha256") != file.sha256:
            notes.append(f"{path.name} is of another file of that name, so it is left out of the record")
            return None
        return form.model_validate(value)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path.name} cannot be read: {error}",
            remedy="make the report again (`wheelmill cover`, `wheelmill test`, `wheelmill build`), or remove it",
        ) from error


def _build(path: Path) -> records.Build | None:
    """How it was made, where its manifest says so."""
    try:
        made = _Manifest.model_validate_json(path.with_name(path.name + index.MANIFEST).read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise InputError(f"{path.name}: its manifest cannot be read: {error}", remedy=index.REMEDY) from error
    if made.engine is None or made.executor is None or made.built is None or made.cuda is None:
        return None
    if entries.moment(made.built) is None:
        raise InputError(
            f"{path.name}: its manifest cannot be read: built is {made.built!r}, which is no time with its zone",
            remedy=index.REMEDY,
        )
    return records.Build(**made.model_dump(exclude={"toolkit"}), toolkit=made.toolkit.version if made.toolkit else None)


def _audited(path: Path) -> records.Audit:
    """The audit of a wheel that has no report of one."""
    from wheelmill import audit, cuobjdump, facts
    from wheelmill.rules_plan import Expected

    made = audit.audit(path, Expected(facts=facts.load()), tool=cuobjdump.find())
    return records.Audit.model_validate(audit.wheel_json(made))


def _gates(made: _Gates) -> records.Gates:
    seen = [row for row in made.rows if row.result in {"pass", "fail", "crash", "hang"}]
    times = tuple(
        records.Time(
            operator=row.operator,
            sample=row.found.sample or "sample",
            card=row.found.card,
            milliseconds=row.found.milliseconds.median,
            of_reference=row.found.of_reference,
        )
        for row in seen
        if row.gate == "bench" and row.found.milliseconds and row.found.card
    )
    # What could not be tested has passed nothing, whatever rows are left of an earlier run.
    untested = any(one.severity == "error" for one in made.findings)
    verdicts = {gate: "incomplete" if untested and one == "pass" else one for gate, one in made.gates.items()}
    return records.Gates(
        verdicts=verdicts,
        namespace=made.namespace,
        samples=made.samples,
        operators=made.operators,
        cards=tuple(sorted({row.where.card for row in seen if row.where.card and row.device == "cuda"})),
        torches=tuple(sorted({row.where.torch for row in seen if row.where.torch})),
        times=times,
    )
