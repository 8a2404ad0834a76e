"""The links of an HTML page. A stranger's page may be long and broken, so this reads it once, from front to back.

The standard library's parser takes hours for a page of nothing but comments without an end; links are all that is
wanted here.
"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

TAG = re.compile(r"<!--|<(a|base|meta)(?=[\s/>])", re.IGNORECASE)
ATTRIBUTE = re.compile(r"""[\s/]*([^\s=>"'/]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']+)))?""")
# Far above any honest tag; a longer one is passed over.
LENGTH, TAGS = 1 << 14, 400_000


def read(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """(tag, its attributes) of every link, <base> and <meta>, comments left out; of attributes the first counts."""
    at = 0
    for _ in range(TAGS):
        match = TAG.search(text, at)
        if match is None:
            return
        if match[1] is None:
            at = text.find("-->", match.end())
            if at < 0:
                return
            continue
        attributes, length = _attributes(text[match.end() : match.end() + LENGTH])
        at = match.end() + length
        yield match[1].lower(), attributes


def _attributes(text: str) -> tuple[dict[str, str], int]:
    """(the attributes that the text begins with, how much of it they take)."""
    found: dict[str, str] = {}
    at = 0
    while (match := ATTRIBUTE.match(text, at)) is not None and match.end() > at:
        value = next((group for group in match.groups()[1:] if group is not None), "")
        found.setdefault(match[1].lower(), html.unescape(value))
        at = match.end()
    return found, max(at, 1)
