"""A plain HTTP/1.1 client that shows what SDKs hide: a body's chunks, when they came, and whether it is whole."""

from __future__ import annotations

import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, InvalidURL, RemoteDisconnected
from typing import NamedTuple
from urllib.parse import urlsplit

from conformance.words import printable

SECONDS = 120
"""The longest silence of an endpoint that is waited for."""


class Piece(NamedTuple):
    """What one read gave of a body, ``seconds`` after the request was sent.

    ``ends_chunk`` says that a chunk of the chunked transfer encoding ends with it.
    """

    data: bytes
    seconds: float = 0.0
    ends_chunk: bool = True


class Answer(NamedTuple):
    """An HTTP answer. Header names are in lower case.

    ``failure`` says how the body broke off, ``None`` where it is whole.
    """

    status: int
    headers: Mapping[str, str]
    pieces: list[Piece]
    failure: str | None = None

    @property
    def body(self) -> bytes:
        """The body."""
        return b"".join(piece.data for piece in self.pieces)


class NoAnswerError(Exception):
    """The endpoint could not be reached, or sent no HTTP answer; the message is one sentence."""


def request(method: str, url: str, headers: Mapping[str, str], body: bytes | None = None) -> Answer:
    """Send one request on a connection of its own and read the whole answer.

    Raises:
        NoAnswerError: there was no answer; the message says why.
        ValueError: ``url`` is not an ``http`` or ``https`` URL.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{printable(url)} is not an http or https URL")
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    try:
        connection = kind(parts.hostname, parts.port, timeout=SECONDS)
    except InvalidURL as error:
        raise ValueError(f"{printable(url)} is not an http or https URL") from error
    try:
        connection.request(method, target, body, dict(headers))
        sent = time.monotonic()
        return _read(connection.getresponse(), sent)
    except InvalidURL as error:
        raise ValueError(f"{printable(url)} is not an http or https URL") from error
    except (OSError, RemoteDisconnected) as error:
        raise NoAnswerError(f"{url} gives no answer: {_reason(error)}") from error
    except HTTPException as error:
        raise NoAnswerError(f"{url} does not answer in HTTP") from error
    finally:
        connection.close()


def _reason(error: Exception) -> str:
    words = error.strerror if isinstance(error, OSError) else None
    return printable(words or str(error) or type(error).__name__)


def _read(response: HTTPResponse, sent: float) -> Answer:
    headers = {name.lower(): value for name, value in response.getheaders()}
    pieces: list[Piece] = []
    failure = None
    try:
        # One read never goes over the end of a chunk.
        while data := response.read1(1 << 16):
            ends_chunk = response.chunked and response.chunk_left == 0
            pieces.append(Piece(data, time.monotonic() - sent, ends_chunk))
        if response.length:
            failure = f"{response.length} bytes are missing"
    except (OSError, HTTPException) as error:
        failure = _reason(error)
    return Answer(response.status, headers, pieces, failure)
