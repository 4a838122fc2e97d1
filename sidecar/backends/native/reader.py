"""The answer of a native upstream as it passes through: what of it goes to the client, and how it ended.

There is a reader for an event stream and one for a JSON body. Both show themselves to the exchange as a growing answer
does: ``begun`` tells that the model has said something, ``stopped`` that the answer is whole although the upstream may
go on, ``failure`` what it has reported after what it had said, ``mark`` how far the client has come.

A stream's deltas, and events that are not known, go on as they are. Only events that hold a response are read: those
that open it are held until the model says something, so that a failure before that is a plain error, and the one that
ends it is not passed on but given to the exchange as ``response``.
"""

from __future__ import annotations

from sidecar.backends.native.events import Event, EventBlocks, event_of, is_one_delta
from sidecar.backends.native.failures import ENDED_EARLY, NOT_ITS_PROTOCOL, failure_of
from sidecar.backends.native.json_values import read_object
from sidecar.backends.native.response import Telling, searches_in, usage_of
from sidecar.responses.errors import ApiError
from sidecar.responses.json_text import Json, json_bytes
from sidecar.responses.marks import BEGUN, MOST_TOKENS, NOTHING
from sidecar.responses.usage import Usage

MOST_BYTES = 16 * 1024 * 1024
"""Of an answer that is no stream."""
BYTES_OF_A_TOKEN = 4
"""What a token is taken for where the upstream has not told how many there are."""

_OPENING = frozenset({b"response.created", b"response.queued", b"response.in_progress"})
_ENDING = frozenset({b"response.completed", b"response.incomplete"})
_SEARCHED = b"response.web_search_call.completed"
_FAILING = frozenset({b"error", b"response.failed", b"response.cancelled"})
_READ = _OPENING | _ENDING | _FAILING
_WHOLE = ("completed", "incomplete")
_DELTA_MEMBER = b'"delta":"'
_NUMBER_MEMBER = b'"sequence_number":'


