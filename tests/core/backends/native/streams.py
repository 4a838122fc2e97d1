"""Streams of a native upstream, written by hand."""

from __future__ import annotations

import json
from typing import Any

from sidecar.backends.native.response import Telling

USAGE = {
    "input_tokens": 11,
    "input_tokens_details": {"cached_tokens": 3},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 18,
}
MESSAGE = {"type": "message", "id": "msg_up", "role": "assistant", "status": "completed", "content": []}
TELLING = Telling(
    {"id": "", "object": "response", "status": "in_progress", "output": [], "temperature": 1.0, "usage": None},
    {"id": "resp_ours", "model": "v/m", "store": False, "user": None},
)


def event(type_: str, number: int, **members: Any) -> bytes:
    """One event as OpenAI writes it."""
    data = json.dumps({"type": type_, "sequence_number": number, **members}, separators=(",", ":"))
    return f"event: {type_}\ndata: {data}\n\n".encode()


def response(status: str, **members: Any) -> dict[str, Any]:
    """An upstream's response object."""
    return {"id": "resp_up", "object": "response", "status": status, "model": "m-2026", "store": True, **members}


def opening() -> bytes:
    """The events before anything is generated."""
    return event("response.created", 0, response=response("in_progress")) + event(
        "response.in_progress", 1, response=response("in_progress")
    )


def delta(number: int, text: str) -> bytes:
    """More text."""
    return event("response.output_text.delta", number, item_id="msg_up", output_index=0, content_index=0, delta=text)


def ending(number: int, type_: str = "response.completed", **members: Any) -> bytes:
    """The last event."""
    status = type_.rpartition(".")[2]
    whole = {"output": [MESSAGE], "usage": USAGE, **members}
    return event(type_, number, response=response(status, **whole))


def stream(*texts: str) -> bytes:
    """A whole answer."""
    added = event("response.output_item.added", 2, output_index=0, item={**MESSAGE, "status": "in_progress"})
    deltas = b"".join(delta(3 + at, text) for at, text in enumerate(texts))
    return opening() + added + deltas + ending(3 + len(texts))
