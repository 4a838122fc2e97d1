"""ReceivedEvent streams as tests read them: any violation is an error."""

from conformance.sse import ReceivedEvent, SseReader
from conformance.stream import check_stream


def parse(piece: bytes) -> list[ReceivedEvent]:
    """The events of a piece of a stream that holds whole events; comments are passed over."""
    reader = SseReader()
    events = list(reader.feed(piece))
    reader.end()
    assert not reader.violations
    return events


def whole_stream(stream: bytes) -> list[ReceivedEvent]:
    """The events of a stream from its start to its end, in the order that the rules of the protocol demand."""
    events, violations = check_stream(stream)
    assert not violations
    return events
