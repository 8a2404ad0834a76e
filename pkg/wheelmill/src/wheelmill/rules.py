"""What every rule is given, and the rules in their order."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from wheelmill import rules_cuda, rules_files, rules_plan, rules_platform, rules_python, rules_torch
from wheelmill.findings import SEVERITIES, Finding, found

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from wheelmill.matrix import Waiver
    from wheelmill.rules_plan import Expected
    from wheelmill.wheelfacts import WheelFacts

SHOWN = 50
GROUPS: tuple[Callable[[WheelFacts, Expected], Iterator[Finding]], ...] = (
    rules_files.findings,
    rules_platform.findings,
    rules_python.findings,
    rules_cuda.findings,
    rules_torch.findings,
    rules_plan.findings,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """The findings in the order of their severity, and the positions of the waivers that waived one."""

    findings: tuple[Finding, ...]
    used: frozenset[int]


def _applies(waiver: Waiver, finding: Finding) -> bool:
    return finding.rule == waiver.rule and (
        waiver.library is None or fnmatchcase(finding.library or "", waiver.library)
    )


def _waive(findings: Iterable[Finding], waivers: Sequence[Waiver], used: set[int]) -> Iterator[Finding]:
    for finding in findings:
        waived = None
        for position, waiver in enumerate(waivers):
            if _applies(waiver, finding):
                used.add(position)
                waived = waived or waiver.reason
        yield replace(finding, waived=waived)


def judge(facts: WheelFacts, expected: Expected) -> Judged:
    """Every rule's findings on one wheel, those that the policy waives marked."""
    waivers = expected.policy.waive if expected.policy else ()
    used: set[int] = set()
    every = [finding for group in GROUPS for finding in group(facts, expected)]
    marked = list(_limited(dict.fromkeys(_waive(every, waivers, used))))
    marked.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    return Judged(findings=tuple(marked), used=frozenset(used))


def _limited(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The first findings of each rule, the last of them with the number that is left out."""
    groups: defaultdict[tuple[str, str], list[Finding]] = defaultdict(list)
    for finding in findings:
        groups[finding.rule, finding.severity].append(finding)
    for group in groups.values():
        yield from group[: SHOWN - 1]
        if len(group) == SHOWN:
            yield group[-1]
        elif len(group) > SHOWN:
            last = group[SHOWN - 1]
            yield replace(last, message=f"{last.message} ({len(group) - SHOWN} more findings of this rule)")


def unused(waivers: Sequence[Waiver], used: Iterable[int]) -> Iterator[Finding]:
    """A finding for each waiver that waived nothing in any wheel of a run."""
    applied = set(used)
    for position, waiver in enumerate(waivers):
        if position not in applied:
            where = f" in {waiver.library}" if waiver.library else ""
            yield found("waiver-unused", position=position, waived=f"{waiver.rule}{where}")
