"""Write the demonstration site: `python -m tests.web.demo OUT`, then open OUT/index.html."""

from __future__ import annotations

import html
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from tests.web import records

from wheelmill import site

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wheelmill.records import Record


def write(
    out: Path, releases: Mapping[tuple[str, str], Sequence[Record]], known: Mapping[str, Sequence[str]], **more: object
) -> None:
    """The pages for people, and of the other pages of an index as much as they link to."""
    every = [record for records in releases.values() for record in records]
    environments = sorted({name for record in every for name in record.environments})
    touched = frozenset(record.file for record in every)
    for path, content in site.pages(releases, known, touched, environments=environments, **more):  # type: ignore[arg-type]
        put(out / path, content)
    pages = {f"{name}.html": [one for one in every if name in one.environments] for name in environments}
    for name, listed in {**pages, "all.html": every, "simple/index.html": []}.items():
        links = [f'<a href="files/{quote(one.file)}#sha256={one.sha256}">{html.escape(one.file)}</a>' for one in listed]
        put(out / name, ("<!DOCTYPE html><title>links</title>" + "<br>\n".join(links)).encode())
    for one in every:
        for suffix in ("", ".metadata", ".record.json", ".provenance", ".sig"):
            put(out / "files" / f"{one.file}{suffix}", b"")


def put(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


if __name__ == "__main__":
    write(Path(sys.argv[1]), records.releases(), records.KNOWN)
