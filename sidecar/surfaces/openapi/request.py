"""The JSON Schemas of a request, made from the models that read it and the table of what becomes of each parameter."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import getdoc
from typing import Any

from pydantic.json_schema import CoreModeRef, CoreRef, DefsRef, GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from sidecar.config.model import RequestLimits
from sidecar.responses.body_bounds import MAX_DEPTH
from sidecar.responses.json_text import Json
from sidecar.responses.request_model import ClosedModel
from sidecar.surfaces.compaction import TAKEN, WITHOUT_EFFECT
from sidecar.surfaces.openapi.shorthand import REF_TEMPLATE, or_null, own_references
from sidecar.surfaces.parameters import OWN_DEFAULT, Parameter
from sidecar.surfaces.surface import Surface

_LIMITS = RequestLimits()


class _RequestSchema(GenerateJsonSchema):
    """Says what :class:`RequestModel` adds to pydantic's reading: ``null`` is absence, settings are closed objects."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """The schema of one model."""
        json_schema = super().model_schema(schema)
        json_schema.pop("title", None)
        # A generic model with its unions filled in has the docstring of the one it is made from.
        json_schema["description"] = (getdoc(schema["cls"]) or "").replace("``", "`")
        required = json_schema.get("required", ())
        properties: dict[str, Any] = json_schema["properties"]
        for name, member in properties.items():
            if name not in required:
                if member.get("default", ...) is None:
                    del member["default"]
                properties[name] = _with_null(member)
        model = schema["cls"]
        for name, member in model.ignored_members.items():
            properties[name] = {"description": "Accepted and ignored.", **member}
        if issubclass(model, ClosedModel):
            json_schema["additionalProperties"] = False
        return json_schema

    def get_defs_ref(self, core_mode_ref: CoreModeRef) -> DefsRef:
        """A generic model goes by its own name, without those of the unions in it."""
        name, mode = core_mode_ref
        return super().get_defs_ref((CoreRef(name.partition("[")[0]), mode))

    def field_title_should_be_set(self, schema: Any) -> bool:
        """No titles: they would only repeat the members' names."""
        return False


def request_schemas(surface: Surface) -> dict[str, Json]:
    """The schemas by name, ``CreateResponse`` among them: its properties are the rows of the surface's table."""
    schema = surface.request_model.model_json_schema(ref_template=REF_TEMPLATE, schema_generator=_RequestSchema)
    definitions: dict[str, Json] = schema.pop("$defs")
    read: dict[str, Json] = schema["properties"]
    taken = {row.name: row for row in surface.parameters if row.top_level}
    outside = [name for name in taken if name not in read]
    schema["properties"] = {
        name: _parameter(taken[name], read.get(name, {})) for name in [*read, *outside] if name in taken
    }
    for row in surface.parameters:
        if not row.top_level:
            _describe_member(row, schema, definitions)
    schema["additionalProperties"] = False
    schema["description"] = _description(surface)
    return {**definitions, "CreateResponse": schema, "CompactResponse": _compaction(schema)}


def _compaction(create: Json) -> Json:
    """What a compaction takes of a response's parameters."""
    without_effect = ", ".join(f"`{name}`" for name in WITHOUT_EFFECT)
    return {
        "type": "object",
        "description": (
            f"What to compact: `input` or `previous_response_id`. Accepted without effect: {without_effect}."
        ),
        "properties": {name: create["properties"][name] for name in TAKEN if name in create["properties"]},
        "required": ["model"],
    }


def _description(surface: Surface) -> str:
    most_bytes = surface.bounds.request_bytes or _LIMITS.max_request_bytes
    return (
        "What to answer, and how. `null` is the same as leaving a parameter out.\n\n"
        f"A model may be set otherwise, but in general a request has at most {most_bytes} bytes, "
        f"{_LIMITS.max_items} items, {_LIMITS.max_tools} tools and {_LIMITS.max_images} images. Arrays and objects are "
        f"nested at most {MAX_DEPTH} levels deep."
    )


def _parameter(row: Parameter, own: Json) -> Json:
    schema = dict(row.treatment.schema(own))
    if row.summary:
        schema["description"] = row.summary
    if row.default is not OWN_DEFAULT and row.default is not None:
        schema["default"] = row.default
    return schema


def _describe_member(row: Parameter, schema: Json, definitions: Mapping[str, Json]) -> None:
    """Write ``row`` into the settings object that has its member."""
    *steps, member = row.name.split(".")
    for step in steps:
        (schema,) = [definitions[name] for name in own_references(schema["properties"][step])]
    schema["properties"][member] = _parameter(row, schema["properties"][member])


def _with_null(schema: JsonSchemaValue) -> JsonSchemaValue:
    if {"type": "null"} in schema.get("anyOf", ()) or None in schema.get("enum", ()) or schema.get("type") == "null":
        return schema
    default = {"default": schema.pop("default")} if "default" in schema else {}
    return {**or_null(schema), **default}
