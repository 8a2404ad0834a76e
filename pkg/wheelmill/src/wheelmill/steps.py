"""A step, whoever executes it: its pinned inputs, content key, build, label and check."""

from __future__ import annotations

import datetime as dt
import json
import resource
import shutil
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from wheelmill import __version__, audit, backend, cuobjdump, label, repair, sbom
from wheelmill.errors import GateError
from wheelmill.inputs import fitted, runtime_findings
from wheelmill.rules_plan import Expected
from wheelmill.store import digest, file_sha256, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelmill.audit import Report
    from wheelmill.compiler_cache import Cache
    from wheelmill.facts import Facts
    from wheelmill.findings import Finding
    from wheelmill.inputs import Inputs
    from wheelmill.matrix import Matrix
    from wheelmill.model import Step
    from wheelmill.project import Project
    from wheelmill.report import Reporter
    from wheelmill.store import Store

# The engine's own modules that shape a wheel: a change in one is another wheel.
SHAPING = (
    *("backend.py", "container.py", "fetch.py", "label.py", "local.py"),
    *("inputs.py", "project.py", "repair.py", "sandbox.py", "sbom.py", "steps.py", "toolkit.py"),
)


class Executor(Protocol):
    """Where a step is built."""

    def pin(self, step: Step, site: Site, log: Path) -> Inputs:
        """The inputs of a step, down to hashes."""
        ...

    def wheel(self, step: Step, site: Site, inputs: Inputs, clock: Clock, log: Path) -> Path:
        """Build and repair the wheel in `clock.work`, and return it."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """What every build of one run shares."""

    store: Store
    facts: Facts
    matrix: Matrix
    project: Project
    executor: Executor
    reporter: Reporter
    same_major: bool = False
    cache: Cache | None = None


@dataclass(slots=True)
class Clock:
    """Seconds and CPU-seconds of each named part of a build."""

    site: Site
    row: str
    work: Path
    parts: dict[str, dict[str, float]] = field(default_factory=dict)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        self.site.reporter.step(self.row, name)
        began, used = time.monotonic(), _cpu_seconds()
        yield
        self.parts[name] = {
            "seconds": round(time.monotonic() - began, 2),
            "cpu_seconds": round(_cpu_seconds() - used, 2),
        }


def _cpu_seconds() -> float:
    """Of this process and of every one that it has waited for."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def engine() -> list[str]:
    """What this engine is, as far as it shapes a wheel."""
    return [__version__, *(Path(__file__).with_name(name).read_text() for name in SHAPING)]


