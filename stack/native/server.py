"""The scripted upstream: its connections, what it was sent on them, and what it serves."""

from __future__ import annotations

import asyncio
import itertools
import json
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stack.native.answer import CREATED_AT
from stack.native.http import Exchange
from stack.native.play import play
from stack.native.script import Json

_MODELS = ("only", "first", "second")
_LONGEST_HEAD = 64 * 1024


class Upstream:
    """Serves connections. What it was sent, and how each request ended, goes to ``log``, a JSON object a line."""

    def __init__(self, key: str, log: Path) -> None:
        """Requests must bring ``key``."""
        self._key = key
        self._log = log.open("a", buffering=1)
        self._numbers = itertools.count(1)

    async def serve(self, port: int, tls: ssl.SSLContext | None = None) -> asyncio.Server:
        """Listen on a port of 127.0.0.1."""
        return await asyncio.start_server(self._connection, "127.0.0.1", port, ssl=tls, limit=_LONGEST_HEAD)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ahead: bytes | None = b""
        try:
            while ahead is not None:
                ahead = await self._request(ahead, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _request(self, ahead: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes | None:
        """Answer one request, which begins with ``ahead``; what the next one begins with, ``None`` if there is none."""
        head = (ahead + await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ")
        headers = [line.split(": ", 1) for line in head[1:] if line]
        named = {name.lower(): value for name, value in headers}
        content = await _body(reader, named)
        number = next(self._numbers)
        self._note(number, method=method, path=path, headers=headers, body=content.decode(errors="replace"))
        exchange = Exchange(writer)
        gone = asyncio.create_task(reader.read(1))
        playing = asyncio.create_task(self._answer(exchange, method, path, named, content, number))
        await asyncio.wait((gone, playing), return_when=asyncio.FIRST_COMPLETED)
        if gone.done() and gone.exception() is None and gone.result():
            # Envoy has the whole answer and sends its next request, before it is known here that playing is over.
            await asyncio.wait((playing,))
        for task in (gone, playing):
            task.cancel()
        read, outcome = await asyncio.gather(gone, playing, return_exceptions=True)
        # Whose client leaves while a piece is written learns it from that write.
        ended = "client gone" if isinstance(outcome, (asyncio.CancelledError, ConnectionError)) else "answered"
        self._note(number, ended=ended)
        if isinstance(outcome, Exception) and not isinstance(outcome, ConnectionError):
            raise outcome
        if ended != "answered" or not exchange.whole:
            return None
        if isinstance(read, bytes):
            return read or None
        return b"" if isinstance(read, asyncio.CancelledError) else None

    async def _answer(
        self,
        exchange: Exchange,
        method: str,
        path: str,
        headers: Mapping[str, str],
        content: bytes,
        number: int,
    ) -> None:
        if headers.get("authorization") != f"Bearer {self._key}":
            error = {
                "message": f"Incorrect API key provided: {headers.get('authorization')}",
                "code": "invalid_api_key",
            }
            await exchange.reply(401, json.dumps({"error": {"type": "invalid_request_error", "param": None, **error}}))
        elif (method, path) == ("GET", "/v1/models"):
            await exchange.reply(200, json.dumps({"object": "list", "data": [{"id": name} for name in _MODELS]}))
        elif (method, path) == ("POST", "/v1/responses/compact"):
            await exchange.reply(200, json.dumps(_compaction(number)))
        elif (method, path) == ("POST", "/v1/responses"):
            await play(exchange, json.loads(content), number)
        else:
            await exchange.reply(404, "Not found")

    def _note(self, number: int, **members: Any) -> None:
        self._log.write(json.dumps({"request": number, **members}) + "\n")


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if headers.get("transfer-encoding") != "chunked":
        return await reader.readexactly(int(headers.get("content-length", 0)))
    content = b""
    while size := int(await reader.readline(), 16):
        content += await reader.readexactly(size)
        await reader.readline()
    await reader.readline()
    return content


def _compaction(number: int) -> Json:
    return {
        "id": f"resp_upstream{number:04d}",
        "object": "response.compaction",
        "created_at": CREATED_AT,
        "output": [{"id": f"cmp_{number:04d}", "type": "compaction", "encrypted_content": f"gAAAA{number:04d}"}],
        "usage": {
            "input_tokens": 11,
            "input_tokens_details": {"cached_tokens": 3},
            "output_tokens": 7,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 18,
        },
    }
