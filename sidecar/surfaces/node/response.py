"""The node's response object: its members before the answer fills them, and their JSON Schema.

Every member is always present; ``completed_at`` is null until the response has completed.
"""

from __future__ import annotations

from collections.abc import Mapping

from sidecar.responses.echo import echo_format, echo_tool_choice
from sidecar.responses.errors import OPENAI_FAILED_CODES
from sidecar.responses.json_text import Json
from sidecar.responses.request import ResponsesRequest
from sidecar.surfaces.openapi.answers import OUTPUT_ITEM
from sidecar.surfaces.openapi.shorthand import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    STRING,
    UNIX_TIME,
    const,
    list_of,
    object_of,
    or_null,
    ref,
)


def new_response(request: ResponsesRequest, response_id: str, created_at: int) -> Json:
    """The response object for ``request``, in progress; ``created_at`` is in seconds since the epoch."""
    return {
        "id": response_id,
        "object": "response",
        "created_at": created_at,
        "completed_at": None,
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": request.instructions,
        "max_output_tokens": request.max_output_tokens,
        "model": request.model,
        "output": [],
        "parallel_tool_calls": request.parallel_tool_calls,
        "previous_response_id": None,
        "reasoning": {"effort": request.reasoning.effort, "summary": request.reasoning.summary},
        "store": False,
        "temperature": request.temperature,
        "text": {"format": echo_format(request.text.format), "verbosity": request.text.verbosity or "medium"},
        "tool_choice": echo_tool_choice(request.tool_choice),
        "tools": [tool.echo() for tool in request.tools],
        "top_p": request.top_p,
        "truncation": "disabled",
        "metadata": request.metadata,
        "usage": None,
    }


def extension(node: str, timing: Mapping[str, float], route: str) -> Json:
    """What the final response has beyond OpenAI's members; ``timing`` is in milliseconds."""
    return {"b3os": {"route": route, "node": node, "timing": dict(timing)}}


RESPONSE_SCHEMA = object_of(
    "A response. Nothing of it is stored.",
    {
        "id": STRING,
        "object": const("response"),
        "created_at": UNIX_TIME,
        "completed_at": or_null(UNIX_TIME),
        "status": {"enum": ["in_progress", "completed", "incomplete", "failed"]},
        "background": const(False),
        "error": or_null(object_of("What failed.", {"code": {"enum": list(OPENAI_FAILED_CODES)}, "message": STRING})),
        "incomplete_details": or_null(object_of("Why the answer was cut.", {"reason": const("max_output_tokens")})),
        "instructions": or_null(STRING),
        "max_output_tokens": or_null(INTEGER),
        "model": STRING,
        "output": list_of(OUTPUT_ITEM),
        "parallel_tool_calls": BOOLEAN,
        "previous_response_id": {"type": "null"},
        "reasoning": {"type": "object"},
        "store": const(False),
        "temperature": or_null(NUMBER),
        "text": {"type": "object"},
        "tool_choice": {"anyOf": [STRING, {"type": "object"}]},
        "tools": list_of({"type": "object"}),
        "top_p": or_null(NUMBER),
        "truncation": const("disabled"),
        "metadata": {"type": "object", "additionalProperties": STRING},
        "usage": or_null(ref("Usage")),
        "b3os": object_of(
            "How the answer was made; only on a finished response.",
            {
                "route": {"enum": ["local", "gateway"]},
                "node": STRING,
                "timing": {
                    "type": "object",
                    "description": "Milliseconds from the request's head.",
                    "additionalProperties": NUMBER,
                },
            },
        ),
    },
    optional=("b3os",),
)
