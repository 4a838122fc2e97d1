"""What an answer must be, as a JSON Schema for guided decoding, and whether a schema can be one at all.

A schema is checked before the model is touched: against the meta-schema of its dialect (jsonschema) and by compiling
its grammar (llguidance), so that a request never fails in the runtime because of it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import jsonschema
from llguidance import LLMatcher

from sidecar.responses.errors import ApiError
from sidecar.responses.request import ResponsesRequest
from sidecar.responses.text_format import JsonObject, JsonSchemaFormat
from sidecar.responses.tools import FunctionTool, NamedFunction

Schema = dict[str, Any]

_REASON_LENGTH = 100

ANY_OBJECT: Schema = {"type": "object"}

# Keywords whose members are schemas by name: a member called «format» is no keyword there.
_BY_NAME = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")


def check_schemas(request: ResponsesRequest) -> None:
    """Look at every schema of the request, and whether a grammar can be made of those that must be kept to.

    Raises:
        ApiError: ``invalid_request`` with the schema's path: it is no JSON Schema, or no grammar can be made of it.
    """
    if isinstance(request.text.format, JsonSchemaFormat):
        _check_schema(request.text.format.json_schema, "text.format.schema")
        _check_grammar(request.text.format.json_schema, "text.format.schema")
    demanded = demanded_tools(request)
    for index, tool in enumerate(request.tools):
        if tool.parameters is None:
            continue
        _check_schema(tool.parameters, f"tools[{index}].parameters")
        if tool.strict or tool in demanded:
            _check_grammar(tool.parameters, f"tools[{index}].parameters")


def answer_schema(request: ResponsesRequest) -> Schema | None:
    """The schema that the visible text of the answer must fit; ``None`` for free text."""
    match request.text.format:
        case JsonSchemaFormat(json_schema=schema):
            return schema
        case JsonObject():
            return ANY_OBJECT
    return None


def demanded_tools(request: ResponsesRequest) -> Sequence[FunctionTool]:
    """The tools one of which ``tool_choice`` demands a call of; none where the model is free to answer in text."""
    match request.tool_choice:
        case "required":
            return request.tools
        case NamedFunction(name=name):
            return [tool for tool in request.tools if tool.name == name]
    return ()


def call_schema(tools: Sequence[FunctionTool]) -> Schema:
    """The schema of a call of one of ``tools``: an object of ``name`` and ``arguments``."""
    if len(tools) == 1:
        return _call_of(tools[0], "#")
    return {"anyOf": [_call_of(tool, f"#/anyOf/{index}") for index, tool in enumerate(tools)]}


def fits(text: str, schema: Schema) -> bool:
    """Whether ``text`` is JSON that fits ``schema``."""
    try:
        value = json.loads(text)
        return bool(_validator(schema).is_valid(value))
    except (ValueError, RecursionError):
        return False


def _call_of(tool: FunctionTool, place: str) -> Schema:
    """The schema of a call of ``tool``, which stands at ``place`` (a JSON pointer as a URI fragment)."""
    parameters = _moved(tool.parameters or ANY_OBJECT, f"{place}/properties/arguments")
    return {
        "type": "object",
        "properties": {"name": {"const": tool.name}, "arguments": parameters},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def _moved(schema: Any, place: str) -> Any:
    """``schema`` with its references to itself pointing to its new ``place``."""
    if isinstance(schema, list):
        return [_moved(member, place) for member in schema]
    if not isinstance(schema, dict):
        return schema
    moved = {key: _moved(value, place) for key, value in schema.items()}
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        moved["$ref"] = place + reference[1:]
    return moved


def guide_document(schema: Schema) -> str:
    """``schema`` as the runtime's grammar engine takes it."""
    return json.dumps(_without_formats(schema), ensure_ascii=False)


def _check_schema(schema: Schema, param: str) -> None:
    validator = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path)
        raise ApiError("invalid_request", f"Not a valid JSON Schema at '{param}{path}'.", param) from error


def _check_grammar(schema: Schema, param: str) -> None:
    fault = LLMatcher.validate_grammar(LLMatcher.grammar_from_json_schema(guide_document(schema)))
    if fault:
        reason = "".join(filter(str.isprintable, fault.splitlines()[0]))[:_REASON_LENGTH]
        raise ApiError("invalid_request", f"Decoding cannot be guided by this JSON Schema: {reason}", param)


def _without_formats(schema: Any) -> Any:
    """``schema`` without ``format``, which engines know in part and refuse in part, and which is never a fault."""
    if isinstance(schema, list):
        return [_without_formats(member) for member in schema]
    if not isinstance(schema, dict):
        return schema
    plain: Schema = {}
    for key, value in schema.items():
        if key in _BY_NAME and isinstance(value, dict):
            plain[key] = {name: _without_formats(member) for name, member in value.items()}
        elif key in ("enum", "const", "default", "examples"):
            plain[key] = value
        elif key != "format":
            plain[key] = _without_formats(value)
    return plain


def _validator(schema: Schema) -> Any:
    return jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)(schema)
