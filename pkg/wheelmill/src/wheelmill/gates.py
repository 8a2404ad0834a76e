"""The dynamic gates of a wheel: what is asked, what came of it, and whether it may be published."""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from wheelmill import claims, gates_driver, gates_files, gates_findings, wheelfacts
from wheelmill.errors import InputError, MissingError
from wheelmill.findings import Finding  # noqa: TC001 - from_json validates by it
from wheelmill.store import write_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from wheelmill.claims import Claim
    from wheelmill.store import Store

Gate = Literal["ops", "gradcheck", "robust", "sanitize", "bench", "pytest"]
GATES: tuple[Gate, ...] = get_args(Gate)
Result = Literal["pass", "fail", "crash", "hang", "not-run"]
Verdict = Literal["pass", "fail", "incomplete"]
REPORT = ".gates.json"
BAD = ("fail", "crash", "hang")
# What runs beside the wheel; copied together, for any machine with torch.
SCRIPTS = tuple(
    Path(__file__).with_name(f"gates_{name}.py")
    for name in (
        *("runner", "driver", "process", "gpu", "values", "robust", "robust_cuda", "robust_size", "sanitize", "bench"),
        "pytest",
    )
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """A wheel to test. `targets` is the SASS and PTX of its libraries together, None where it holds none."""

    path: Path
    sha256: str
    claim: Claim
    namespace: str | None
    samples: str | None
    libraries: tuple[str, ...]
    targets: Mapping[str, Sequence[str]] | None
    devices: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """What became of one gate on one operator and device, under one tool of `sanitize`. `pytest` has no operator.

    `missing` tells of one that was not run whether something needed is not here, or it has no meaning. `left_out`
    is what of it was not run; `where` the executor, Python, torch and card.
    """

    unit: str
    gate: Gate
    operator: str
    device: str
    tool: str | None
    result: Result
    reason: str | None
    missing: bool
    seconds: float
    found: dict[str, Any]
    left_out: list[str]
    where: dict[str, str | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """Everything known of these bytes. `operators` are those that the library registers under `namespace`."""

    file: str
    sha256: str
    namespace: str | None
    samples: str | None
    devices: tuple[str, ...]
    operators: tuple[str, ...]
    environment: dict[str, Any]
    rows: tuple[Row, ...]
    findings: tuple[Finding, ...]

    def verdict_of(self, gate: str) -> Verdict:
        """A gate is incomplete while a unit of it has no row, or lacks what it needs."""
        rows = [row for row in self.rows if row.gate == gate]
        if any(row.result in BAD for row in rows):
            return "fail"
        asked = {"gates": [gate], "operators": None, "devices": self.devices}
        units = list(gates_driver.units(asked, dict.fromkeys(self.operators)))
        done = bool(units) and set(units) <= {row.unit for row in rows}
        done = done and not any(row.missing for row in rows if row.unit in units)
        return "pass" if done else "incomplete"

    def is_of_now(self, row: Row) -> bool:
        """Whether a row is of the executor, Python, torch and card that the last run had."""
        return all(self.environment.get(name) == value for name, value in row.where.items())

    @property
    def gates(self) -> dict[str, Verdict]:
        """The verdict of every gate that has a row."""
        return {gate: self.verdict_of(gate) for gate in GATES if any(row.gate == gate for row in self.rows)}

    @property
    def verdict(self) -> Verdict:
        if any(one.severity == "error" for one in self.findings) or "fail" in self.gates.values():
            return "fail"
        return "pass" if self.gates and set(self.gates.values()) == {"pass"} else "incomplete"


def subject(path: Path, *, namespace: str | None, samples: str | None) -> Subject:
    """A wheel and what its bytes say. Raises InputError when it cannot be read as one."""
    claim = claims.read(path)
    with tempfile.TemporaryDirectory(prefix="wheelmill-gates-") as folder:
        known = wheelfacts.read(path, Path(folder))
    sass = sorted({one for library in known.libraries for one in library.sass})
    ptx = sorted({one for library in known.libraries for one in library.ptx})
    on_cpu = claim.cuda == "cpu" or (bool(known.shared) and not sass and not ptx)
    return Subject(
        path=path,
        sha256=known.sha256,
        claim=claim,
        namespace=namespace,
        samples=samples,
        libraries=tuple(Path(library.path).name for library in known.libraries),
        targets={"sass": sass, "ptx": ptx} if sass or ptx else None,
        devices=("cpu",) if on_cpu else ("cpu", "cuda"),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What is asked of a wheel. `timeouts` are seconds a unit, by gate, `unit` for the others."""

    gates: tuple[Gate, ...]
    operators: tuple[str, ...] = ()
    device: Literal["auto", "cpu", "cuda"] = "auto"
    tests: Path | None = None
    suppressions: tuple[dict[str, str | None], ...] = ()
    baseline: dict[str, Any] | None = None
    threshold: float = 0.1
    sanitizer: str | None = None
    timeouts: Mapping[str, float]
    jobs: int = 1


def job(
    one: Subject, asked: Asked, *, paths: Sequence[str], tests: str | None, no_gpu: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The JSON that `gates_runner.py --drive` reads. `paths` hold the installed wheel; without, site-packages does.

    `no_gpu` is why an executor gives it none: kind, reason and remedy, as `gates_gpu.judge` tells them.
    """
    devices = [name for name in one.devices if asked.device in ("auto", "cuda", name)]
    return {
        "version": gates_driver.VERSION,
        "sha256": one.sha256,
        "content": gates_files.content([*SCRIPTS, *([asked.tests] if asked.tests else [])]),
        "modules": list(one.claim.modules),
        "namespace": one.namespace,
        "samples": one.samples,
        "paths": list(paths),
        "libraries": list(one.libraries),
        "targets": None if one.targets is None else dict(one.targets),
        "gates": list(asked.gates),
        "operators": list(asked.operators),
        "devices": devices,
        "wheel_devices": list(one.devices),
        "require_gpu": asked.device == "cuda",
        "no_gpu": None if no_gpu is None else dict(no_gpu),
        "tests": tests,
        "suppressions": list(asked.suppressions),
        "baseline": asked.baseline,
        "threshold": asked.threshold,
        "sanitizer": asked.sanitizer,
        "timeouts": dict(asked.timeouts),
        "jobs": asked.jobs,
    }


def report(one: Subject, asked: Asked, told: dict[str, Any], executor: str, earlier: object = None) -> Report:
    """The report of a run, and of an earlier one of the same bytes what this one did not measure.

    Raises MissingError where there is no torch that imports, or a GPU was asked for and cannot be used, InputError for
    an operator that is not there.
    """
    found = told["probe"]["found"]
    gpu = found.get("gpu") or {}
    if told["probe"]["result"] == "not-run":
        raise MissingError(
            f"the gates cannot run there: {told['probe']['reason']}",
            remedy="name an interpreter with a torch that imports (--python), or leave it out for a clean environment",
        )
    if asked.device == "cuda" and told["probe"]["result"] == "pass" and not gpu["usable"]:
        raise MissingError(f"a GPU was asked for: {gpu['reason']}", remedy=gpu["remedy"])
    unknown = sorted(set(asked.operators) - set(found.get("operators", asked.operators)))
    if unknown:
        raise InputError(
            f"{one.path.name} registers no operator {', '.join(unknown)}",
            remedy=f"name some of {', '.join(found['operators'])}",
        )
    cards = gpu.get("cards") or [{}]
    where = {"executor": executor, "python": found.get("python"), "torch": found.get("torch")}
    where["card"] = cards[0].get("name")
    rows = [Row(**{**row, "where": where}) for row in told["rows"]]
    return Report(
        file=one.path.name,
        sha256=one.sha256,
        namespace=one.namespace,
        samples=one.samples,
        devices=one.devices,
        operators=tuple(found.get("operators", ())),
        environment={**where, "gpu": gpu, "seconds": told["seconds"]},
        rows=_merged(earlier, one, rows),
        findings=(*gates_findings.of_probe(one, told["probe"]), *gates_findings.unused(asked, rows)),
    )


def _merged(earlier: object, one: Subject, rows: Sequence[Row]) -> tuple[Row, ...]:
    """What was measured is not forgotten because something needed for it is missing now."""
    known: dict[str, Row] = {}
    with contextlib.suppress(ValueError):
        before = from_json(earlier)
        if (before.sha256, before.namespace, before.samples) == (one.sha256, one.namespace, one.samples):
            known = {row.unit: row for row in before.rows}
    for row in rows:
        if row.unit not in known or not row.missing:
            known[row.unit] = row
    return tuple(sorted(known.values(), key=lambda row: (GATES.index(row.gate), row.unit)))


def joined(reports: Sequence[Report]) -> Report:
    """One report of what several machines measured of the same bytes, operators and samples; a unit has a row of each.

    Raises ValueError where they are of different ones.
    """
    first = reports[0]
    if len({(one.sha256, one.namespace, one.samples, one.devices) for one in reports}) > 1:
        raise ValueError("they are of different bytes, operators or samples")
    rows = _distinct(row for one in reports for row in one.rows)
    return replace(
        first,
        operators=_distinct(name for one in reports for name in one.operators),
        rows=tuple(sorted(rows, key=lambda row: (GATES.index(row.gate), row.unit))),
        findings=_distinct(finding for one in reports for finding in one.findings),
    )


def _distinct(every: Iterable[Any]) -> tuple[Any, ...]:
    """Without what is there already; rows hold what cannot be hashed."""
    kept: list[Any] = []
    for one in every:
        if one not in kept:
            kept.append(one)
    return tuple(kept)


def to_json(made: Report) -> dict[str, Any]:
    return {
        "version": 1,
        "file": made.file,
        "sha256": made.sha256,
        "namespace": made.namespace,
        "samples": made.samples,
        "verdict": made.verdict,
        "gates": made.gates,
        "devices": list(made.devices),
        "operators": list(made.operators),
        "environment": made.environment,
        "rows": [asdict(row) for row in made.rows],
        "findings": [asdict(finding) for finding in made.findings],
    }


def from_json(value: object) -> Report:
    """A report as `to_json` writes it. Raises ValueError for one that it did not write."""
    from pydantic import TypeAdapter

    if not isinstance(value, dict) or value.get("version") != 1:
        raise ValueError("it is no report of version 1")
    names = {one.name for one in fields(Report)}
    return TypeAdapter(Report).validate_python({name: row for name, row in value.items() if name in names})


def keep(store: Store, made: Report, wheel: Path) -> None:
    """Write a report beside its wheel and into the store, by SHA-256."""
    store.put_record("gates", made.sha256, to_json(made))
    write_json(wheel.with_name(wheel.name + REPORT), to_json(made))
