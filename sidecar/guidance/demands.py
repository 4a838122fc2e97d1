"""What an answer must be, as a JSON Schema for guided decoding, and whether a schema can be one at all.

A schema is checked before the model is touched: against the meta-schema of its dialect, and, where it must be kept to,
by compiling the very document that guides decoding, so that a request never fails in the runtime because of it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sidecar.guidance.positions import Path
from sidecar.guidance.schemas import Schema, guide_fault, schema_fault
from sidecar.guidance.self_contained import UnresolvableError, self_contained
from sidecar.responses.errors import ApiError
from sidecar.responses.request import ResponsesRequest
from sidecar.responses.text_format import JsonObject, JsonSchemaFormat
from sidecar.responses.tools import FunctionTool, NamedFunction

ANY_OBJECT: Schema = {"type": "object"}
NO_ARGUMENTS: Schema = {"type": "object", "properties": {}, "additionalProperties": False}
"""The arguments of a function without ``parameters``."""

_ARGUMENTS: Path = ("properties", "arguments")


def answer_schema(request: ResponsesRequest) -> Schema | None:
    """The self-contained schema that the visible text of the answer must fit; ``None`` for free text.

    Raises:
        ApiError: ``invalid_request``: the client's schema is none, or decoding cannot be guided by it.
    """
    match request.text.format:
        case JsonSchemaFormat(json_schema=schema):
            param = "text.format.schema"
            check_schema(schema, param)
            return _guiding(schema, param)
        case JsonObject():
            return ANY_OBJECT
    return None


def arguments_schema(tool: FunctionTool, param: str) -> Schema:
    """The self-contained schema that the arguments of a call of ``tool`` must fit; ``param`` is its parameters' path.

    Raises:
        ApiError: ``invalid_request``: decoding cannot be guided by the schema, or it is not one of an object.
    """
    if tool.parameters is None:
        return NO_ARGUMENTS
    return _guiding(_of_object(tool, param), param)


def demanded_tools(request: ResponsesRequest) -> Sequence[FunctionTool]:
    """The tools one of which ``tool_choice`` demands a call of; none where the model is free to answer in text."""
    match request.tool_choice:
        case "required":
            return request.tools
        case NamedFunction(name=name):
            return [tool for tool in request.tools if tool.name == name]
    return ()


def call_schema(tools: Sequence[FunctionTool], place: Path = ()) -> Schema:
    """The schema of a call of one of ``tools``, an object of ``name`` and ``arguments``, for use at ``place``."""
    if len(tools) == 1:
        return _call_of(tools[0], place)
    return {"anyOf": [_call_of(tool, (*place, "anyOf", str(index))) for index, tool in enumerate(tools)]}


def calls_schema(tools: Sequence[FunctionTool]) -> Schema:
    """The schema of one call or more, as a list."""
    return {"type": "array", "minItems": 1, "items": call_schema(tools, ("items",))}


def document(schema: Schema) -> str:
    """``schema`` as text: a guide for the runtime, if it is self-contained."""
    return json.dumps(schema, ensure_ascii=False)


def check_schema(schema: Schema, param: str) -> None:
    """Look whether ``schema`` is one in its dialect.

    Raises:
        ApiError: ``invalid_request``: it is not.
    """
    path = schema_fault(document(schema))
    if path is not None:
        raise ApiError("invalid_request", f"Not a valid JSON Schema at '{param}{path}'.", param)


def check_guide(guide: str, param: str) -> None:
    """Look whether decoding can be guided by the schema that ``guide`` holds.

    Raises:
        ApiError: ``invalid_request``: it cannot.
    """
    fault = guide_fault(guide)
    if fault is not None:
        raise ApiError("invalid_request", f"Decoding cannot be guided by this JSON Schema: {fault}", param)


def _guiding(schema: Schema, param: str) -> Schema:
    """``schema``, self-contained, if decoding can be guided by it."""
    try:
        guiding = self_contained(schema)
    except UnresolvableError as error:
        message = "Decoding cannot be guided by this JSON Schema: a reference in it does not lead to a schema in it."
        raise ApiError("invalid_request", message, param) from error
    check_guide(document(guiding), param)
    return guiding


def _call_of(tool: FunctionTool, place: Path) -> Schema:
    """The schema of a call of ``tool``, which stands at ``place``."""
    parameters = NO_ARGUMENTS if tool.parameters is None else _of_object(tool, "tools")
    return {
        "type": "object",
        "properties": {"name": {"const": tool.name}, "arguments": self_contained(parameters, place + _ARGUMENTS)},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def _of_object(tool: FunctionTool, param: str) -> Schema:
    """The parameters of ``tool``, which admit nothing but objects; a type that leaves more open is narrowed to them."""
    parameters: Schema = tool.parameters or {}
    types: Any = parameters.get("type", "object")
    if types != "object" and not (isinstance(types, list) and "object" in types):
        message = f"The parameters of a function are an object, but their schema has the type {json.dumps(types)}."
        raise ApiError("invalid_request", message[:200], param)
    return {**parameters, "type": "object"}
