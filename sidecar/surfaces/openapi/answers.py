"""The JSON Schemas of what a surface answers. Source: the node surface's response schema, OpenAI's Models API."""

from __future__ import annotations

from typing import Any

from sidecar.responses.errors import CODES
from sidecar.responses.open_items import Json


def _object(description: str, members: dict[str, Json], optional: tuple[str, ...] = ()) -> Json:
    return {
        "type": "object",
        "description": description,
        "properties": members,
        "required": [name for name in members if name not in optional],
    }


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _list_of(items: Json) -> Json:
    return {"type": "array", "items": items}


def _or_null(schema: Json) -> Json:
    return {"anyOf": [schema, {"type": "null"}]}


def _const(value: Any) -> Json:
    return {"const": value}


_STRING: Json = {"type": "string"}
_INTEGER: Json = {"type": "integer"}
_NUMBER: Json = {"type": "number"}
_BOOLEAN: Json = {"type": "boolean"}
_COUNT: Json = {"type": "integer", "minimum": 0}
_UNIX_TIME: Json = {"type": "integer", "description": "Seconds since the epoch."}
_ITEM_STATUS: Json = {"enum": ["in_progress", "completed", "incomplete"]}

ANSWER_SCHEMAS: dict[str, Json] = {
    "Response": _object(
        "A response. Nothing of it is stored.",
        {
            "id": _STRING,
            "object": _const("response"),
            "created_at": _UNIX_TIME,
            "completed_at": _or_null(_UNIX_TIME),
            "status": {"enum": ["in_progress", "completed", "incomplete", "failed"]},
            "background": _const(False),
            "error": _or_null(_object("What failed.", {"code": _STRING, "message": _STRING})),
            "incomplete_details": _or_null(_object("Why the answer was cut.", {"reason": _const("max_output_tokens")})),
            "instructions": _or_null(_STRING),
            "max_output_tokens": _or_null(_INTEGER),
            "model": _STRING,
            "output": _list_of({"oneOf": [_ref("OutputMessage"), _ref("OutputReasoning"), _ref("OutputFunctionCall")]}),
            "parallel_tool_calls": _BOOLEAN,
            "previous_response_id": {"type": "null"},
            "reasoning": {"type": "object"},
            "store": _const(False),
            "temperature": _or_null(_NUMBER),
            "text": {"type": "object"},
            "tool_choice": {"anyOf": [_STRING, {"type": "object"}]},
            "tools": _list_of({"type": "object"}),
            "top_p": _or_null(_NUMBER),
            "truncation": _const("disabled"),
            "metadata": {"type": "object", "additionalProperties": _STRING},
            "usage": _or_null(_ref("Usage")),
            "b3os": _object(
                "How the answer was made; only on a finished response.",
                {
                    "route": {"enum": ["local", "gateway"]},
                    "node": _STRING,
                    "timing": {
                        "type": "object",
                        "description": "Milliseconds from the request's head.",
                        "additionalProperties": _NUMBER,
                    },
                },
            ),
        },
        optional=("b3os",),
    ),
    "OutputMessage": _object(
        "A message of the assistant.",
        {
            "type": _const("message"),
            "id": _STRING,
            "status": _ITEM_STATUS,
            "role": _const("assistant"),
            "content": _list_of(
                _object(
                    "Text.",
                    {
                        "type": _const("output_text"),
                        "text": _STRING,
                        "annotations": _list_of({"type": "object"}),
                        "logprobs": _list_of({"type": "object"}),
                    },
                )
            ),
        },
    ),
    "OutputReasoning": _object(
        "What the model thought before it answered.",
        {
            "type": _const("reasoning"),
            "id": _STRING,
            "status": _ITEM_STATUS,
            "summary": _list_of(_ref("ReasoningText")),
            "content": _list_of(_ref("ReasoningText")),
        },
        optional=("status", "content"),
    ),
    "OutputFunctionCall": _object(
        "A call that the client is to make.",
        {
            "type": _const("function_call"),
            "id": _STRING,
            "status": _ITEM_STATUS,
            "call_id": _STRING,
            "name": _STRING,
            "arguments": {"type": "string", "description": "JSON text."},
        },
    ),
    "Usage": _object(
        "Tokens.",
        {
            "input_tokens": _COUNT,
            "input_tokens_details": _object(
                "Part of the input tokens.", {"cached_tokens": _COUNT, "cache_write_tokens": _COUNT}
            ),
            "output_tokens": _COUNT,
            "output_tokens_details": _object("Part of the output tokens.", {"reasoning_tokens": _COUNT}),
            "total_tokens": _COUNT,
        },
    ),
    "Error": _object(
        "Any failure.",
        {
            "error": _object(
                "What failed.",
                {
                    "message": _STRING,
                    "type": {"enum": sorted({kind.type for kind in CODES.values()})},
                    "param": _or_null({"type": "string", "description": "A path such as `input[0].content`."}),
                    "code": {"enum": list(CODES)},
                },
            )
        },
    ),
    "Model": _object(
        "A model that the node serves.",
        {"id": _STRING, "object": _const("model"), "created": _UNIX_TIME, "owned_by": _STRING},
    ),
    "ModelList": _object(
        "All models, an alias as a model of its own.", {"object": _const("list"), "data": _list_of(_ref("Model"))}
    ),
}
