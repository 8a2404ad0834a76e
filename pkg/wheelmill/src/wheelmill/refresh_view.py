"""A refresh as Markdown for a pull request, as text for a terminal, and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelmill.markdown import capped, code, escaped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelmill.refresh import Result
    from wheelmill.refresh_change import Change, Row, Told


def _words(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _named(one: Change | Row | Told) -> str:
    return f"{one.table} {one.row}"


def _changes(result: Result) -> Iterator[tuple[str, str, str]]:
    """(row, field and values, source) of each change and new row."""
    for row in result.rows:
        shown = "; ".join(f"{name} {_words(value)}" for name, value in row.fields.items() if name != "source")
        yield _named(row), f"new: {shown}", str(row.fields["source"])
    for one in result.changes:
        yield _named(one), f"{one.field}: {_words(one.old)} → {_words(one.new)}", one.source


def markdown(result: Result, images: tuple[str, ...]) -> str:
    """The text of a pull request: what changed and by whose word, what is left to a person, who gave no answer."""
    return capped(_markdown(result, images))


def _markdown(result: Result, images: tuple[str, ...]) -> Iterator[str]:
    yield "## Facts and pins"
    changes = list(_changes(result))
    if not changes and not images:
        yield from ("", "Nothing changed.")
    if changes:
        yield from ("", "| row | change | source |", "|---|---|---|")
        yield from (f"| {escaped(row)} | {escaped(what)} | {escaped(source)} |" for row, what, source in changes)
    if images:
        yield from ("", "Container images, in `docker/`:", "", *(f"- {code(name)}" for name in images))
    for title, rows in (
        ("To be stated by a person", result.open),
        ("Servers that say otherwise than a row, which was left", result.differs),
    ):
        if rows:
            yield from ("", f"### {title}", "", *(f"- {escaped(_named(one))}: {escaped(one.what)}" for one in rows))
    if result.unreached:
        yield from ("", "### Not read, so their rows are as they were", "")
        yield from (f"- {escaped(one.source)}: {code(one.why)}" for one in result.unreached)


def lines(result: Result, images: tuple[str, ...]) -> Iterator[str]:
    """A line each, for a terminal."""
    for row, what, source in _changes(result):
        yield f"changed: {row}: {what}  ({source})"
    for name in images:
        yield f"changed: docker/{name}"
    for one in result.open:
        yield f"to be stated by a person: {_named(one)}: {one.what}"
    for one in result.differs:
        yield f"left as it is: {_named(one)}: {one.what}"
    for silent in result.unreached:
        yield f"not read, its rows left: {silent.source}: {silent.why}"
    if not changes_of(result, images):
        yield "nothing changes"


def changes_of(result: Result, images: tuple[str, ...]) -> int:
    return len(result.changes) + len(result.rows) + len(images)


def to_json(result: Result, images: tuple[str, ...], *, written: bool) -> dict[str, object]:
    """`"version": 1`; `written` says whether the files have the changes."""
    return {
        "version": 1,
        "written": written,
        "changes": [
            {
                "table": one.table,
                "row": one.row,
                "field": one.field,
                "from": one.old,
                "to": one.new,
                "source": one.source,
            }
            for one in result.changes
        ],
        "rows": [{"table": one.table, "row": one.row, "fields": dict(one.fields)} for one in result.rows],
        "images": list(images),
        "open": [_told(one) for one in result.open],
        "differs": [_told(one) for one in result.differs],
        "unreached": [{"source": one.source, "why": one.why} for one in result.unreached],
    }


def _told(one: Told) -> dict[str, str]:
    return {"table": one.table, "row": one.row, "what": one.what}