class StreamReader:
    """Reads an event stream. ``most_tokens`` is what the answer may have at most, where that is limited."""

    def __init__(self, telling: Telling, most_tokens: int | None) -> None:
        self.begun = False
        self.stopped = False
        self.failure: ApiError | None = None
        self.mark = NOTHING
        self.response: Json | None = None
        """The whole response as it is told, once it is whole."""
        self.usage: Usage | None = None
        """The tokens that the upstream has told, once it has."""
        self.tokens = 0
        """An estimate of those that have passed: one for each delta, or one for every four bytes of its text."""
        self.searches = 0
        """The web searches that are known to have been made."""
        self._telling = telling
        self._most_tokens = MOST_TOKENS if most_tokens is None else most_tokens
        self._blocks = EventBlocks()
        self._opening: list[bytes] = []
        self._ending: Json = {}
        # Its number is read when it is wanted, which it seldom is.
        self._last_numbered = b""

    @property
    def next_number(self) -> int:
        """The sequence number after that of the last event that has passed with one."""
        last = self._last_numbered
        at = last.rfind(_NUMBER_MEMBER)
        digits = last[at + len(_NUMBER_MEMBER) :].lstrip()[:12] if at >= 0 else b""
        end = next((index for index, digit in enumerate(digits) if digit not in b"0123456789"), len(digits))
        return int(digits[:end]) + 1 if end else 0

    def feed(self, data: bytes) -> bytes:
        """What of the upstream's ``data`` goes to the client. This is the per-token path."""
        if self.begun and self._blocks.is_between and is_one_delta(data):
            self._count(data)
            if _NUMBER_MEMBER in data:
                self._last_numbered = data
            return data
        passed: list[bytes] = []
        try:
            for block in self._blocks.feed(data):
                event = event_of(block)
                if event is None:
                    continue
                if event.type in _READ:
                    if not self._take(event, passed):
                        break
                    continue
                if not self.begun:
                    self._begin(passed)
                if event.is_delta:
                    self._count(event.lines)
                elif event.type == _SEARCHED:
                    self.searches += 1
                passed.append(event.lines)
        except ApiError as error:
            self.failure = error
        if not passed:
            return b""
        passed.append(b"")
        events = b"\n\n".join(passed)
        if _NUMBER_MEMBER in events:
            self._last_numbered = events
        return events

    def end(self, whole: bool) -> bytes:
        """What is left of the stream when it has ended; ``whole`` tells whether it was not broken off.

        Raises:
            ApiError: the answer is not complete.
        """
        # Some leave out the blank line after the last event.
        goes_on = not self.stopped and self.failure is None
        events = self.feed(b"\n\n") if whole and goes_on else b""
        if self.failure is not None:
            raise self.failure
        if not self.stopped:
            raise ENDED_EARLY.error()
        return events

    def finish(self, response: Json) -> bytes:
        """The event that ends the stream with ``response``."""
        return _written(self._ending["type"].encode(), {**self._ending, "response": response}) + b"\n\n"

    def _take(self, event: Event, passed: list[bytes]) -> bool:
        """An event that is read; whether the stream goes on after it."""
        told = read_object(event.data)
        if event.type in _FAILING:
            self.failure = failure_of(_error_in(told))
            return False
        response = told.get("response")
        if not isinstance(response, dict):
            raise NOT_ITS_PROTOCOL.error("an event without its response")
        if event.type in _OPENING:
            written = _written(event.type, {**told, "response": self._telling.of(response)})
            (passed if self.begun else self._opening).append(written)
            return True
        if not self.begun:
            self._begin(passed)
        self._ending = {**told, "type": event.type.decode()}
        status = event.type.rpartition(b".")[2].decode()
        self.response = _checked(self._telling.of({**response, "status": status}))
        self.usage, self.searches = usage_of(response), searches_in(self.response)
        self.stopped = True
        return False

    def _count(self, delta: bytes) -> None:
        """Estimate the tokens of the text of a delta event; its escapes are not looked at."""
        begin = delta.find(_DELTA_MEMBER) + len(_DELTA_MEMBER)
        size = delta.find(b'"', begin) - begin if begin >= len(_DELTA_MEMBER) else 0
        tokens = self.tokens + (size // BYTES_OF_A_TOKEN or 1)
        self.tokens = tokens if tokens < self._most_tokens else self._most_tokens
        self.mark = BEGUN | self.tokens

    def _begin(self, passed: list[bytes]) -> None:
        self.begun = True
        self.mark = BEGUN
        passed += self._opening
        self._opening = []


class JsonReader:
    """Reads a response that is no stream."""

    def __init__(self, telling: Telling) -> None:
        self.begun = False
        self.stopped = False
        self.failure: ApiError | None = None
        self.mark = NOTHING
        self.response: Json | None = None
        self.usage: Usage | None = None
        self.tokens = self.searches = 0
        self.next_number = 0
        self._telling = telling
        self._body: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> bytes:
        """Take more of the body."""
        self._size += len(data)
        if self._size > MOST_BYTES:
            self.failure = NOT_ITS_PROTOCOL.error("an endless answer")
        else:
            self._body.append(data)
        return b""

    def end(self, whole: bool) -> bytes:
        """Read the body.

        Raises:
            ApiError: it is no response that has been completed, or been cut.
        """
        if self.failure is not None:
            raise self.failure
        if not whole:
            raise ENDED_EARLY.error()
        response = read_object(b"".join(self._body))
        self._body = []
        self.response = self._told(response)
        self.usage, self.searches = usage_of(response), searches_in(self.response)
        self.begun = self.stopped = True
        return b""

    def _told(self, response: Json) -> Json:
        if response.get("status") in ("failed", "cancelled"):
            raise failure_of(_error_in({"response": response}))
        return _checked(self._telling.of(response))


class CompactionReader(JsonReader):
    """Reads a compacted conversation, which is told unchanged."""

    def _told(self, response: Json) -> Json:
        if response.get("object") != "response.compaction" or not isinstance(response.get("output"), list):
            raise NOT_ITS_PROTOCOL.error("no compaction")
        return response


def _checked(response: Json) -> Json:
    """A whole response, of which others read the status and the items."""
    output = response.get("output")
    known = response.get("status") in _WHOLE and isinstance(output, list)
    if not known or not all(isinstance(item, dict) and isinstance(item.get("type"), str) for item in output or ()):
        raise NOT_ITS_PROTOCOL.error("no whole response")
    return response


def _error_in(told: Json) -> Json:
    """The error that an event holds: nested as OpenAI sends it, flat as it documents it, or that of a response."""
    response = told.get("response")
    holders = [told, response if isinstance(response, dict) else {}]
    nested = next((holder["error"] for holder in holders if isinstance(holder.get("error"), dict)), None)
    return nested if nested is not None else {name: told.get(name) for name in ("code", "message")}


def _written(type_: bytes, event: Json) -> bytes:
    return b"event: %b\ndata: %b" % (type_, json_bytes(event))
