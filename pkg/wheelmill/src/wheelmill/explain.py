"""From a log to causes: each rule's pattern where its words stand, held against what else the log says."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

from wheelmill import explain_log
from wheelmill.explain_mask import Masking
from wheelmill.explain_past import got_over
from wheelmill.explain_rules import CONFIDENCE, fill, rules
from wheelmill.explain_text import is_cut
from wheelmill.explain_words import FUNCTIONS

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from wheelmill.explain_log import Line, Log
    from wheelmill.explain_rules import Confidence, Rule

WRAPPED = 5  # lines that one message is wrapped over, at most
NEAR = 60  # lines
SMALL = 512 << 10  # characters of a log in which a word that is itself broken is looked for
EVIDENCE, SHOWN, WIDEST = 6, 5, 400


@dataclass(frozen=True, slots=True)
class Evidence:
    line: int
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Cause:
    """What a rule found. `evidence` is in the order of the log; the words are masked."""

    rule: str
    cause: str
    evidence: tuple[Evidence, ...]
    remedy: str
    not_: str
    confidence: Confidence
    rank: int


@dataclass(slots=True)
class _Hit:
    """Lines that a pattern matched, by their index, and the groups."""

    lines: list[int]
    groups: dict[str, str] = field(default_factory=dict)


def explain(file: IO[bytes]) -> list[Cause]:
    """The causes that a log shows, the best first; none where no rule knows it."""
    return causes(explain_log.read(file))


def ending(text: str) -> tuple[str, str]:
    """(what ends an error's message, what begins its remedy), for the output that it is about.

    Both are empty where no cause is known, or where looking for it fails: that hides no error from a user.
    """
    try:
        found = explain(io.BytesIO(text.encode(errors="replace")))
    except Exception:  # noqa: BLE001
        found = []
    if not found:
        return "", ""
    return f"\n  the cause, {found[0].confidence}: {found[0].cause}", f"{found[0].remedy}; "


def causes(log: Log) -> list[Cause]:
    mask = Masking()
    found = [one for rule in rules().values() for one in _judge(rule, log, mask)]
    over = {name for cause in found for name in rules()[cause.rule].over}
    found = [cause for cause in found if cause.rule not in over]
    found.sort(key=lambda one: (-one.rank, CONFIDENCE.index(one.confidence), one.evidence[0].line))
    return found[:SHOWN]


def _judge(rule: Rule, log: Log, mask: Masking) -> Iterator[Cause]:
    for hit in _hits(rule, log):
        made = _held(rule, log, hit)
        if made is not None and hit.lines[0] > log.overcome and not got_over(log.lines, hit.lines[-1]):
            lowered, quoted, groups = made
            level = min(CONFIDENCE.index(rule.confidence) + lowered, len(CONFIDENCE) - 1)
            remedy = fill(rule.remedy, groups) + (f". {fill(rule.ask, groups)}" if lowered and rule.ask else "")
            yield Cause(
                rule=rule.id,
                cause=mask(fill(rule.cause, groups)),
                evidence=tuple(_quote(log, index, mask) for index in quoted),
                remedy=mask(remedy),
                not_=mask(fill(rule.not_, groups)),
                confidence=CONFIDENCE[level],
                rank=rule.rank,
            )
            return


def _quote(log: Log, index: int, mask: Masking) -> Evidence:
    line = log.lines[index]
    text = mask(line.text.strip())
    return Evidence(line.number, text if len(text) <= WIDEST else text[: WIDEST - 1] + "…")


def _held(rule: Rule, log: Log, hit: _Hit) -> tuple[bool, list[int], dict[str, str]] | None:
    """(whether proof is lacking, the lines to quote, the groups) of a hit that what else is there does not refute."""
    groups, quoted = dict(hit.groups), list(hit.lines)
    close = range(max(hit.lines[0] - NEAR, 0), min(hit.lines[-1] + NEAR, len(log.lines)))
    for patterns, where in ((rule.also, None), (rule.near, close)):
        for pattern in patterns:
            other = _anywhere(pattern, log, where)
            if other is None:
                return None
            groups = {**other.groups, **groups}
            quoted += [index for index in other.lines if not log.quotes(index)]
    if any(map(log.says, rule.unless)) or _says(rule.unless_near, log.lines[close.start : close.stop]):
        return None
    proven = [one for one in (_anywhere(pattern, log, None) for pattern in rule.proof) if one is not None]
    hints = [one for one in (_anywhere(pattern, log, None) for pattern in rule.hint) if one is not None]
    for one in (*proven, *hints):
        groups = {**one.groups, **groups}
        quoted += one.lines
    for name, (function, *given) in rule.derive.items():
        words = [groups.get(word, "") for word in given]
        groups[name] = FUNCTIONS[function](*words) if all(words) or function == "join" else ""
    if not all(form.fullmatch(groups.get(name, "")) for name, form in rule.where.items()):
        return None
    return bool(rule.proof) and not proven, sorted(dict.fromkeys(quoted))[:EVIDENCE], groups


def _hits(rule: Rule, log: Log) -> Iterator[_Hit]:
    """Where a rule's words stand and one of its patterns matches, as they are or over a wrapped line's break."""
    seen: set[int] = set()
    texts = (log.plain, log.loose, log.tight) if len(log.plain.whole) <= SMALL else (log.plain,)
    for text in texts:
        for index in (place for word in rule.find for place in text.places(word)):
            if index not in seen:
                seen.add(index)
                hit = None if log.quotes(index) else _at(rule.line, log, index)
                if hit is not None and not all(map(log.quotes, hit.lines)):
                    yield hit


def _at(patterns: Iterable[re.Pattern[str]], log: Log, index: int) -> _Hit | None:
    cut = is_cut(log.lines, index)
    for between in ("", " ", None) if cut else (None, " ", ""):
        window = range(index, index + 1) if between is None else _window(log, index)
        line = log.lines[index]
        whole = line.said if between is None else between.join(log.lines[one].bare for one in window)
        for pattern in patterns:
            match = pattern.search(whole) or (pattern.search(line.bare) if between is None else None)
            if match:
                lines = list(window) if between is None else _covered(log, window, between, match)
                return _Hit(lines, _groups(match))
    return None


def _window(log: Log, index: int) -> range:
    """The line before and those after that a message may be wrapped over."""
    start = index - 1 if index and not log.lines[index - 1].breaks else index
    stop = index
    while stop < min(index + WRAPPED, len(log.lines)) and not log.lines[stop].breaks:
        stop += 1
    return range(start, max(stop, index + 1))


def _covered(log: Log, window: range, between: str, match: re.Match[str]) -> list[int]:
    lines, at = [], 0
    for index in window:
        end = at + len(log.lines[index].bare)
        if match.start() < end and at < match.end():
            lines.append(index)
        at = end + len(between)
    return lines


def _anywhere(pattern: re.Pattern[str], log: Log, where: range | None) -> _Hit | None:
    """The first match in the log, or in the lines of `where`."""
    if where is not None:
        found = _anywhere(pattern, log.part(where), None)
        return _Hit([index + where.start for index in found.lines], found.groups) if found else None
    if pattern not in log.matches:
        log.matches[pattern] = next(_matches(pattern, log), None)
    match = log.matches[pattern]
    return _Hit(*match) if match else None


def _matches(pattern: re.Pattern[str], log: Log) -> Iterator[tuple[list[int], dict[str, str]]]:
    """(lines, groups) of the first match in the lines, as they are and without prefixes, and with breaks undone."""
    for text in (log.plain, log.bare, log.loose, log.tight):
        match = pattern.search(text.whole)
        if match:
            first, last = text.index(match.start()), text.index(max(match.end() - 1, match.start()))
            yield list(range(first, min(last, first + WRAPPED) + 1)), _groups(match)


def _says(patterns: Sequence[re.Pattern[str]], lines: Sequence[Line]) -> bool:
    """Whether one of the patterns matches in these lines as they are."""
    whole = "\n".join(line.said for line in lines) if patterns else ""
    return any(pattern.search(whole) for pattern in patterns)


def _groups(match: re.Match[str]) -> dict[str, str]:
    return {name: value for name, value in match.groupdict().items() if value}


def to_json(found: Iterable[Cause]) -> Mapping[str, object]:
    return {
        "version": 1,
        "findings": [
            {
                "rule": one.rule,
                "cause": one.cause,
                "evidence": [{"line": quote.line, "text": quote.text} for quote in one.evidence],
                "remedy": one.remedy,
                "not": one.not_,
                "confidence": one.confidence,
            }
            for one in found
        ],
    }


def text(found: Sequence[Cause]) -> list[str]:
    """The best cause in full, and what else may be so in a line each."""
    lines: list[str] = []
    for one in found[:1]:
        lines = [f"{one.confidence}: {one.cause}", ""]
        lines += [f"  {quote.line}: {quote.text}" for quote in one.evidence]
        lines += ["", f"what to do: {one.remedy}", f"it is not: {one.not_}", f"(rule {one.rule})"]
    if len(found) > 1:
        lines += ["", "also in this log:", *(f"  {one.confidence}: {one.cause} ({one.rule})" for one in found[1:])]
    return lines
