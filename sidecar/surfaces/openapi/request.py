"""The JSON Schemas of a request, made from the models that read it, so that they cannot drift apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from sidecar.responses.open_items import Json
from sidecar.responses.request import ResponsesRequest
from sidecar.responses.request_model import ClosedModel

REF_TEMPLATE = "#/components/schemas/{model}"


class _RequestSchema(GenerateJsonSchema):
    """Says what :class:`RequestModel` adds to pydantic's reading: ``null`` is absence, settings are closed objects."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """The schema of one model."""
        json_schema = super().model_schema(schema)
        json_schema.pop("title", None)
        json_schema["description"] = json_schema["description"].replace("``", "`")
        required = json_schema.get("required", ())
        properties: dict[str, Any] = json_schema["properties"]
        for name, member in properties.items():
            if name not in required:
                if member.get("default", ...) is None:
                    del member["default"]
                properties[name] = _or_null(member)
        if issubclass(schema["cls"], ClosedModel):
            json_schema["additionalProperties"] = False
        return json_schema

    def field_title_should_be_set(self, schema: Any) -> bool:
        """No titles: they would only repeat the members' names."""
        return False


def request_schemas(narrowed: Mapping[str, Json]) -> dict[str, Json]:
    """The schemas by name, ``CreateResponse`` among them; ``narrowed`` replaces parameters of that one."""
    schema = ResponsesRequest.model_json_schema(ref_template=REF_TEMPLATE, schema_generator=_RequestSchema)
    definitions: dict[str, Json] = schema.pop("$defs")
    schema["properties"].update(narrowed)
    schema["additionalProperties"] = False
    schema["description"] = "What to answer, and how. `null` is the same as leaving a parameter out."
    return {**definitions, "CreateResponse": schema}


def _or_null(schema: JsonSchemaValue) -> JsonSchemaValue:
    if {"type": "null"} in schema.get("anyOf", ()) or None in schema.get("enum", ()) or schema.get("type") == "null":
        return schema
    default = {"default": schema.pop("default")} if "default" in schema else {}
    return {"anyOf": [schema, {"type": "null"}], **default}
