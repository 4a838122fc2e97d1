"""A plain HTTP client for the tests: requests as developers send them, streams event by event."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from conformance.sse import ReceivedEvent
from stack.local import LocalStack
from tests.core.sse import whole_stream
from tests.e2e.drivers import Access


def script(*steps: Any, **body: Any) -> dict[str, Any]:
    """A request body whose prompt makes the scripted model play ``steps``."""
    return {"model": "scripted", "input": f"script:{json.dumps(steps)}", **body}


class Client:
    """Asks a stack's Responses endpoint. Close it as an async context manager."""

    def __init__(self, stack: LocalStack | Access, **settings: Any) -> None:
        headers = {"authorization": f"Bearer {stack.api_key}", **settings.pop("headers", {})}
        limits = httpx2.Limits(max_connections=None)
        self.http = httpx2.AsyncClient(headers=headers, timeout=60, limits=limits, **settings)
        self.url = f"{stack.url}/responses"

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.aclose()

    async def ask(self, body: dict[str, Any] | bytes, **headers: str) -> httpx2.Response:
        """The whole answer to a request."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.http.post(self.url, content=content, headers={"content-type": "application/json", **headers})

    async def events(self, body: dict[str, Any]) -> list[ReceivedEvent]:
        """All events of a streamed answer."""
        answer = await self.ask({**body, "stream": True})
        assert answer.status_code == 200, answer.text
        return whole_stream(answer.content)

    @asynccontextmanager
    async def stream(self, body: dict[str, Any]) -> AsyncIterator[Stream]:
        """A streamed answer as it comes; leaving the context closes the connection."""
        content = json.dumps({**body, "stream": True})
        headers = {"content-type": "application/json"}
        async with self.http.stream("POST", self.url, content=content, headers=headers) as response:
            yield Stream(response)


class Stream:
    """An event stream under way."""

    def __init__(self, response: httpx2.Response) -> None:
        self.response = response
        self._bytes = response.aiter_bytes()
        self.received = b""

    async def until(self, marker: bytes) -> None:
        """Read on until ``marker`` has come."""
        while marker not in self.received:
            self.received += await anext(self._bytes)

    async def rest(self) -> list[ReceivedEvent]:
        """Read to the end; all events of the stream."""
        async for piece in self._bytes:
            self.received += piece
        return whole_stream(self.received)


async def eventually(condition: Callable[[], Any], seconds: float = 10) -> Any:
    """Wait until ``condition`` gives something true; that."""
    async with asyncio.timeout(seconds):
        while not (result := condition()):
            await asyncio.sleep(0.01)
        return result


def error_of(answer: httpx2.Response) -> dict[str, Any]:
    """The error of a plain HTTP error, after a look at its shape and headers."""
    body = answer.json()
    assert list(body) == ["error"]
    assert set(body["error"]) == {"message", "type", "param", "code"}
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-request-id"]
    error: dict[str, Any] = body["error"]
    return error
