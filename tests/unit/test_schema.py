"""The exported JSON Schema is the declaration's."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from wheelmill import schema

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]


def test_exported_schema_is_up_to_date(golden: Callable[[Path, str], None]) -> None:
    golden(ROOT / "pkg/wheelmill/schema/matrix.json", json.dumps(schema.json_schema(), indent=2) + "\n")


def test_patterns_are_regular_expressions() -> None:
    text = json.dumps(schema.json_schema())
    patterns = re.findall(r'"pattern": ("(?:[^"\\]|\\.)*")', text)
    assert patterns
    for pattern in patterns:
        re.compile(json.loads(pattern))


def test_each_key_says_what_it_means() -> None:
    def walk(kind: schema.Kind) -> None:
        assert kind.doc.endswith("."), kind
        if isinstance(kind, schema.Section):
            for field in kind.fields.values():
                walk(field)

    walk(schema.MATRIX)
