"""What GitHub Actions refuses (tables/github.toml), and names that are within it."""

from __future__ import annotations

import functools
import re
import sys

from wheelmill.facts import DATA
from wheelmill.store import digest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# Of an id. It is part of names of artifacts, files and caches, which have prefixes of their own.
LONGEST = 80
UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


@functools.cache
def number(name: str) -> int:
    """The limit of that name."""
    return int(_table()[name]["value"])


@functools.cache
def _table() -> dict[str, dict[str, str | int]]:
    return tomllib.loads((DATA / "github.toml").read_text(encoding="utf-8"))


def safe(text: str) -> str:
    """`text` as it is where an artifact, a file and a cache may be named so; else shortened, with a digest of it."""
    clean = UNSAFE.sub("_", text).lstrip(".-") or "unnamed"
    if clean == text and len(text) <= LONGEST:
        return text
    return f"{clean[: LONGEST - 17]}-{digest(text)[:16]}"


def utf16(text: str) -> int:
    """The size of an output as GitHub counts it."""
    return len(text.encode("utf-16-le"))
