"""What an exchange wants done, in order: outputs, and asks.

Outputs go to whoever carries the exchange. A :class:`Reply` is a whole answer in place of everything else; otherwise
the upstream is called, and then a head, a body and an end go to the client. Asks are performed (see
:mod:`sidecar.exchange.asks`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sidecar.exchange.asks import Ask, LastAsk
from sidecar.responses.reply import Reply

TRITON = "triton"
"""The host of calls to Triton."""


@dataclass(frozen=True, slots=True)
class CallUpstream:
    """Make a POST to the upstream: ``body`` of ``content_type`` to ``path``; ``headers`` go along.

    How the call travels is the wire's business. What comes back belongs to the exchange. ``host`` is the name by which
    Envoy's egress listener knows the upstream. Of another than Triton's, the answer's head is told too, and its body
    whatever its status; when it has ended, another call may follow.
    """

    path: str
    content_type: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    host: str = TRITON


@dataclass(frozen=True, slots=True)
class SendHead:
    """Send the response head: status 200 and these headers."""

    headers: Mapping[str, str]


class SendBody(bytes):
    """Send these bytes of the response body. Bytes of an event stream are whole events.

    A command that is its bytes costs no object more, and there is one for every token.
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Finish:
    """End the response body."""


Output = Reply | CallUpstream | SendHead | SendBody | Finish
Command = Output | Ask[Any] | LastAsk
