"""The JSON Schemas of answers that all surfaces share. Source: ``sidecar.responses``, OpenAI's Models API."""

from __future__ import annotations

from collections.abc import Sequence

from sidecar.responses.errors import CODES
from sidecar.responses.json_text import Json
from sidecar.surfaces.openapi.shorthand import COUNT, STRING, UNIX_TIME, const, list_of, object_of, or_null, ref

_ITEM_STATUS: Json = {"enum": ["in_progress", "completed", "incomplete"]}

OUTPUT_ITEM: Json = {"oneOf": [ref("OutputMessage"), ref("OutputReasoning"), ref("OutputFunctionCall")]}
"""An item of ``output``."""

SHARED_SCHEMAS: dict[str, Json] = {
    "OutputMessage": object_of(
        "A message of the assistant.",
        {
            "type": const("message"),
            "id": STRING,
            "status": _ITEM_STATUS,
            "role": const("assistant"),
            "content": list_of(ref("OutputTextContent")),
        },
    ),
    "OutputTextContent": object_of(
        "Text.",
        {
            "type": const("output_text"),
            "text": STRING,
            "annotations": list_of({"type": "object"}),
            "logprobs": list_of({"type": "object"}),
        },
    ),
    "OutputReasoning": object_of(
        "What the model thought before it answered.",
        {
            "type": const("reasoning"),
            "id": STRING,
            "status": _ITEM_STATUS,
            "summary": list_of(ref("SummaryTextContent")),
            "content": list_of(ref("ReasoningTextContent")),
            "encrypted_content": {"type": "string", "description": "The reasoning, sealed: to be sent back as it is."},
        },
        optional=("encrypted_content",),
    ),
    "ReasoningTextContent": object_of("Reasoning as it is.", {"type": const("reasoning_text"), "text": STRING}),
    "SummaryTextContent": object_of("A summary of the reasoning.", {"type": const("summary_text"), "text": STRING}),
    "OutputFunctionCall": object_of(
        "A call that the client is to make.",
        {
            "type": const("function_call"),
            "id": STRING,
            "status": _ITEM_STATUS,
            "call_id": STRING,
            "name": STRING,
            "arguments": {"type": "string", "description": "JSON text."},
        },
    ),
    "Usage": object_of(
        "Tokens.",
        {
            "input_tokens": COUNT,
            "input_tokens_details": object_of(
                "Part of the input tokens.", {"cached_tokens": COUNT, "cache_write_tokens": COUNT}
            ),
            "output_tokens": COUNT,
            "output_tokens_details": object_of("Part of the output tokens.", {"reasoning_tokens": COUNT}),
            "total_tokens": COUNT,
        },
    ),
    "ResponseInProgress": object_of(
        "A response that is still being made.",
        {"id": STRING, "object": const("response"), "status": const("in_progress")},
    ),
    "DeletedResponse": object_of(
        "A response that is no longer there.",
        {"id": STRING, "object": const("response"), "deleted": const(True)},
    ),
    "ItemList": object_of(
        "A page of items.",
        {
            "object": const("list"),
            "data": list_of({"type": "object"}),
            "first_id": or_null(STRING),
            "last_id": or_null(STRING),
            "has_more": {"type": "boolean"},
        },
    ),
    "Model": object_of(
        "A model that is served.",
        {
            "id": STRING,
            "object": const("model"),
            "created": UNIX_TIME,
            "owned_by": STRING,
            "b3os": object_of("How it is served, where that is not as its makers meant.", {"notes": list_of(STRING)}),
        },
        optional=("b3os",),
    ),
    "ModelList": object_of(
        "All models, an alias as a model of its own.", {"object": const("list"), "data": list_of(ref("Model"))}
    ),
}


def error_schemas(codes: Sequence[str]) -> dict[str, Json]:
    """An error body with one of ``codes``. A surface with further members has its own ``ErrorDetails``."""
    return {
        "Error": object_of("Any failure.", {"error": ref("ErrorDetails")}),
        "ErrorDetails": object_of(
            "What failed.",
            {
                "message": STRING,
                "type": {"enum": sorted({CODES[code].type for code in codes})},
                "param": or_null({"type": "string", "description": "A path such as `input[0].content`."}),
                "code": {"enum": list(codes)},
            },
        ),
    }
