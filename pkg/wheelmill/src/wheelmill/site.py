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
) -> Iterator[tuple[str, bytes]]:
    """(path, content) of each page that changes with the `touched` files.

    `releases` has every record of each touched (project, public version), `known` every project's public versions,
    newest first.
    """
    del releases, touched
    rows = "".join(f'<a href="simple/{name}/">{name}</a> {" ".join(known[name])}<br>\n' for name in sorted(known))
    text = "Each environment has its page here, such as cu130-torch2.11.html: pip install PROJECT --find-links <it>"
    yield "index.html", installer.head("Wheels", text) + rows.encode() + installer.FOOT
