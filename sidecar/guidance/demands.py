"""What the answer to a request must fit: the schema of its text, of its calls' arguments, of demanded calls.

A schema is checked before the model is touched: against the meta-schema of its dialect, and, where it must be kept to,
by compiling the very document that guides decoding, so that a request never fails in the runtime because of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sidecar.guidance.limits import excess
from sidecar.guidance.positions import Path
from sidecar.guidance.remember import remembered
from sidecar.guidance.schemas import Schema, guide_fault, schema_fault
from sidecar.guidance.self_contained import OverlongError, UnresolvableError, self_contained
from sidecar.responses.errors import ApiError
from sidecar.responses.request import ResponsesRequest
from sidecar.responses.text_format import JsonObject, JsonSchemaFormat
from sidecar.responses.tools import FunctionTool, NamedFunction

ANY_OBJECT: Schema = {"type": "object"}
NO_ARGUMENTS: Schema = {"type": "object", "properties": {}, "additionalProperties": False}
"""The arguments of a function without ``parameters``."""

MOST_TEXT = 1_000_000
"""Characters of the schemas of all functions of a request."""
MOST_GUIDING_TEXT = 600_000
"""Characters of those that decoding is guided by: making a grammar takes longer than a look at a schema."""

_REMEMBERED = 4_000_000
_ARGUMENTS: Path = ("properties", "arguments")


def answer_schema(request: ResponsesRequest) -> Schema | None:
    """The self-contained schema that the visible text of the answer must fit; ``None`` for free text.

    Raises:
        ApiError: ``invalid_request``: the client's schema is none, or decoding cannot be guided by it.
    """
    match request.text.format:
        case JsonSchemaFormat(json_schema=schema):
            return _guiding(document(schema), "text.format.schema")
        case JsonObject():
            return ANY_OBJECT
    return None


def argument_schemas(request: ResponsesRequest) -> Mapping[str, Schema]:
    """What the arguments of functions must fit that are strict or whose call is demanded: self-contained schemas.

    Raises:
        ApiError: ``invalid_request``: a function's parameters are no schema; or, of one of those functions, decoding
            cannot be guided by them, or they are not of an object; or all of them together are too long.
    """
    demanded = {tool.name for tool in demanded_tools(request)}
    schemas: dict[str, Schema] = {}
    size = guiding_size = 0
    for index, tool in enumerate(request.tools):
        param = f"tools[{index}].parameters"
        guiding = tool.strict or tool.name in demanded
        parameters = _arguments(tool) if guiding else tool.parameters
        if parameters is None:
            continue
        text = document(parameters)
        size += len(text)
        guiding_size += len(text) * guiding
        _check_together(size, MOST_TEXT, "schemas")
        _check_together(guiding_size, MOST_GUIDING_TEXT, "schemas that arguments are kept to")
        if guiding:
            _check_object(tool, param)
            schemas[tool.name] = _guiding(text, param)
        else:
            _check_schema(text, param)
    return schemas


def demanded_tools(request: ResponsesRequest) -> Sequence[FunctionTool]:
    """The tools one of which ``tool_choice`` demands a call of; none where the model is free to answer in text."""
    match request.tool_choice:
        case "required":
            return request.tools
        case NamedFunction(name=name):
            return [tool for tool in request.tools if tool.name == name]
    return ()


def calls_guide(tools: Sequence[FunctionTool], *, several: bool) -> str:
    """The guide to a call of one of ``tools``, or to a list of one or more.

    Raises:
        ApiError: ``invalid_request``: decoding cannot be guided by so many schemas together.
    """
    guide, fault = _calls_guide(json.dumps([[[tool.name, _arguments(tool)] for tool in tools], several]))
    if fault is not None:
        raise ApiError("invalid_request", f"Decoding cannot be guided by these functions' schemas: {fault}", "tools")
    return guide


def document(schema: Schema) -> str:
    """``schema`` as text: a guide for the runtime, if it is self-contained."""
    return json.dumps(schema, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class _Guiding:
    """A self-contained schema, and why decoding cannot be guided by it, if it cannot."""

    schema: Schema
    fault: str | None


def _guiding(text: str, param: str) -> Schema:
    """The schema ``text``, self-contained, if it is one and decoding can be guided by it."""
    _check_schema(text, param)
    guiding = _self_contained(text)
    if guiding.fault is not None:
        raise ApiError("invalid_request", f"Decoding cannot be guided by this JSON Schema: {guiding.fault}", param)
    return guiding.schema


@remembered(_REMEMBERED)
def _self_contained(text: str) -> _Guiding:
    try:
        schema = self_contained(json.loads(text))
    except UnresolvableError:
        return _Guiding({}, "a reference does not lead to a schema in it")
    except OverlongError:
        return _Guiding({}, "its references lead through names that are too long")
    return _Guiding(schema, excess(schema) or guide_fault(document(schema)))


@remembered(_REMEMBERED)
def _calls_guide(text: str) -> tuple[str, str | None]:
    """The guide for names and schemas in ``text``, and what is wrong with it."""
    calls, several = json.loads(text)
    schema = _call_schema(calls, ("items",)) if several else _call_schema(calls, ())
    guide = document({"type": "array", "minItems": 1, "items": schema} if several else schema)
    return guide, guide_fault(guide)


def _call_schema(calls: Sequence[tuple[str, Schema]], place: Path) -> Schema:
    """The schema of one of ``calls``, an object of ``name`` and ``arguments``, for use at ``place``."""
    if len(calls) == 1:
        return _call_of(*calls[0], place)
    return {"anyOf": [_call_of(*call, (*place, "anyOf", str(index))) for index, call in enumerate(calls)]}


def _call_of(name: str, parameters: Schema, place: Path) -> Schema:
    """The schema of a call of the function ``name``, which stands at ``place``."""
    return {
        "type": "object",
        "properties": {"name": {"const": name}, "arguments": self_contained(parameters, place + _ARGUMENTS)},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def _arguments(tool: FunctionTool) -> Schema:
    """The schema of the arguments of ``tool``, narrowed to objects where it leaves more open."""
    return NO_ARGUMENTS if tool.parameters is None else {**tool.parameters, "type": "object"}


def _check_together(size: int, most: int, which: str) -> None:
    if size > most:
        message = f"The functions' {which} have more than {most} characters together."
        raise ApiError("invalid_request", message, "tools")


def _check_object(tool: FunctionTool, param: str) -> None:
    types: Any = (tool.parameters or {}).get("type", "object")
    if types != "object" and not (isinstance(types, list) and "object" in types):
        message = f"The parameters of a function are an object; their schema has the type {json.dumps(types)[:40]}."
        raise ApiError("invalid_request", message, param)


def _check_schema(text: str, param: str) -> None:
    path = schema_fault(text)
    if path is not None:
        raise ApiError("invalid_request", f"Not a valid JSON Schema at '{param}{path}'.", param)
