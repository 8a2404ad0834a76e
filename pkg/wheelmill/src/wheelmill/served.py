"""How a server is to hand out each file of an index: its type, and how long it may be kept."""

from __future__ import annotations

from dataclasses import dataclass

SIMPLE_JSON = "application/vnd.pypi.simple.v1+json"
FOREVER = "public, max-age=31536000, immutable"
# A page may be this old and still point only at files that are there: what is replaced stays for a grace period.
SHORT = "public, max-age=60"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".txt": "text/plain; charset=utf-8",
    ".whl": "application/octet-stream",
    ".metadata": "text/plain; charset=utf-8",
    ".sig": "text/plain; charset=utf-8",
    ".provenance": "application/json",
}


@dataclass(frozen=True, slots=True)
class Headers:
    content_type: str
    cache_control: str


def headers(path: str) -> Headers:
    """The headers of a file of an index, by its path there."""
    name = path.rsplit("/", 1)[-1]
    suffix = name[name.rfind(".") :] if "." in name else ""
    # The indexes' own JSON has a type that pip and uv ask for; `data/` and records are plain JSON.
    is_index = name == "index.json" and "/" in path
    kind = SIMPLE_JSON if is_index else TYPES.get(suffix, "application/octet-stream")
    return Headers(kind, FOREVER if is_immutable(path) else SHORT)


def is_immutable(path: str) -> bool:
    """Whether a file, once it is there, never has other bytes: a wheel and its METADATA."""
    return path.startswith("files/") and path.endswith((".whl", ".whl.metadata"))
