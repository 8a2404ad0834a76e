"""The JSON Schema of matrix.yaml, with which editors complete and check it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic.json_schema import GenerateJsonSchema

from wheelmill.schema import MatrixFile

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import core_schema


class _Keys(GenerateJsonSchema):
    """No null: a key has a value or is left out. No titles: a key's name is its title."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002
        return False


def json_schema() -> dict[str, Any]:
    """MatrixFile as JSON Schema."""
    return {
        "$schema": GenerateJsonSchema.schema_dialect,
        **MatrixFile.model_json_schema(schema_generator=_Keys),
        "title": "wheelmill matrix",
    }
