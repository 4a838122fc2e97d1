"""A strict reader of event streams for tests: anything but whole events of two lines is an error."""

import json
from typing import Any, NamedTuple


class Event(NamedTuple):
    """One server-sent event."""

    type: str
    data: dict[str, Any]


def parse(stream: bytes) -> list[Event]:
    """The events of a stream; comments are passed over."""
    assert stream.endswith(b"\n\n") or not stream, "the stream ends inside an event"
    events = []
    for block in stream.split(b"\n\n")[:-1]:
        if block.startswith(b":"):
            continue
        first, second = block.split(b"\n")
        assert first.startswith(b"event: ")
        assert second.startswith(b"data: ")
        data = json.loads(second[6:])
        assert data["type"] == first[7:].decode()
        events.append(Event(data["type"], data))
    return events
