"""A change to a table, a new row, and what is told to a person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Table = Literal["torch", "cuda"]
# Who says so, as a row's source names them.
PYPI, INDEX = "PyPI's index", "torch's own index"


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """Another value of a field that a row has; `source` is who said so."""

    table: Table
    row: str
    field: str
    old: object
    new: object
    source: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A new row, its fields in the table's order, `source` among them."""

    table: Table
    row: str
    fields: Mapping[str, object]


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """What a row leaves to a person: `open` where no server says it, else where one contradicts the row."""

    table: Table
    row: str
    what: str
    open: bool
