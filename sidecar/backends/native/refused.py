"""An answer that is none: its body is read for what it says of the reason, and goes to nobody."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from sidecar.backends.failure import BackendError
from sidecar.backends.native.failures import NOT_ITS_PROTOCOL, Refusal, refusal_of
from sidecar.backends.native.json_values import read_object
from sidecar.responses.errors import ApiError
from sidecar.responses.json_text import Json
from sidecar.responses.marks import NOTHING
from sidecar.responses.usage import Usage

MOST_BYTES = 64 * 1024
"""Of the body of a refusal."""


class RefusedReader:
    """Reads an answer whose head had ``status`` and ``headers`` (lower-case names); it never begins."""

    def __init__(self, status: int, headers: Mapping[str, str]) -> None:
        self.begun = False
        self.stopped = False
        self.failure: ApiError | None = None
        self.mark = NOTHING
        self.usage: Usage | None = None
        self.tokens = self.searches = 0
        self._status = status
        self._headers = headers
        self._body = b""

    def feed(self, data: bytes) -> bytes:
        """Take more of the body."""
        if len(self._body) + len(data) > MOST_BYTES:
            self.failure = NOT_ITS_PROTOCOL.error(f"HTTP {self._status} with an endless body")
        else:
            self._body += data
        return b""

    def refusal(self) -> Refusal:
        """What it comes to, once its body has ended."""
        body: Json = {}
        # Else it is a page, or nothing.
        with suppress(BackendError):
            body = read_object(self._body)
        return refusal_of(self._status, self._headers, body)
