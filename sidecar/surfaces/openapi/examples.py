"""Examples, made by the code that answers: a request of the surface, its response and its events, and each error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain

from sidecar.responses.errors import CODES, ApiError
from sidecar.responses.events import EventWriter
from sidecar.responses.ids import ResponseIds
from sidecar.responses.json_text import Json
from sidecar.responses.open_items import ReasoningForm
from sidecar.responses.usage import Usage
from sidecar.surfaces.surface import Surface

_IDS = ResponseIds("01m5t5tmscqev5tf32q87tr1v5")
_CREATED_AT = 1793001600
_REQUEST_ID = "req_01m5t4yg394wegr3j4y01qb363"


def response_example(surface: Surface) -> Json:
    """The response to the surface's example of a request."""
    return _play(surface)[1]


def event_examples(surface: Surface) -> dict[str, Json]:
    """The events of the same response, streamed, and of one that fails: the last of each type."""
    return {event["type"]: event for event in chain(_parse(_play(surface)[0]), _parse(_failure(surface)))}


def error_example(surface: Surface, code: str) -> Json:
    """An error body."""
    error = ApiError(code, CODES[code].meaning.replace("`", ""))
    return {"error": surface.error_members(error, _REQUEST_ID)}


def _play(surface: Surface) -> tuple[bytes, Json]:
    """The events of an answer with every kind of item, and the final response."""
    response = _new_response(surface)
    writer = EventWriter(_IDS, response, ReasoningForm(mirrored=True))
    written = [writer.start()]
    written += [writer.open_reasoning(), writer.delta("The user asks for the weather."), writer.close("completed")]
    written += [writer.open_message(), writer.delta("Let me look."), writer.close("completed")]
    written += [writer.open_call("get_weather"), writer.delta('{"city":"Eugene"}'), writer.close("completed")]
    done = {
        **response,
        "status": "completed",
        "completed_at": _CREATED_AT + 1,
        "output": writer.output,
        "usage": Usage(input_tokens=182, output_tokens=18, reasoning_tokens=7).to_json(),
        **surface.extension("n1", {"ttft_ms": 41.2, "total_ms": 97.1}, "local"),
    }
    written.append(writer.finish(done))
    return b"".join(written), done


def _failure(surface: Surface) -> bytes:
    """The events of a response that fails after its start."""
    response = _new_response(surface)
    writer = EventWriter(_IDS, response)
    error = ApiError("internal", f"internal error (request {_REQUEST_ID})")
    failed = {"status": "failed", "error": {"code": error.failed_code, "message": error.message}}
    written = [writer.start(), writer.finish({**response, **failed, "usage": Usage().to_json()})]
    return b"".join([*written, writer.error(error, surface.error_members(error, _REQUEST_ID))])


def _new_response(surface: Surface) -> Json:
    return surface.new_response(surface.request_model.model_validate(surface.example), _IDS.response, _CREATED_AT)


def _parse(events: bytes) -> Iterator[Json]:
    for line in events.splitlines():
        if line.startswith(b"data: "):
            yield json.loads(line.removeprefix(b"data: "))
