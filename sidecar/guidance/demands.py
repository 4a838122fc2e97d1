"""What the answer to a request must fit: the schema of its text, of its calls' arguments, of demanded calls.

A schema is checked before the model is touched: against the meta-schema of its dialect here, and, where it must be kept
to, by making a grammar of the very document that guides decoding (:mod:`sidecar.guidance.guides`), so that a request
never fails in the runtime because of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sidecar.guidance.guides import Guide
from sidecar.guidance.limits import excess, may_exceed
from sidecar.guidance.positions import Path
from sidecar.guidance.schemas import Schema, schema_fault
from sidecar.guidance.self_contained import OverlargeError, UnresolvableError, self_contained
from sidecar.memory import remembered
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
MOST_GUIDING_BRACES = 30_000
"""``{`` in those: about as many schemas, which are what a look at them costs by, ten microseconds each."""

_REMEMBERED = 4_000_000
_ARGUMENTS: Path = ("properties", "arguments")


@dataclass(frozen=True, slots=True)
class Guiding:
    """A self-contained schema, and the guide that it is, of which a grammar must be made."""

    schema: Schema
    guide: Guide


def answer_schema(request: ResponsesRequest) -> Guiding | None:
    """What the visible text of the answer must fit; ``None`` where that is free.

    Raises:
        ApiError: ``invalid_request``: the client's schema is none, or a grammar of it would be too dear.
    """
    match request.text.format:
        case JsonSchemaFormat(json_schema=schema):
            return _guiding(document(schema), "text.format.schema")
        case JsonObject():
            return Guiding(ANY_OBJECT, Guide(document(ANY_OBJECT), "text.format"))
    return None


def argument_schemas(request: ResponsesRequest) -> Mapping[str, Guiding]:
    """What the arguments of functions must fit that are strict or whose call is demanded.

    Raises:
        ApiError: ``invalid_request``: a function's parameters are no schema; or, of one of those functions, a grammar
            would be too dear, or they are not of an object; or all of them together are too long.
    """
    demanded = {tool.name for tool in demanded_tools(request)}
    schemas: dict[str, Guiding] = {}
    size = guiding_size = guiding_braces = 0
    for index, tool in enumerate(request.tools):
        param = f"tools[{index}].parameters"
        guiding = tool.strict or tool.name in demanded
        parameters = _arguments(tool) if guiding else tool.parameters
        if parameters is None:
            continue
        text = document(parameters)
        size += len(text)
        guiding_size += len(text) * guiding
        guiding_braces += text.count("{") * guiding
        _check_together(size, MOST_TEXT, "schemas", "characters")
        _check_together(guiding_size, MOST_GUIDING_TEXT, "schemas that arguments are kept to", "characters")
        _check_together(guiding_braces, MOST_GUIDING_BRACES, "schemas that arguments are kept to", "opening braces")
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


def calls_guide(tools: Sequence[FunctionTool], arguments: Mapping[str, Guiding], *, several: bool) -> Guide:
    """The guide to a call of one of ``tools``, or to a list of one or more; ``arguments`` has what each takes."""
    text = _calls_guide(tools, arguments, several)
    return Guide(text, "tools", "these functions' schemas")


def document(schema: Schema) -> str:
    """``schema`` as text: a guide for the runtime, if it is self-contained."""
    return json.dumps(schema, ensure_ascii=False)


def _guiding(text: str, param: str) -> Guiding:
    """The schema ``text``, self-contained, if it is one and a grammar of it is not too dear."""
    _check_schema(text, param)
    translated = _translated(text)
    guide = Guide(translated.text, param)
    if translated.fault is not None:
        raise guide.refusal(translated.fault)
    return Guiding(translated.schema, guide)


@dataclass(frozen=True, slots=True)
class _Translated:
    """A self-contained schema, the same as text, and why decoding cannot be guided by it, if that is seen already."""

    schema: Schema
    text: str
    fault: str | None = None


@remembered(_REMEMBERED)
def _translated(text: str) -> _Translated:
    try:
        schema = self_contained(json.loads(text))
    except UnresolvableError:
        return _Translated({}, "", "a reference does not lead to a schema in it")
    except OverlargeError as error:
        return _Translated({}, "", str(error))
    return _Translated(schema, document(schema), excess(schema) if may_exceed(text) else None)


def _calls_guide(tools: Sequence[FunctionTool], arguments: Mapping[str, Guiding], several: bool) -> str:
    place: Path = ("items",) if several else ()
    if len(tools) == 1:
        calls = _call_of(tools[0], arguments, place)
    else:
        members = [_call_of(tool, arguments, (*place, "anyOf", str(index))) for index, tool in enumerate(tools)]
        calls = f'{{"anyOf": [{", ".join(members)}]}}'
    return f'{{"type": "array", "minItems": 1, "items": {calls}}}' if several else calls


def _call_of(tool: FunctionTool, arguments: Mapping[str, Guiding], place: Path) -> str:
    """The schema of a call of ``tool``, which stands at ``place``, as text."""
    text = arguments[tool.name].guide.document
    # Only a reference tells where a schema stands.
    if '"$ref"' in text:
        text = document(self_contained(_arguments(tool), place + _ARGUMENTS))
    properties = f'{{"name": {{"const": {json.dumps(tool.name, ensure_ascii=False)}}}, "arguments": {text}}}'
    return (
        f'{{"type": "object", "properties": {properties}, "required": ["name", "arguments"], '
        '"additionalProperties": false}'
    )


def _arguments(tool: FunctionTool) -> Schema:
    """The schema of the arguments of ``tool``, narrowed to objects where it leaves more open."""
    return NO_ARGUMENTS if tool.parameters is None else {**tool.parameters, "type": "object"}


def _check_together(count: int, most: int, which: str, what: str) -> None:
    if count > most:
        message = f"The functions' {which} have more than {most} {what} together."
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
