"""The audit of wheels: facts → findings → verdict, for any wheel and without importing it. Fails closed."""

from __future__ import annotations

import dataclasses
import importlib
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from wheelmill import platforms, rules, rules_platform, wheelfacts
from wheelmill.findings import Finding, found

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wheelmill.elf import Library
    from wheelmill.rules_plan import Expected
    from wheelmill.wheelfacts import WheelFacts

Verdict = Literal["pass", "fail"]
# Of the symbols that a library needs of torch, how many are told, and how much of each name.
SYMBOLS, NAME = 2000, 500


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """A wheel's facts and findings. `used` are the positions of the waivers that waived one of them."""

    facts: WheelFacts
    findings: tuple[Finding, ...]
    used: frozenset[int]
    verdict: Verdict


def verdict(findings: Iterable[Finding], fail_on: str = "error") -> Verdict:
    """The worst finding that nobody waived decides."""
    return "fail" if any(fails(finding, fail_on) for finding in findings) else "pass"


def fails(finding: Finding, fail_on: str = "error") -> bool:
    """Whether a finding alone fails a wheel."""
    return finding.waived is None and finding.severity in {"error", fail_on}


def audit(path: Path, expected: Expected, *, tool: Path | None = None, work: Path | None = None) -> Report:
    """Read one wheel and hold it against every rule. `tool` is a cuobjdump; `work` where temporary folders go.

    Raises OSError when the file itself cannot be read; whatever is wrong inside it is a finding.
    """
    with (
        tempfile.TemporaryDirectory(prefix="wheelmill-audit-", dir=work) as folder,
        ThreadPoolExecutor(max_workers=1) as beside,
    ):
        beside.submit(_import_libraries)
        facts = wheelfacts.read(path, Path(folder), tool=tool)
    judged = rules.judge(facts, expected)
    fail_on = expected.policy.fail_on if expected.policy else "error"
    return Report(facts=facts, findings=judged.findings, used=judged.used, verdict=verdict(judged.findings, fail_on))


def _import_libraries() -> None:
    """Import what rules need while the archive is unpacked, which leaves the interpreter's lock free."""
    for name in ("check_wheel_contents.checker", "auditwheel.policy"):
        importlib.import_module(name)


def with_unused(reports: Sequence[Report], expected: Expected) -> tuple[Report, ...]:
    """The reports of a run, the last one with a finding for each waiver that waived nothing in any of them."""
    if expected.policy is None or not reports:
        return tuple(reports)
    used = {position for report in reports for position in report.used}
    extra = tuple(rules.unused(expected.policy.waive, used))
    last = reports[-1]
    findings = (*last.findings, *extra)
    return (
        *reports[:-1],
        dataclasses.replace(last, findings=findings, verdict=verdict(findings, expected.policy.fail_on)),
    )


def unread(path: Path, error: OSError) -> Finding:
    """The finding for a file that the system does not let anybody read."""
    return found("archive-unreadable", what=f"{path}: {error.strerror or error}")


def library_json(facts: WheelFacts, library: Library) -> dict[str, Any]:
    """One library in the report."""
    use = facts.uses[library.path]
    reading = facts.readings.get(library.path)
    return {
        "sass": list(library.sass),
        "ptx": list(library.ptx),
        "needed": list(library.needed),
        "glibc": platforms.newest(library, "GLIBC"),
        "glibcxx": platforms.newest(library, "GLIBCXX"),
        "cxxabi": platforms.newest(library, "CXXABI"),
        "rpath": list(library.rpath),
        "soname": library.soname,
        "machine": library.machine,
        "torch_abi": use.abi,
        "min_torch": use.floor,
        "cxx11_abi": use.cxx11_abi,
        "torch_symbols": [name[:NAME] for name in sorted({*use.unstable, *use.shims})[:SYMBOLS]],
        "ptx_isa": "{}.{}".format(*library.ptx_isa) if library.ptx_isa else None,
        "cuobjdump": None
        if reading is None
        else {
            "finished": reading.failure is None,
            "failure": reading.failure,
            "sass": list(reading.sass),
            "ptx": list(reading.ptx),
        },
    }


def finding_json(finding: Finding) -> dict[str, Any]:
    content = dataclasses.asdict(finding)
    if finding.waived is None:
        del content["waived"]
    return content


def wheel_json(report: Report) -> dict[str, Any]:
    """One wheel in the report."""
    facts = report.facts
    return {
        "file": facts.file,
        "sha256": facts.sha256,
        "size": facts.size,
        "verdict": report.verdict,
        "version": str(facts.name.version) if facts.name.version else None,
        "metadata_version": str(facts.metadata["Version"]) if facts.metadata and facts.metadata["Version"] else None,
        "requires_torch": list(facts.requires_torch),
        "platform": {
            "claimed": facts.claimed,
            "needs": rules_platform.needs(facts),
            "auditwheel": rules_platform.unassisted(facts),
        },
        "libraries": {library.path: library_json(facts, library) for library in facts.libraries},
        "findings": [finding_json(finding) for finding in report.findings],
    }


def to_json(reports: Iterable[Report]) -> dict[str, Any]:
    return {"version": 1, "wheels": [wheel_json(report) for report in reports]}
