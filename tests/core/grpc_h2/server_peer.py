"""A server's end of a connection, in memory, that may say whatever it likes, and answers that note what comes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hpack import Decoder

from sidecar.grpc_h2.client_connection import ClientConnection
from sidecar.grpc_h2.frames import END_HEADERS, END_STREAM, PREFACE, Kind, frame, settings
from sidecar.grpc_h2.headers import grpc_request
from sidecar.grpc_h2.limits import Limits
from sidecar.grpc_h2.outgoing import Outgoing
from tests.core.grpc_h2.peer import Frame, Talk, block, frames_in

PATH = "/test.Service/Ask"
GREETING = settings({})
HEAD = {":status": "200", "content-type": "application/grpc"}
TRAILERS = {"grpc-status": "0"}


def head(stream: int, fields: Mapping[str, str] | None = None, *, end: bool = False) -> bytes:
    """The HEADERS frame that begins a response, or is all of it."""
    flags = END_HEADERS | END_STREAM if end else END_HEADERS
    return frame(Kind.HEADERS, flags, stream, block(HEAD if fields is None else fields))


def trailers(stream: int, fields: Mapping[str, str] | None = None) -> bytes:
    """The HEADERS frame that ends a response."""
    return head(stream, TRAILERS if fields is None else fields, end=True)


def fields_in(*frames: Frame) -> dict[str, str]:
    """The headers in the frames of the first block of a connection."""
    block = b"".join(frame.payload for frame in frames)
    return dict(Decoder(100_000).decode(block))  # type: ignore[arg-type]


class Noted:
    """What one call is told; while it is ``congested`` it takes no more."""

    def __init__(self, number: int, events: list[tuple[Any, ...]]) -> None:
        self.congested = False
        self._number, self._events = number, events

    def begun(self, head: Mapping[str, str]) -> None:
        self._note("begun", dict(head))

    def received(self, data: bytes) -> None:
        self._note("received", data)

    def ended(self, trailers: Mapping[str, str] | None) -> None:
        self._note("ended", None if trailers is None else dict(trailers))

    def _note(self, *words: object) -> None:
        self._events.append((self._number, *words))


class ServerPeer(Talk):
    """A connection that has been greeted, and the calls that are made on it, numbered like their streams."""

    connection: ClientConnection

    def __init__(self, limits: Limits | None = None, *, greet: bool = True) -> None:
        self.events: list[tuple[Any, ...]] = []
        self.again: list[Outgoing] = []
        self.answers: dict[int, Noted] = {}
        self.connection = ClientConnection(limits or Limits(), lambda: None)
        written = self.connection.output()
        assert written.startswith(PREFACE)
        self.greeting = list(frames_in(written[len(PREFACE) :]))
        if greet:
            self.say(GREETING)

    def call(self, body: bytes = b"request", metadata: Mapping[str, str] | None = None) -> Outgoing:
        """Make a call."""
        stream = 2 * len(self.answers) + 1
        answer = self.answers[stream] = Noted(stream, self.events)
        call = Outgoing(grpc_request(PATH, "test", metadata or {}), body, answer, self.again.append)
        self.connection.open(call)
        return call

    def told(self, stream: int) -> list[list[Any]]:
        """What the call on ``stream`` was told."""
        return [words for number, *words in self.events if number == stream]
