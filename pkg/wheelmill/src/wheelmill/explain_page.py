"""docs/causes.md: what `explain` knows, rendered from the rules and from what they answer to their own logs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from wheelmill.explain import explain
from wheelmill.explain_rules import TABLES, rules
from wheelmill.store import write_atomic

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from wheelmill.explain_rules import Rule

HEAD = """\
# What `explain` knows

Made from `tables/causes/*.toml` and the logs of `tests/explain` by `wheelmill explain --write-page docs/causes.md`;
[explain.md](explain.md) says how to add to it.

## Reported failures

| what the log shows | rule that answers | right in |
|---|---|---|
"""


def answered(logs: Path, rule: str) -> tuple[int, int]:
    """(how many of a rule's own logs it is the best answer to, how many there are)."""
    right = count = 0
    for path in sorted((logs / rule).glob("*.log")):
        with path.open("rb") as file:
            found = explain(file)
        count += 1
        right += bool(found) and found[0].rule == rule
    return right, count


def _reported(logs: Path) -> Iterator[str]:
    for rule in rules().values():
        if rule.cases:
            right, count = answered(logs, rule.id)
            yield from (f"| {case} | [{rule.id}](#{rule.id}) | {right} of {count} logs |" for case in rule.cases)


def _section(rule: Rule) -> str:
    cause, remedy, wrong = (_plain(text) for text in (rule.cause, rule.remedy, rule.not_))
    facts = [f"- Cause: {cause}.", f"- What to do: {remedy}.", f"- Not: {wrong}."]
    return "\n".join([f"### {rule.id}", "", f"{rule.title} ({rule.confidence}).", "", *facts, ""])


def _plain(message: str) -> str:
    """A message with its {groups} as what is read from a log, in words or as a name."""
    named = re.sub(r"(?<!\{)\{([^{}]+)\}(?!\})", lambda match: f"[{match[1].rpartition('|')[2] or '…'}]", message)
    return named.replace("{{", "{").replace("}}", "}")


def page(logs: Path) -> str:
    """The whole page, in Markdown. `logs` holds a folder of logs a rule."""
    parts = [HEAD + "\n".join(_reported(logs)) + "\n"]
    for path in sorted(TABLES.glob("*.toml")):
        title = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ").partition(". ")[0]
        own = [rule for rule in rules().values() if rule.table == path.stem]
        parts.append(f"## {title}\n\n" + "\n".join(_section(rule) for rule in own))
    return "\n".join(parts)


def write(path: Path, logs: Path) -> None:
    """Write the page."""
    write_atomic(path, page(logs))
