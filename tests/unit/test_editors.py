"""The exported JSON Schema is the model's."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from wheelmill import editors

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]


def test_exported_schema_is_up_to_date(golden: Callable[[Path, str], None]) -> None:
    golden(ROOT / "pkg/wheelmill/schema/matrix.json", json.dumps(editors.json_schema(), indent=2) + "\n")


def test_patterns_are_regular_expressions() -> None:
    text = json.dumps(editors.json_schema())
    patterns = re.findall(r'"pattern": ("(?:[^"\\]|\\.)*")', text)
    assert patterns
    for pattern in patterns:
        re.compile(json.loads(pattern))


def test_each_key_and_item_says_what_belongs_there() -> None:
    exported = editors.json_schema()
    sections = [exported, *exported["$defs"].values()]
    fields = [field for section in sections for field in section["properties"].values()]
    items = [field["items"] for field in fields if "items" in field]
    for shape in (*fields, *items):
        assert "enum" in shape or shape["description"].endswith("."), shape


def test_no_key_may_be_null() -> None:
    assert '"null"' not in json.dumps(editors.json_schema())
