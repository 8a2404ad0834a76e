"""docs/rules: one page a rule, rendered from tables/rules.toml."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelmill.findings import rules
from wheelmill.store import write_atomic

if TYPE_CHECKING:
    from pathlib import Path

    from wheelmill.findings import Rule

WAIVE = """\
## Accepting it

```yaml
policy:
  waive:
    - {{rule: {id}, reason: "…"}}
```
"""


def page(rule: Rule) -> str:
    """The page of one rule, in Markdown. Words in braces are the finding's own."""
    parts = [f"# {rule.id}", f"{rule.title}. Severity: {rule.severity}.", f"> {rule.message}"]
    parts += ["## Why", rule.why, "## What to do", f"{rule.remedy[0].upper()}{rule.remedy[1:]}."]
    return "\n\n".join([*parts, WAIVE.format(id=rule.id)])


def index() -> str:
    """The list of all rules."""
    rows = [f"| [{rule.id}]({rule.id}.md) | {rule.severity} | {rule.title} |" for rule in rules().values()]
    head = "# Rules of the audit\n\n| rule | severity | finds |\n|---|---|---|\n"
    return head + "\n".join(rows) + "\n"


def pages() -> dict[str, str]:
    """Every page by its file's name."""
    return {"README.md": index(), **{f"{rule.id}.md": page(rule) for rule in rules().values()}}


def write(folder: Path) -> None:
    """Write the pages into a folder, and remove those of rules that are gone."""
    made = pages()
    for name, text in made.items():
        write_atomic(folder / name, text)
    for path in folder.glob("*.md"):
        if path.name not in made:
            path.unlink()
