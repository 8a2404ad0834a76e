"""Findings as SARIF 2.1.0, which code scanning shows: https://docs.oasis-open.org/sarif/sarif/v2.1.0/"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from wheelmill import __version__
from wheelmill.findings import rules
from wheelmill.store import write_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from wheelmill.audit import Report
    from wheelmill.findings import Finding, Rule

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {"text": rule.remedy},
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
    }


def _result(finding: Finding, report: Report, path: Path, positions: dict[str, int]) -> dict[str, Any]:
    location: dict[str, Any] = {
        # A wheel is no text, and viewers want a line all the same.
        "physicalLocation": {"artifactLocation": {"uri": quote(path.as_posix())}, "region": {"startLine": 1}}
    }
    if finding.library is not None:
        name = f"{report.facts.file}!{finding.library}"
        location["logicalLocations"] = [{"fullyQualifiedName": name, "kind": "module"}]
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": positions[finding.rule],
        "level": LEVELS[finding.severity],
        "message": {"text": f"{f'{finding.library}: ' if finding.library else ''}{finding.message}. {finding.remedy}."},
        "locations": [location],
        # The same fault in the next version of the wheel is the same alert.
        "partialFingerprints": {"wheelmill/v1": f"{report.facts.name.project}:{finding.rule}:{finding.library or ''}"},
    }
    if finding.waived is not None:
        result["suppressions"] = [{"kind": "external", "justification": finding.waived}]
    return result


def content(reports: Sequence[Report], paths: Iterable[Path]) -> dict[str, Any]:
    """The log of one run over `reports`, whose files lie at `paths`."""
    positions = {name: position for position, name in enumerate(rules())}
    results = [
        _result(finding, report, path, positions)
        for report, path in zip(reports, paths, strict=True)
        for finding in report.findings
    ]
    driver = {"name": "wheelmill", "version": __version__, "rules": [_rule(rule) for rule in rules().values()]}
    run = {"tool": {"driver": driver}, "results": results, "columnKind": "utf16CodeUnits"}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def write(file: Path, reports: Sequence[Report], paths: Iterable[Path]) -> None:
    """Write the log, whole or not at all."""
    write_json(file, content(reports, paths))
