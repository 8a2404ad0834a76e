"""The pages for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelmill import pages as installer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from wheelmill.records import Record


def pages(
    releases: Mapping[tuple[str, str], Sequence[Record]],
    known: Mapping[str, Sequence[str]],
    touched: frozenset[str],
    *,
    environments: Sequence[str] = (),
) -> Iterator[tuple[str, bytes]]:
    """(path, content) of each page that changes with the `touched` files.

    `releases` has every record of each touched (project, public version), `known` every project's public versions,
    newest first; `environments` are those that have a find-links page.
    """
    del releases, touched
    rows = "".join(f'<a href="{name}.html">{name}</a><br>\n' for name in environments)
    text = f"Choose your torch and CUDA, then: pip install {' '.join(sorted(known))} --find-links <that page>"
    yield "index.html", installer.head("Wheels by environment", text) + rows.encode() + installer.FOOT
