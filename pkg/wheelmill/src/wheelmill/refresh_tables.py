"""The tables' files with changes made in them: comments, order and style stay; what would not load is not written."""

from __future__ import annotations

import re
import tempfile
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wheelmill import facts
from wheelmill.errors import InputError
from wheelmill.names import cuda_key, version_key
from wheelmill.store import write_atomic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tomlkit import TOMLDocument

    from wheelmill.refresh import Result
    from wheelmill.refresh_change import Change, Row, Table

# CUDA first: a torch row may name a tag of it.
TABLES: tuple[Table, ...] = ("cuda", "torch")
WIDTH = 127
CLAUSE = re.compile(r"(.+) \(([\w, ]+)\), refreshed \d{4}-\d\d-\d\d")


def applied(text: str, table: Table, result: Result, date: str) -> str:
    """A table's text with its part of the result."""
    import tomlkit

    document = tomlkit.parse(text)
    changes = [one for one in result.changes if one.table == table]
    for row in dict.fromkeys(one.row for one in changes):
        _change(document, row, [one for one in changes if one.row == row], date)
    new = tomlkit.dumps(document)
    for one in (one for one in result.rows if one.table == table):
        new = _inserted(new, one)
    return new


def _change(document: TOMLDocument, row: str, changes: Iterable[Change], date: str) -> None:
    fields = document[row]
    assert isinstance(fields, dict)  # noqa: S101 - facts.load read it as a row
    by_source: dict[str, list[str]] = {}
    for one in changes:
        fields[one.field] = one.new
        by_source.setdefault(one.source, []).append(one.field)
    source = str(fields.get("source", ""))
    for who, columns in by_source.items():
        source = _sourced(source, who, columns, date)
    fields["source"] = source


def _sourced(source: str, who: str, columns: list[str], date: str) -> str:
    """The row's source with one more clause, in place of an earlier one of the same who that spoke of no more."""
    kept = []
    for clause in source.split("; ") if source else []:
        match = CLAUSE.fullmatch(clause)
        if not (match and match[1] == who and set(match[2].split(", ")) <= set(columns)):
            kept.append(clause)
    return "; ".join([*kept, f"{who} ({', '.join(columns)}), refreshed {date}"])


def _value(value: object) -> str:
    """A value as the tables write it: a long list over several lines."""
    import tomlkit

    text = tomlkit.item(value).as_string()
    if isinstance(value, list) and len(text) + len("sm = ") > WIDTH - 7:
        words = textwrap.wrap(text[1:-1] + ",", WIDTH, initial_indent="  ", subsequent_indent="  ")
        return "[\n" + "\n".join(words) + "\n]"
    return str(text)


def _inserted(text: str, row: Row) -> str:
    """The text with the row before the next greater one, or at its end."""
    key, form, head = _keys(row.table)
    lines = [f"{head(row.row)}", *(f"{name} = {_value(value)}" for name, value in row.fields.items())]
    made = "\n".join(lines) + "\n"
    for match in form.finditer(text):
        if key(match[1]) > key(row.row):
            at = match.start()
            # A comment right above a head belongs to that row.
            while (above := text[:at].rpartition("\n")[0].rpartition("\n")[2]).startswith("#"):
                at -= len(above) + 1
            return f"{text[:at]}{made}\n{text[at:]}"
    return f"{text.rstrip()}\n\n{made}"


def _keys(table: Table) -> tuple[Callable[[str], Any], re.Pattern[str], Callable[[str], str]]:
    """(what rows are ordered by, what their heads look like, how one is written)."""
    if table == "torch":
        return version_key, re.compile(r'^\["(\d+\.\d+)"\]', re.MULTILINE), '["{}"]'.format
    return cuda_key, re.compile(r"^\[(cu\d+)\]", re.MULTILINE), "[{}]".format


def texts(folder: Path) -> dict[Table, str]:
    return {table: (folder / f"{table}.toml").read_text(encoding="utf-8") for table in TABLES}


def changed(old: Mapping[Table, str], result: Result, date: str) -> dict[Table, str]:
    """The new text of each table that changes. Raises InputError where the tables would not load with them."""
    new = {table: applied(text, table, result, date) for table, text in old.items()}
    with tempfile.TemporaryDirectory(prefix="wheelmill-refresh-") as folder:
        for table, text in new.items():
            (Path(folder) / f"{table}.toml").write_text(text, encoding="utf-8")
        loaded = facts.load(tables=Path(folder))
    for one in result.rows:
        if one.row not in (loaded.torch if one.table == "torch" else loaded.cuda):
            raise InputError(f"the new row {one.row} is not in {one.table}.toml", remedy="report this as a bug")
    return {table: text for table, text in new.items() if text != old[table]}


def write(folder: Path, old: Mapping[Table, str], new: Mapping[Table, str]) -> None:
    """Replace the files, each whole. Raises InputError where somebody has changed one since `old` was read."""
    now = texts(folder)
    for table in new:
        if now[table] != old[table]:
            raise InputError(
                f"{folder / table}.toml was changed while the servers were asked, so it was left",
                remedy="run `wheelmill refresh` again",
            )
    for table, text in new.items():
        write_atomic(folder / f"{table}.toml", text)
