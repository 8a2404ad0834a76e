"""pydantic's errors in words: what stands in the file, what is needed there, and what to write."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import yaml

from wheelmill.names import did_you_mean, listing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_core import ErrorDetails

Shape: TypeAlias = "dict[str, Any]"

STR, INT, FLOAT = (f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float"))
_STANDS = {
    "map": "a mapping",
    "seq": "a list",
    "str": "text",
    "int": "a number",
    "float": "a number",
    "bool": "true or false",
    "null": "empty",
    "timestamp": "a date",
}
_NEEDED = {"string_type": "a text", "list_type": "a list"}


@dataclass(frozen=True, slots=True)
class Words:
    """A model's JSON Schema, which says what belongs at a path."""

    schema: Shape

    def told(self, detail: ErrorDetails, path: Sequence[str | int], node: yaml.Node | None) -> tuple[str, str]:
        """What is wrong with the node at `path`, and the remedy."""
        kind = detail["type"]
        if kind == "value_error":
            return str(detail["ctx"]["error"]), detail["ctx"]["error"].remedy
        if kind == "extra_forbidden":
            return "there is no such key.", did_you_mean(str(path[-1]), list(self._at(path[:-1])["properties"]))
        shape = self._at(path)
        belongs = shape.get("description") or f"One of {listing(shape['enum'])}."
        if kind == "missing":
            return "the key is missing.", f"Add it: {belongs}"
        return _wrong(kind, shape, node, belongs)

    def _at(self, path: Sequence[str | int]) -> Shape:
        shape = self.schema
        for part in path:
            fields = shape.get("properties", {})
            shape = self._whole(
                shape["items"] if isinstance(part, int) else fields.get(part) or shape["additionalProperties"]
            )
        return shape

    def _whole(self, shape: Shape) -> Shape:
        """The shape with what it refers to and all that it offers laid together; its own words come first."""
        if "$ref" in shape:
            shape = self.schema["$defs"][shape["$ref"].rpartition("/")[2]] | shape
        for offer in (*shape.get("anyOf", ()), *shape.get("oneOf", ())):
            shape = self._whole(offer) | shape
        return shape


def _wrong(kind: str, shape: Shape, node: yaml.Node | None, belongs: str) -> tuple[str, str]:
    """What is wrong with the value, and the remedy."""
    text = str(node.value) if isinstance(node, yaml.ScalarNode) else ""
    if kind == "literal_error" and text:
        near = did_you_mean(text, shape["enum"]) if "enum" in shape else f"Correct it: {belongs}"
        return f'"{text}" is not one of the values.', near
    if kind == "string_pattern_mismatch":
        return f'"{text}" is not of the form that is needed here.', f"Correct it: {belongs}"
    if kind == "too_short":
        return "the list is empty.", f"Give at least one: {belongs}"
    tag = node.tag if node else ""
    if tag in (INT, FLOAT) and "pattern" in shape and re.search(shape["pattern"], text):
        loses = " and drops its last zero" if tag == FLOAT and text.endswith("0") else ""
        return f"YAML reads {text} as a number{loses}.", f'Quote it: "{text}".'
    stands = _STANDS.get(tag.rpartition(":")[2], f"a value of the tag {tag}")
    remedy = f"Write [{text}]." if kind == "list_type" and tag == STR else f"Correct it: {belongs}"
    return f"this is {stands}, but {_needed(kind, shape)} is needed.", remedy


def _needed(kind: str, shape: Shape) -> str:
    if kind == "literal_error":
        return "one of " + listing(shape["enum"]) if "enum" in shape else str(shape["const"])
    return "a text or a list" if "oneOf" in shape else _NEEDED.get(kind, "a mapping")
