"""A plain HTTP/1.1 client that shows what SDKs hide: the chunks of a body, and whether it ended as announced."""

from __future__ import annotations

from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import NamedTuple
from urllib.parse import urlsplit

SECONDS = 120
"""The longest silence of an endpoint that is waited for."""


class Answer(NamedTuple):
    """An HTTP answer. Header names are in lower case.

    ``chunks`` are the chunks of the body as the server sent them; a body that is not chunked is one chunk. ``failure``
    says how the body broke off, ``None`` where it is whole.
    """

    status: int
    headers: Mapping[str, str]
    chunks: list[bytes]
    failure: str | None = None

    @property
    def body(self) -> bytes:
        """The body."""
        return b"".join(self.chunks)


class NoAnswerError(Exception):
    """The endpoint could not be reached, or sent no HTTP answer."""


def request(method: str, url: str, headers: Mapping[str, str], body: bytes | None = None) -> Answer:
    """Send one request on a connection of its own and read the whole answer.

    Raises:
        NoAnswerError: there was no answer; the message says why.
        ValueError: ``url`` is not an ``http`` or ``https`` URL.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url} is not an http or https URL")
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = kind(parts.hostname, parts.port, timeout=SECONDS)
    target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    try:
        connection.request(method, target, body, dict(headers))
        response = connection.getresponse()
        return _read(response)
    except (OSError, HTTPException) as error:
        raise NoAnswerError(str(error) or type(error).__name__) from error
    finally:
        connection.close()


def _read(response: HTTPResponse) -> Answer:
    headers = {name.lower(): value for name, value in response.getheaders()}
    chunks: list[bytes] = []
    failure = None
    try:
        if response.chunked:
            _read_chunks(response, chunks)
        else:
            chunks.append(response.read())
    except (OSError, HTTPException) as error:
        failure = str(error) or type(error).__name__
    return Answer(response.status, headers, chunks, failure)


def _read_chunks(response: HTTPResponse, chunks: list[bytes]) -> None:
    chunk_ended = True
    # One read never goes over the end of a chunk.
    while piece := response.read1(1 << 16):
        if chunk_ended:
            chunks.append(piece)
        else:
            chunks[-1] += piece
        chunk_ended = response.chunk_left == 0
