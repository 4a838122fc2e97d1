"""The order of a stream: its start, its numbers, its one end.

Grammar (OpenAI's streaming reference)::

    stream   := created [queued] in_progress item* terminal
    item     := output_item.added (part* | arguments) output_item.done
    part     := part.added text.delta* text.done part.done
    terminal := completed | incomplete | failed [error] | error [failed]

What happens inside an item is followed in :mod:`conformance.items`.
"""

from __future__ import annotations

from collections.abc import Iterable

from conformance.documents import check_error_event, check_response
from conformance.event_types import FAILURES, KEEP_ALIVE, MEMBERS, STATUSES, TERMINALS
from conformance.items import StreamedItems
from conformance.rules import Violation
from conformance.shapes import Json, misfits
from conformance.sse import ReceivedEvent

_NEXT_STAGE = {
    "response.created": {"": "created"},
    "response.queued": {"created": "created"},
    "response.in_progress": {"created": "started"},
}
"""How the start of a stream goes on, by event and stage."""

_KEPT = {"id": "response-id", "created_at": "response-unchanged", "model": "response-unchanged"}
"""The members that a response keeps from its start, and the rule for each."""


class StreamGrammar:
    """Checks the events of one stream in order; ``violations`` grows as it is fed."""

    def __init__(self) -> None:
        self.violations: list[Violation] = []
        self._events = 0
        self._next_number = 0
        self._stage = ""
        self._kept: Json = {}
        self._terminals: list[str] = []
        self._items = StreamedItems(self._found)

    def feed(self, event: ReceivedEvent) -> None:
        """The next event."""
        self._check_number(event.data.get("sequence_number"))
        if event.type not in MEMBERS:
            self._found("known-event", f"the type {event.type!r:.80} is not one of OpenAI's")
        elif self._terminals and event.type not in TERMINALS:
            self._found("after-terminal", f"{event.type} follows {self._terminals[-1]}")
        else:
            self._take(event)
        self._events += 1

    def end(self) -> None:
        """The stream has ended."""
        if not self._terminals:
            self._found("one-terminal", "the stream has no end event")

    def _check_number(self, number: object) -> None:
        if type(number) is not int or number != self._next_number:
            self._found("sequence-number", f"sequence_number is {number!r:.20} instead of {self._next_number}")
        self._next_number = number + 1 if type(number) is int else self._next_number + 1

    def _take(self, event: ReceivedEvent) -> None:
        for words in misfits(event.data, MEMBERS[event.type]):
            self._found("event-fields", f"{event.type}: {words}")
        if event.type in TERMINALS:
            self._check_end(event.type)
        elif event.type != KEEP_ALIVE:
            self._check_start(event.type)
        if event.type == "error":
            self._report(check_error_event(event.data))
            return
        if event.data.get("error"):
            self._found("stray-error", f"{event.type} has a member 'error'")
        members = _well_formed(event)
        if event.type in STATUSES:
            self._take_response(event.type, members["response"])
        else:
            self._items.take(event.type, members)

    def _check_start(self, type_: str) -> None:
        if type_ in _NEXT_STAGE:
            if self._stage not in _NEXT_STAGE[type_]:
                self._found("stream-start", f"{type_} does not belong here")
            self._stage = _NEXT_STAGE[type_].get(self._stage, "started")
        elif self._stage != "started":
            self._found("stream-start", f"{type_} comes before response.created and response.in_progress")
            self._stage = "started"

    def _check_end(self, type_: str) -> None:
        self._terminals.append(type_)
        if len(self._terminals) > 1 and not (len(self._terminals) == 2 and {*self._terminals} == FAILURES):
            self._found("one-terminal", f"{type_} follows {self._terminals[-2]}")

    def _take_response(self, type_: str, response: Json | None) -> None:
        if response is None:
            return
        self._check_kept(response)
        expected = STATUSES[type_]
        status = response.get("status")
        if status not in expected:
            self._found("response-status", f"{type_} holds a response that is {status!r:.40}")
        self._report(check_response(response, status if status in expected else expected[0]))
        if type_ not in TERMINALS:
            if response.get("output") or response.get("usage") is not None:
                self._found("starts-empty", f"{type_} has output or usage")
        elif type_ not in FAILURES and isinstance(response.get("output"), list) and len(self._terminals) == 1:
            self._items.end(response["output"])

    def _check_kept(self, response: Json) -> None:
        """Whether the response is still the one that began."""
        for name, rule in _KEPT.items():
            # What is missing is told by the response's shape.
            now = response.get(name)
            before = self._kept.setdefault(name, now) if now is not None else None
            if now != before:
                self._found(rule, f"the response's {name} was {before!r:.80} and became {now!r:.80}")

    def _found(self, rule: str, message: str) -> None:
        self.violations.append(Violation(rule, message, self._events))

    def _report(self, violations: Iterable[Violation]) -> None:
        self.violations.extend(violation._replace(event_index=self._events) for violation in violations)


def _well_formed(event: ReceivedEvent) -> Json:
    """The members of the event's type; ``None`` for those that are missing or of another kind."""
    return {
        name: event.data[name] if kind.fits(event.data.get(name)) else None
        for name, kind in MEMBERS[event.type].items()
    }
