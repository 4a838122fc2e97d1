"""What a client is given, gathered so that it can be given again: the pieces as they are, joined when it is over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus

from sidecar.exchange.commands import Command, SendBody, SendHead
from sidecar.responses.reply import Reply
from sidecar.stored.answers import Answer

MOST_BYTES = 8_000_000
"""The body of an answer that is larger is not kept."""

_AGAIN = ("content-type", "cache-control", "x-should-retry")
"""Headers that mean the same when the answer is given again; all others are about one request."""

_ANOTHER_TRY = {HTTPStatus.PAYMENT_REQUIRED, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS}
"""Refusals that pass: credits are added, a response is completed, a limit is not reached any more."""


class Recording:
    """One answer as it goes out."""

    def __init__(self) -> None:
        self._status: int = HTTPStatus.OK
        self._headers: Mapping[str, str] = {}
        self._pieces: list[bytes] = []
        self._size = 0

    def note(self, commands: Iterable[Command]) -> None:
        """Gather what of ``commands`` the client is given."""
        for command in commands:
            if isinstance(command, SendBody):
                self._add(command)
            elif isinstance(command, SendHead):
                self._headers = command.headers
            elif isinstance(command, Reply):
                self._status, self._headers = command.status, command.headers
                self._add(command.body)

    def ended(self, outcome: str) -> bool:
        """Whether the answer is one that a key stands for, by how its exchange has ended.

        It is when it is whole, or when the request is refused for what it asks. It is not where another try may go
        better.
        """
        if self._status == HTTPStatus.OK:
            return outcome in ("completed", "incomplete")
        return self._status < HTTPStatus.INTERNAL_SERVER_ERROR and self._status not in _ANOTHER_TRY

    def answer(self) -> Answer | None:
        """The answer; ``None`` where it is too large."""
        if self._size > MOST_BYTES:
            return None
        headers = {name: self._headers[name] for name in _AGAIN if name in self._headers}
        return Answer(self._status, headers, b"".join(self._pieces))

    def _add(self, piece: bytes) -> None:
        # Comments keep a connection alive; they are not part of the answer.
        if piece.startswith(b":"):
            return
        self._size += len(piece)
        if self._size > MOST_BYTES:
            self._pieces.clear()
        else:
            self._pieces.append(piece)
