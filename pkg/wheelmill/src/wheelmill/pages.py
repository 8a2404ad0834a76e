"""The pages of an index for installers, each a pure function of entries: the same entries, the same bytes.

A page of links holds one line a wheel, in the order of file names, so that a line can be put in without the others.
"""

from __future__ import annotations

import html
import json
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from wheelmill import entries
from wheelmill.names import cuda_key, version_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from wheelmill.entries import Entry

# PEP 740 raised the version to 1.3. The HTML form is frozen (PEP 833), and no older part of it is left out.
API = "1.3"
# The form of the index's own JSON and pages; another one is written anew.
FORMAT = 1
HEAD = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="pypi:repository-version" content="{api}"><title>{title}</title></head>
<body>
<h1>{title}</h1>
<p>{text}</p>
"""
FOOT = b"</body>\n</html>\n"
ALL = (
    "Warning: every wheel is here, for mirrors and audits. pip takes the highest version on this page, whatever torch "
    "and CUDA are installed: do not install from it. Choose the page of your environment instead."
)


def escaped(value: str) -> str:
    """Text or an attribute on one line."""
    return html.escape(value).replace("\n", "&#10;").replace("\r", "&#13;")


def head(title: str, text: str) -> bytes:
    return HEAD.format(api=API, title=escaped(title), text=escaped(text)).encode()


def link(one: Entry, prefix: str) -> str:
    """The line of a wheel; `prefix` leads from the page to the top of the index."""
    # Only the path part is quoted: `+` must be %2B, or servers read it as a space.
    url = f"{prefix}files/{entries.quoted(one.file)}"
    attributes = [f'href="{url}#sha256={one.sha256}"']
    if one.requires_python:
        attributes.append(f'data-requires-python="{escaped(one.requires_python)}"')
    # PEP 714: the second name is for clients older than it.
    attributes += [f'data-{name}-metadata="sha256={one.metadata}"' for name in ("core", "dist-info")]
    if one.yanked is not None:
        attributes.append(f'data-yanked="{escaped(one.yanked)}"')
    if one.provenance:
        attributes.append(f'data-provenance="{url}{entries.PROVENANCE}"')
    built = f" built with CUDA {one.toolkit}" if one.toolkit else ""
    return f"<a {' '.join(attributes)}>{one.file}</a>{built}<br>\n"


def _listed(found: Iterable[Entry]) -> list[Entry]:
    return sorted(found, key=lambda one: one.file)


def links(top: bytes, found: Iterable[Entry], prefix: str, extra: str = "") -> bytes:
    """A page of links under that head."""
    return b"".join((top, *(link(one, prefix).encode() for one in _listed(found)), extra.encode(), FOOT))


def _file(line: bytes) -> bytes:
    """The file that a line is of. Attributes are escaped, so that the first `>` ends the tag."""
    return line[line.index(b">") + 1 : line.index(b"</a>")]


def lines(page: bytes, top: bytes) -> list[bytes] | None:
    """The lines of a page of links that this module wrote under that head; None for any other page."""
    if not page.startswith(top) or not page.endswith(FOOT):
        return None
    body = page[len(top) : len(page) - len(FOOT)]
    counts = {body.count(mark) for mark in (b"\n", b"<br>\n", b"</a>")} | {(b"\n" + body).count(b"\n<a ")}
    return body.splitlines(keepends=True) if len(counts) == 1 and b"\r" not in body else None


def files(found: Sequence[bytes]) -> list[str]:
    """The files that those lines are of."""
    return [_file(line).decode() for line in found]


def spliced(page: bytes, top: bytes, changes: Mapping[str, Entry | None], prefix: str) -> bytes | None:
    """A page of links with each changed file's line put in, replaced or, for None, taken out.

    Only the lines beside the changes are looked at. None for a page that was not written under that head.
    """
    if not page.startswith(top) or not page.endswith(FOOT):
        return None
    end, done = len(page) - len(FOOT), len(top)
    pieces = [top]
    try:
        for file, one in sorted(changes.items()):
            start, stop = _place(page, done, end, file.encode())
            pieces += [page[done:start], b"" if one is None else link(one, prefix).encode()]
            done = stop
    except ValueError:
        return None
    return b"".join((*pieces, page[done:]))


def _place(page: bytes, low: int, high: int, file: bytes) -> tuple[int, int]:
    """From where to where a file's line goes or is. Raises ValueError for lines of another form."""
    end = high
    while low < high:
        start = max(low, page.rfind(b"\n", low, (low + high) // 2) + 1)
        stop = page.index(b"<br>\n", start, high) + len(b"<br>\n")
        if _file(page[start:stop]) < file:
            low = stop
        else:
            high = start
    stop = page.index(b"<br>\n", low, end) + len(b"<br>\n") if low < end else low
    return low, stop if _file(page[low:stop] or b"></a>") == file else low


def dumped(value: object) -> bytes:
    return (json.dumps(value, separators=(",", ":"), ensure_ascii=False) + "\n").encode()


def project_top(project: str) -> bytes:
    return head(project, "Every wheel.")


def project_json(project: str, found: Iterable[Entry], extra: Sequence[dict[str, Any]] = ()) -> bytes:
    """A project's page as PEP 691 and PEP 700 have it; `extra` are files that are no wheels."""
    ordered = _listed(found)
    return dumped(
        {
            "meta": {"api-version": API},
            "name": project,
            "versions": [str(one) for one in sorted(map(Version, {one.release for one in ordered}))],
            "files": [*map(entries.to_json, ordered), *extra],
        }
    )


def projects(title: str, names: Iterable[str]) -> bytes:
    """The HTML list of projects."""
    rows = "".join(f'<a href="{name}/">{name}</a><br>\n' for name in sorted(names))
    return head(title, "Projects.") + rows.encode() + FOOT


def projects_json(names: Iterable[str]) -> bytes:
    return dumped({"meta": {"api-version": API}, "projects": [{"name": name} for name in sorted(names)]})


def root_json(known: Mapping[str, Sequence[str]], environments: Iterable[str], *, variants: bool) -> bytes:
    """The complete index's list of projects. What the next writer starts from stands under `_wheelmill`."""
    return dumped(
        {
            "meta": {"api-version": API},
            "projects": [{"name": name, "_wheelmill": {"versions": list(known[name])}} for name in sorted(known)],
            "_wheelmill": {
                "format": FORMAT,
                "environments": sorted(environments, key=environment_key),
                "variants": variants,
            },
        }
    )


def environment_key(name: str) -> tuple[int, tuple[int, ...]]:
    """Sort key of `cu130-torch2.11`: by CUDA, then by torch."""
    cuda, _, torch = name.partition("-torch")
    return cuda_key(cuda), version_key(torch)


def environment_top(name: str) -> bytes:
    return head(name, f"Wheels measured to work in {name}. Use: pip install PROJECT --find-links <this page>")


def all_top() -> bytes:
    return head("All wheels", ALL)


def newest_first(found: Iterable[Entry]) -> list[str]:
    """The public versions of a project."""
    return [str(one) for one in sorted(map(Version, {one.public for one in found}), reverse=True)]
