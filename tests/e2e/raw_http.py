"""HTTP/1.1 to the byte, for requests that a client library would not send."""

from __future__ import annotations

import contextlib
import http.client
import json
import select
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Reply:
    """A whole response; header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    def error(self) -> dict[str, Any]:
        """The error, after a look that it has the API's shape and the headers that every error has."""
        body: dict[str, dict[str, Any]] = self.json()
        assert list(body) == ["error"]
        assert set(body["error"]) == {"message", "type", "param", "code"}
        assert body["error"]["message"]
        assert self.headers["content-type"] == "application/json"
        assert self.headers["x-request-id"]
        assert "x-local-reply" not in self.headers
        return body["error"]


def exchange(port: int, pieces: Iterable[bytes]) -> Reply:
    """Send the pieces, stopping early when an answer arrives before the last one, and read the response."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        # A server that refuses a request may close while we still send.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for piece in pieces:
                connection.sendall(piece)
                if select.select([connection], [], [], 0)[0]:
                    break
        response = http.client.HTTPResponse(connection)
        response.begin()
        headers = {name.lower(): value for name, value in response.getheaders()}
        return Reply(response.status, headers, response.read())


def request(method: str, path: str, *, key: str | None = None, headers: Iterable[str] = (), body: bytes = b"") -> bytes:
    """One request as bytes. ``headers`` are whole lines; a body gets its Content-Length."""
    lines = [f"{method} {path} HTTP/1.1", "Host: node", *headers]
    if key is not None:
        lines.append(f"Authorization: Bearer {key}")
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body
