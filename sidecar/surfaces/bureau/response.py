"""The bureau's response object: all of OpenAI's members, defaults filled in, so that strict clients can read it."""

from __future__ import annotations

from collections.abc import Mapping

from sidecar.responses.echo import echo_format, echo_tool_choice
from sidecar.responses.errors import OPENAI_FAILED_CODES
from sidecar.responses.json_text import Json
from sidecar.responses.request import ResponsesRequest
from sidecar.surfaces.bureau.answers import ITEM
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
        "frequency_penalty": 0.0,
        "incomplete_details": None,
        "instructions": request.instructions,
        "max_output_tokens": request.max_output_tokens,
        "max_tool_calls": None,
        "model": request.model,
        "output": [],
        "parallel_tool_calls": request.parallel_tool_calls,
        "presence_penalty": 0.0,
        "previous_response_id": request.previous_response_id,
        "prompt_cache_key": request.prompt_cache_key,
        "reasoning": {"effort": request.reasoning.effort, "summary": request.reasoning.summary},
        "safety_identifier": request.safety_identifier,
        "service_tier": "default",
        "store": False,
        "temperature": request.temperature,
        "text": {"format": echo_format(request.text.format), "verbosity": request.text.verbosity or "medium"},
        "tool_choice": echo_tool_choice(request.tool_choice),
        "tools": [tool.echo() for tool in request.tools],
        "top_logprobs": 0,
        "top_p": request.top_p,
        "truncation": "disabled",
        "user": request.user,
        "metadata": request.metadata,
        "usage": None,
    }


def extension(node: str, timing: Mapping[str, float], route: str) -> Json:
    """Nothing: the final response has OpenAI's members and no others."""
    return {}


RESPONSE_SCHEMA = object_of(
    "A response. One that a native upstream gives may have members, and items of types, that are only its own.",
    {
        "id": STRING,
        "object": const("response"),
        "created_at": UNIX_TIME,
        "completed_at": or_null(UNIX_TIME),
        "status": {"enum": ["in_progress", "completed", "incomplete", "failed"]},
        "background": const(False),
        "error": or_null(object_of("What failed.", {"code": {"enum": list(OPENAI_FAILED_CODES)}, "message": STRING})),
        "frequency_penalty": NUMBER,
        "incomplete_details": or_null(
            object_of("Why the answer was cut.", {"reason": {"enum": ["max_output_tokens", "content_filter"]}})
        ),
        "instructions": or_null(STRING),
        "max_output_tokens": INTEGER,
        "max_tool_calls": or_null(INTEGER),
        "model": STRING | {"description": "The slug of the catalog, by whatever name the request asked."},
        "output": list_of(ITEM),
        "parallel_tool_calls": BOOLEAN,
        "presence_penalty": NUMBER,
        "previous_response_id": or_null(STRING),
        "prompt_cache_key": or_null(STRING),
        "reasoning": {"type": "object"},
        "safety_identifier": or_null(STRING),
        "service_tier": STRING,
        "store": BOOLEAN | {"description": "Whether it is kept; the events of a stream say false."},
        "temperature": NUMBER,
        "text": {"type": "object"},
        "tool_choice": {"anyOf": [STRING, {"type": "object"}]},
        "tools": list_of({"type": "object"}),
        "top_logprobs": INTEGER,
        "top_p": NUMBER,
        "truncation": {"enum": ["disabled", "auto"]},
        "user": or_null(STRING),
        "metadata": {"type": "object", "additionalProperties": STRING},
        "usage": or_null(ref("Usage")),
    },
)

MODEL_SCHEMA = object_of(
    "A model of the catalog.",
    {"id": STRING, "object": const("model"), "created": UNIX_TIME, "owned_by": STRING | {"description": "Its vendor."}},
)