def _key(step: Step, site: Site, inputs: Inputs) -> str:
    wheel = asdict(step.wheel)
    del wheel["cells"]
    # Headers alone come from one wheel; an importable torch brings every package that it pins.
    torch = inputs.torch if site.project.imports_torch else [step.torch_release, inputs.torch_backend]
    return digest(
        {
            "engine": engine(),
            "releases": site.facts.releases(step.wheel),
            "wheel": wheel,
            "sources": site.project.sha256,
            "toolkit": inputs.toolkit.identity if inputs.toolkit else None,
            "compiler": inputs.compiler.identity,
            "tools": inputs.tools,
            "torch": torch,
            "python": inputs.python,
            "flags": backend.flags(),
        }
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Built:
    """A checked wheel in the store, with the manifest and the audit that are published beside it."""

    path: Path
    manifest: dict[str, Any]
    audit: dict[str, Any]
    warnings: tuple[Finding, ...]
    unchanged: bool


def _record(step: Step, inputs: Inputs, wheel: Path, key: str, clock: Clock) -> dict[str, Any]:
    """What the store keeps of a build: what the wheel is and what it was made of."""
    return {
        "version": 1,
        "wheel": step.wheel.id,
        "file": wheel.name,
        "sha256": file_sha256(wheel),
        "key": key,
        "engine": __version__,
        "built": dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds"),
        "executor": inputs.executor,
        "cuda": step.wheel.cuda,
        "toolkit": {"version": inputs.toolkit.version, "provider": inputs.toolkit.provider} if inputs.toolkit else None,
        "torch": step.torch_release,
        "python": inputs.python,
        "compiler": inputs.compiler.cxx,
        "sources": clock.site.project.sha256,
        "image": inputs.compiler.identity if inputs.executor == "docker" else None,
        "sm": list(step.wheel.sm),
        "parts": clock.parts,
    }


def _make(step: Step, site: Site, inputs: Inputs, key: str, folder: Path, log: Path) -> None:
    clock = Clock(site, step.wheel.id, folder.parent)
    repaired = site.executor.wheel(step, site, inputs, clock, log)
    with clock.part("label"):
        releases = site.facts.releases(step.wheel)
        try:
            labelled = label.relabel(
                repaired,
                step.wheel,
                releases,
                repair.platforms(repaired),
                clock.work,
                log,
                carried=lambda name, version: sbom.members(step, site, inputs, repaired, (name, version), log),
            )
        except BaseException:
            shutil.copy2(repaired, log.parent)  # what was built comes out, beside its log
            raise
    shutil.move(labelled, folder / labelled.name)
    write_json(folder / "build.json", _record(step, inputs, folder / labelled.name, key, clock))


def scratch(step: Step, site: Site, work: Path) -> Path:
    """Build a step from its pinned inputs into `work`, whatever the store has, and return the labelled wheel."""
    log = site.store.log(f"{step.wheel.id}.scratch")
    inputs = site.executor.pin(step, site, log)
    step = fitted(step, site, inputs.toolkit)
    folder = work / "entry"
    folder.mkdir()
    _make(step, site, inputs, _key(step, site, inputs), folder, log)
    (wheel,) = folder.glob("*.whl")
    return wheel


def _sound(folder: Path) -> bool:
    """Whether an entry of the store still holds the wheel that it recorded."""
    try:
        record = json.loads((folder / "build.json").read_text())
        return bool(file_sha256(folder / record["file"]) == record["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _audit(path: Path, step: Step, site: Site, inputs: Inputs, log: Path) -> Report:
    """The audit, under the policy as it is now. Raises GateError for a wheel that fails it."""
    policy = site.matrix.policy
    with site.store.work("audit") as work:
        expected = Expected(facts=site.facts, wheel=step.wheel, policy=policy)
        report = audit.audit(path, expected, tool=cuobjdump.find(), work=work)
    findings = (*report.findings, *runtime_findings(step, site, inputs, report.facts.libraries, log))
    report = replace(report, findings=findings, verdict=audit.verdict(findings, policy.fail_on))
    if report.verdict == "fail":
        failing = [one for one in findings if audit.fails(one, policy.fail_on)]
        raise GateError(
            f"{path.name} fails its audit:\n"
            + "\n".join(f"    {f.rule}{f' in {f.library}' if f.library else ''}: {f.message}" for f in failing),
            remedy="; ".join(dict.fromkeys(finding.remedy for finding in failing)),
        )
    return report


def build(step: Step, site: Site) -> Built:
    """Build a step unless the store has it, and check it either way.

    Raises BuildError, MissingError or, for what the check finds, GateError; the built wheel stays in the store.
    """
    log = site.store.log(step.wheel.id)
    row = step.wheel.id
    site.reporter.step(row, "inputs")
    inputs = site.executor.pin(step, site, log)
    step = fitted(step, site, inputs.toolkit)
    key = _key(step, site, inputs)
    made = []

    def make(folder: Path) -> None:
        made.append(key)
        _make(step, site, inputs, key, folder, log)

    folder = site.store.entry(
        "wheels",
        key,
        make,
        sound=_sound,
        waiting=lambda: site.reporter.step(row, "waiting for another run that builds it"),
    )
    record = json.loads((folder / "build.json").read_text())
    path = folder / record["file"]
    clock = Clock(site, row, folder)
    with clock.part("audit"):
        audited = _audit(path, step, site, inputs, log)
    manifest = {
        **record,
        "parts": {**record["parts"], **clock.parts},
        "environments": list(dict.fromkeys(cell.environment for cell in step.wheel.cells)),
        "libraries": [asdict(library) for library in audited.facts.libraries],
        "findings": [asdict(finding) for finding in audited.findings],
    }
    return Built(
        path=path,
        manifest=manifest,
        audit={"version": 1, **audit.wheel_json(audited)},
        warnings=tuple(one for one in audited.findings if one.severity == "warning" and one.waived is None),
        unchanged=not made,
    )
