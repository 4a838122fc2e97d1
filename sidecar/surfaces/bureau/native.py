"""Requests of the bureau surface for models of native upstreams: forwarded as they are sent, so little of them is read.

What is read is what is ours to know, and what may not pass: hosted tools, whose cost cannot be reserved, and whatever
is kept at the upstream, where all teams share an account.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from sidecar.responses.json_text import Json
from sidecar.responses.request import ResponsesRequest
from sidecar.responses.request_model import fault
from sidecar.responses.wording import shown
from sidecar.surfaces.bureau.parameters import PARAMETERS
from sidecar.surfaces.bureau.unions import TYPE_WORDS, Extension
from sidecar.surfaces.parameters import Accepted, Parameter

WEB_SEARCH = frozenset({"web_search", "web_search_2025_08_26"})
_TOOLS = WEB_SEARCH | {"function", "custom", "local_shell", "apply_patch", "namespace", "tool_search"}


def _check_item(item: Json) -> Json:
    kind = item.get("type")
    if kind is None:
        if not isinstance(item.get("role"), str):
            raise fault("Missing required parameter: '{path}'.", member="type")
    elif not isinstance(kind, str):
        raise fault("Invalid type for '{path}': expected a string.", member="type")
    elif kind in TYPE_WORDS["item"]:
        raise fault(TYPE_WORDS["item"][kind], code="unsupported_parameter")
    for place, part in _parts(item):
        if isinstance(part, dict) and part.get("file_id") is not None:
            message = "'{path}' is not supported: files are not stored; send the file itself."
            raise fault(message, member=f"{place}.file_id", code="unsupported_parameter")
    tools = item.get("tools")
    for index, tool in enumerate(tools if isinstance(tools, list) else ()):
        _check_tool(tool, f"tools[{index}]")
    return item


def _parts(item: Json) -> Iterator[tuple[str, Any]]:
    for name in ("content", "output"):
        parts = item.get(name)
        for index, part in enumerate(parts if isinstance(parts, list) else ()):
            yield f"{name}[{index}]", part


def _check_tool(tool: Any, place: str = "") -> None:
    kind = tool.get("type") if isinstance(tool, dict) else None
    if not isinstance(kind, str):
        raise fault("Missing required parameter: '{path}'.", member=f"{place}.type" if place else "type")
    if kind not in _TOOLS:
        words = TYPE_WORDS["tool"].get(kind, f"'{{path}}' is a tool of type '{shown(kind)}', which is not supported.")
        raise fault(words, member=place, code="unsupported_parameter")
    inner = tool.get("tools")
    for index, one in enumerate(inner if isinstance(inner, list) else ()):
        _check_tool(one, f"{place}.tools[{index}]" if place else f"tools[{index}]")


def _checked_tool(tool: Json) -> Json:
    _check_tool(tool)
    return tool


_Item = Annotated[Json, AfterValidator(_check_item)]
_Tool = Annotated[Json, AfterValidator(_checked_tool)]


class NativeBureauRequest(ResponsesRequest[_Item, _Tool, Any]):
    """The parameters of ``POST /v1/responses`` for a native upstream; those that are only forwarded may be anything."""

    instructions: Any = None
    tool_choice: Any = None
    parallel_tool_calls: Any = None
    text: dict[str, Any] = Field(default_factory=dict)  # type: ignore[assignment]
    reasoning: dict[str, Any] = Field(default_factory=dict)  # type: ignore[assignment]
    include: list[str] = Field(default_factory=list)  # type: ignore[assignment]
    temperature: Any = None
    top_p: Any = None
    top_logprobs: Any = None
    max_tool_calls: Annotated[int, Field(ge=1)] | None = None
    truncation: Any = None
    stream_options: Any = None
    prompt_cache_key: Any = None
    service_tier: Any = None
    ib: Extension | None = None


_ALSO_REFUSED = ("conversation", "prompt", "background")

NATIVE_PARAMETERS = tuple(
    row if row.name in _ALSO_REFUSED else Parameter(row.name, Accepted(), default=row.default)
    for row in PARAMETERS
    if row.top_level
)
"""All that OpenAI's endpoint takes, but for what nobody keeps."""


def new_response(request: ResponsesRequest, response_id: str, created_at: int) -> Json:
    """The response object for ``request``, in progress: what was sent, or OpenAI's default.

    The upstream's own members replace all of it that it tells; ``created_at`` is in seconds since the epoch.
    """
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
        "max_tool_calls": request.max_tool_calls,
        "model": request.model,
        "output": [],
        "parallel_tool_calls": _or(request.parallel_tool_calls, True),
        "presence_penalty": 0.0,
        "previous_response_id": request.previous_response_id,
        "prompt_cache_key": request.prompt_cache_key,
        "reasoning": {"effort": None, "summary": None, **dict(request.reasoning)},
        "safety_identifier": request.safety_identifier,
        "service_tier": _or(request.service_tier, "default"),
        "store": False,
        "temperature": _or(request.temperature, 1.0),
        "text": {"format": {"type": "text"}, "verbosity": "medium", **dict(request.text)},
        "tool_choice": _or(request.tool_choice, "auto"),
        "tools": request.tools,
        "top_logprobs": _or(request.top_logprobs, 0),
        "top_p": _or(request.top_p, 1.0),
        "truncation": _or(request.truncation, "disabled"),
        "user": request.user,
        "metadata": request.metadata,
        "usage": None,
    }


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value
