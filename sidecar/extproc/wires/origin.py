"""The third wire: the response is our own, and so is the call, which another than Envoy's exchange carries.

A token crosses Envoy once on its way to the client. Whom the call goes to is configured: Envoy's egress listener, where
retries, load balancing and health are then Envoy's as on the tunnel, or a Triton on the same machine. The call's own
framing tells an answer that ended from one that broke, and the upstream is told at any time that a client has left.

Source: Envoy's ``StreamedImmediateResponse`` (1.37 and later); the gRPC over HTTP/2 protocol page.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Protocol

from sidecar.backends.triton.frames import status_of
from sidecar.exchange.commands import CallUpstream
from sidecar.extproc import by_hand, messages
from sidecar.extproc.wires.wire import Recipient, Wire, WireEnd
from sidecar.grpc_h2 import Answer, Outgoing

# What Envoy's egress listener says of an answer of its own: the HTTP status, which gRPC has no place for.
_OWN_STATUS = "x-local-reply"


_log = logging.getLogger(__name__)


class Upstream(Protocol):
    """Makes the calls."""

    def call(self, path: str, metadata: Mapping[str, str], body: bytes, answer: Answer) -> Outgoing:
        """Call a method of the upstream, with all of the request; ``answer`` is told what comes of it, later."""


class Nobody:
    """In place of an upstream where none is configured: each call comes to nothing, and the log says why."""

    def call(self, path: str, metadata: Mapping[str, str], body: bytes, answer: Answer) -> Outgoing:
        """Let the call fail."""
        _log.error("a route asks for the wire origin, which needs triton.upstream in the configuration")
        call = Outgoing(b"", b"", answer, Outgoing.refused)
        asyncio.get_running_loop().call_soon(call.finish, None)
        return call


class OriginWire(Wire):
    """One call to ``upstream``; it is the answer that the call is told."""

    body: Callable[[bytes], bytes] = staticmethod(by_hand.immediate_body)

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._recipient: Recipient
        self.received: Callable[[bytes], None] = _pass_over
        """Takes bytes of the upstream's answer. This is the per-token path."""
        self._call: Outgoing | None = None
        self._http_status: int | None = None
        self._head: Mapping[str, str] = {}

    def call(self, call: CallUpstream, request_headers: Mapping[str, str], recipient: Recipient) -> Iterable[bytes]:
        """Make the call. Envoy is told nothing yet, and waits with the request."""
        self._recipient = recipient
        self._call = self._upstream.call(call.path, call.headers, call.body, self)
        return ()

    def receive(self, message: bytes) -> tuple[bytes, WireEnd | None]:
        """Nothing of the upstream's comes in Envoy's messages."""
        return b"", None

    def head(self, headers: Mapping[str, str]) -> bytes:
        """The response head for the client."""
        return messages.own_head(headers)

    def finish(self, data: bytes) -> Iterable[bytes]:
        """End the client's response."""
        return (messages.own_end(data),)

    def hang_up(self) -> None:
        """Tell the upstream that nothing more is wanted."""
        if self._call is not None:
            self._call.cancel()

    def drained(self) -> None:
        """The upstream may send more."""
        if self._call is not None:
            self._call.resume()

    @property
    def congested(self) -> bool:
        """Whether the upstream is to wait, because the client does not read."""
        return self._recipient.congested

    def begun(self, head: Mapping[str, str]) -> None:
        """The head of the upstream's answer has come."""
        self._head = head
        status = head.get(_OWN_STATUS, head[":status"])
        self._http_status = int(status) if status.isdecimal() else None
        if self._http_status == HTTPStatus.OK:
            self.received = self._recipient.upstream

    def ended(self, trailers: Mapping[str, str] | None) -> None:
        """The upstream's answer is over. Where nobody answered, that is what Envoy's egress listener tells by 503."""
        self._call = None
        if trailers is None:
            nobody = HTTPStatus.SERVICE_UNAVAILABLE if not self._head else self._http_status
            self._recipient.upstream_ended(WireEnd(False, nobody, None))
        else:
            self._recipient.upstream_ended(WireEnd(True, self._http_status, status_of(dict(trailers))))


def _pass_over(data: bytes) -> None:
    """What another than a Triton answers is no answer."""
