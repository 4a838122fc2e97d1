"""A whole event stream from its bytes: the framing and the order in one."""

from __future__ import annotations

from conformance.grammar import StreamGrammar
from conformance.rules import Violation
from conformance.sse import ReceivedEvent, SseReader


class StreamChecker:
    """Checks one stream, fed in any split. ``events`` and ``violations`` are complete after :meth:`end`."""

    def __init__(self) -> None:
        self.events: list[ReceivedEvent] = []
        self._reader = SseReader()
        self._grammar = StreamGrammar()

    @property
    def violations(self) -> list[Violation]:
        """What was found so far, in the order of the events."""
        found = [*self._reader.violations, *self._grammar.violations]
        return sorted(found, key=lambda violation: violation.event_index or 0)

    @property
    def between_events(self) -> bool:
        """Whether the bytes so far end where an event or a comment ends."""
        return self._reader.between_events

    def feed(self, data: bytes) -> None:
        """The next bytes of the stream."""
        for event in self._reader.feed(data):
            self.events.append(event)
            # After an event that could not be read, the order of the others means nothing.
            if not self._reader.unreadable:
                self._grammar.feed(event)

    def end(self) -> None:
        """The stream has ended."""
        self._reader.end()
        if not self._reader.unreadable:
            self._grammar.end()


def check_stream(stream: bytes) -> tuple[list[ReceivedEvent], list[Violation]]:
    """The events of a whole stream, and what is wrong with it."""
    checker = StreamChecker()
    checker.feed(stream)
    checker.end()
    return checker.events, checker.violations
