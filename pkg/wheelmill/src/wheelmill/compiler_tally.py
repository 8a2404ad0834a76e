"""What a build found in the compiler cache, counted from the log of results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# ccache's log of results has a line `# FILE` for each look-up, and what came of it below; the scripts add theirs.
LOOKED_UP = "# "
HITS = ("direct_cache_hit", "preprocessed_cache_hit")


@dataclass(frozen=True, kw_only=True, slots=True)
class Tally:
    """A build's compiles: found, not found, failed at by the cache, and passed to the compiler without a look-up."""

    hits: int = 0
    misses: int = 0
    failed: int = 0
    passed: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            hits=self.hits + other.hits,
            misses=self.misses + other.misses,
            failed=self.failed + other.failed,
            passed=self.passed + other.passed,
        )

    def to_json(self) -> dict[str, int]:
        return {"hits": self.hits, "misses": self.misses, "failed": self.failed, "passed": self.passed}


def count(log: Path) -> Tally:
    """What a build found, by the log of results in that folder; nothing where there is none."""
    try:
        lines = (log / "results").read_text(errors="replace").split("\n")
    except OSError:
        return Tally()
    hits = sum(line in HITS for line in lines)
    looked_up = sum(line.startswith(LOOKED_UP) for line in lines)
    failed, passed = lines.count("failed"), lines.count("passed")
    return Tally(hits=hits, misses=max(looked_up - hits, 0), failed=failed, passed=passed)
