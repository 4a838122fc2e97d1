"""HTTP answers written by hand, sound but for what a test changes."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from conformance.client import Answer, Piece
from sidecar.responses.errors import ApiError
from tests.core.conformance.streams import Json, encode, response, stream

STREAM = {"content-type": "text/event-stream; charset=utf-8", "x-request-id": "r"}
DOCUMENT = {"content-type": "application/json", "x-request-id": "r"}


def answer(status: int, headers: dict[str, str], *chunks: bytes, failure: str | None = None) -> Answer:
    return Answer(status, headers, [Piece(chunk) for chunk in chunks], failure)


def streamed(*items: list[Json], **changes: Any) -> Answer:
    """A stream of ``items``."""
    return answer(200, STREAM, encode(stream(*items, **changes)))


def timed(events: Sequence[Json], seconds: Iterable[float]) -> Answer:
    """A stream whose events came one by one, ``seconds`` after the request."""
    pieces = [Piece(encode([event]), at) for event, at in zip(events, seconds, strict=True)]
    return Answer(200, STREAM, pieces)


def whole(*items: list[Json], status: str = "completed", **changes: Any) -> Answer:
    """A response with ``items``, not streamed."""
    output = [events[-1]["item"] for events in items]
    return answer(200, DOCUMENT, json.dumps(response(status, output, **changes)).encode())


def refused(status: int = 400, code: str = "invalid_request", param: str | None = None) -> Answer:
    """A plain HTTP error."""
    return answer(status, DOCUMENT, ApiError(code, "No.", param).reply().body)
