"""What a surface is: which parameters it takes and refuses, in what order it says so, and the shape of its answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from sidecar.responses.body import parse_json_body
from sidecar.responses.errors import ApiError
from sidecar.responses.open_items import Json
from sidecar.responses.request import ResponsesRequest
from sidecar.responses.validation import to_api_error
from sidecar.responses.wording import shown
from sidecar.surfaces.endpoints import Endpoint, Target, find_target

Check = Callable[[ResponsesRequest], None]
"""A rule of a surface on a request that is well-formed; it raises :class:`ApiError`."""

RENAMED = {
    "messages": "input",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "response_format": "text.format",
    "reasoning_effort": "reasoning.effort",
}
"""Parameters of the chat completions API, and where the same is said in a Responses request."""


@dataclass(frozen=True, eq=False)
class Surface:
    """The policy of one API surface.

    ``endpoints`` are its methods and paths. ``tolerated`` are parameters outside the surface's list that are ignored
    while their value is harmless; ``checks`` run in order on a well-formed request. ``narrowed`` tells readers of the
    OpenAPI document what both mean: the JSON Schemas of tolerated parameters, and of those of which only some values
    pass the checks. ``new_response`` makes the response object of a request from its id and creation time (seconds
    since the epoch); ``extension`` makes the members that the final response has beyond it, from the node's name and
    timings in milliseconds. ``failed_event`` sends ``response.failed`` before the ``error`` event of a stream that
    fails, for clients that read only that.
    """

    endpoints: tuple[Endpoint, ...]
    tolerated: Mapping[str, Callable[[Any], bool]]
    checks: tuple[Check, ...]
    narrowed: Mapping[str, Json]
    new_response: Callable[[ResponsesRequest, str, int], Json]
    extension: Callable[[str, Mapping[str, float]], Json]
    failed_event: bool = False

    def target(self, headers: Mapping[str, str]) -> Target:
        """What a request is for, by ``:method`` and ``:path``; raises :class:`ApiError` where there is nothing."""
        return find_target(self.endpoints, headers[":method"], headers[":path"])

    def accept(self, headers: Mapping[str, str], body: bytes) -> ResponsesRequest:
        """Read a request, or raise :class:`ApiError` with the first fault a client should mend.

        ``headers`` have lower-case names. Faults come in OpenAI's order: media type, JSON, ``model`` and ``input``,
        unlisted parameters, the other parameters, then the surface's own checks.
        """
        check_media_type(headers)
        values = parse_json_body(body)
        try:
            request = ResponsesRequest.model_validate(values)
        except ValidationError as invalid:
            error = to_api_error(invalid)
            if error.param not in ("model", "input"):
                self._refuse_unlisted(values)
            raise error from None
        self._refuse_unlisted(values)
        for check in self.checks:
            check(request)
        return request

    def _refuse_unlisted(self, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            if name in ResponsesRequest.model_fields or value is None:
                continue
            if name in self.tolerated and self.tolerated[name](value):
                continue
            hint = f"; use {RENAMED[name]}" if name in RENAMED else ""
            message = f"{shown(name)} is not supported on this node{hint}"
            raise ApiError("unsupported_parameter", message, shown(name))


def check_media_type(headers: Mapping[str, str]) -> None:
    """Take plain JSON bodies only; raises :class:`ApiError` ``unsupported_media_type`` for all others."""
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json" and not (
        media_type.startswith("application/") and media_type.endswith("+json")
    ):
        raise ApiError("unsupported_media_type", "expected Content-Type: application/json")
    if headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise ApiError("unsupported_media_type", "expected a body without Content-Encoding")
