"""What an exchange wants done, in order: outputs, and asks.

Outputs go to whoever carries the exchange. A :class:`Reply` is a whole answer in place of everything else; otherwise
the upstream is called, and then a head, a body and an end go to the client. Asks are performed (see
:mod:`sidecar.exchange.asks`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sidecar.backends.backend import Reader
from sidecar.exchange.asks import Ask, LastAsk
from sidecar.responses.reply import Reply


@dataclass(frozen=True, slots=True)
class CallUpstream:
    """Make a POST to the upstream: ``body`` of ``content_type`` to ``path``; ``headers`` go along.

    How the call travels is the wire's business. What comes back belongs to the exchange, which has ``reader`` read it.
    """

    path: str
    content_type: str
    headers: Mapping[str, str]
    body: bytes
    reader: Reader


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
