"""Sizes that depend on the model a request is for."""

from __future__ import annotations

from collections.abc import Sequence

from sidecar.config.model import RequestLimits
from sidecar.responses.errors import ApiError
from sidecar.responses.items import FunctionCallOutput, InputMessage, Item
from sidecar.responses.parts import InputImage, ToolOutputPart
from sidecar.responses.request import ResponsesRequest


def check_size(body_bytes: int, limit: int, who: str) -> None:
    """Raise :class:`ApiError` ``payload_too_large`` for a body above ``limit`` bytes; ``who`` set the limit."""
    if body_bytes > limit:
        raise ApiError("payload_too_large", f"Request body is {body_bytes} bytes; {who} accepts at most {limit}")


def check_limits(request: ResponsesRequest, body_bytes: int, limits: RequestLimits) -> None:
    """Raise :class:`ApiError` ``payload_too_large`` or ``invalid_request`` where a request exceeds ``limits``."""
    check_size(body_bytes, limits.max_request_bytes, "this model")
    check_count("items", len(request.input), limits.max_items, "input")
    check_count("tools", len(request.tools), limits.max_tools, "tools")
    check_count("images", _count_images(request), limits.max_images, "input")


def check_count(noun: str, count: int, limit: int, param: str) -> None:
    """Raise :class:`ApiError` ``invalid_request`` for more than ``limit`` of what ``noun`` names, in ``param``."""
    if count > limit:
        raise ApiError("invalid_request", f"'{param}' holds {count} {noun}; this model accepts at most {limit}.", param)


def _count_images(request: ResponsesRequest) -> int:
    return sum(isinstance(part, InputImage) for item in request.input for part in _input_parts(item))


def _input_parts(item: Item) -> Sequence[ToolOutputPart]:
    if isinstance(item, InputMessage):
        return item.content
    return item.output if isinstance(item, FunctionCallOutput) else ()
