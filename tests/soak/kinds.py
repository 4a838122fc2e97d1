"""The kinds of requests of a soak, and how each must end."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Self

import httpx2

from conformance.stream import check_stream
from stack.local import SCRIPTED, SCRIPTED_BY_FORMAT, LocalStack
from stack.sidecar import Model
from tests.e2e.client import script

_TIMEOUTS = {"first_token_timeout": 4.0, "token_timeout": 4.0}
MODELS: tuple[Model, ...] = (
    replace(SCRIPTED, settings=_TIMEOUTS),
    replace(SCRIPTED_BY_FORMAT["hermes"], settings={**SCRIPTED_BY_FORMAT["hermes"].settings, **_TIMEOUTS}),
)

ENVOY_SETTINGS = {"client_stall_timeout": 30}
"""Clients that share a busy machine with all parts may read nothing for some seconds."""

_CALL = '<tool_call>\n{"name": "look", "arguments": {"at": "it"}}\n</tool_call>'
_LOOK = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}}
_STREAMED = {"stream": True}
_BUREAU = {"model": "local/scripted"}
_NATIVE = {"model": "scripted/native"}


@dataclass(frozen=True)
class Kind:
    """``body`` is sent ``weight`` times as often as one of weight 1; ``ends`` is a status or a stream's last event.

    ``None`` is a client that leaves. ``bureau`` is whether it goes to that surface, ``keyed`` whether with an
    idempotency key that others have as well.
    """

    weight: int
    body: Any
    ends: int | str | None
    bureau: bool = False
    keyed: bool = False


def _of_both(name: str, weight: int, ends: int | str | None, *steps: Any, **body: Any) -> dict[str, Kind]:
    return {
        name: Kind(weight, script(*steps, **body), ends),
        f"bureau: {name}": Kind(weight, script(*steps, **body | _BUREAU), ends, bureau=True),
    }


KINDS: Mapping[str, Kind] = {
    **_of_both("whole", 20, 200, "one ", "two"),
    **_of_both("stream", 30, "response.completed", "one ", "two", **_STREAMED),
    **_of_both("long stream", 10, "response.completed", {"repeat": [50, "word ", 0.002]}, **_STREAMED),
    **_of_both("cut", 5, "response.incomplete", {"split_ids": "one two three"}, max_output_tokens=2, **_STREAMED),
    **_of_both("error first", 5, 503, {"error": "boom"}, **_STREAMED),
    **_of_both("error later", 5, "error", "one", {"error": "boom"}, **_STREAMED),
    **_of_both("silent", 1, 503, {"sleep": 30}),
    **_of_both("silent later", 1, "error", "one", {"sleep": 30}, **_STREAMED),
    **_of_both("leaves early", 6, None, {"sleep": 30}, **_STREAMED),
    **_of_both("leaves later", 7, None, {"repeat": [200, "word ", 0.01]}, **_STREAMED),
    "malformed": Kind(5, b"{", 400),
    "unknown model": Kind(5, {"model": "none", "input": "x"}, 404),
    "call": Kind(10, script(_CALL, model="scripted-hermes", tools=[_LOOK]), 200),
    "streamed call": Kind(10, script(_CALL, model="scripted-hermes", tools=[_LOOK], **_STREAMED), "response.completed"),
    "stored": Kind(5, script("one", **_BUREAU, store=True), 200, bureau=True),
    "stored stream": Kind(5, script("one", **_BUREAU, store=True, **_STREAMED), "response.completed", bureau=True),
    "with a key": Kind(5, script("one", **_BUREAU), 200, bureau=True, keyed=True),
}

NATIVE: Mapping[str, Kind] = {
    "native": Kind(5, script("one", **_NATIVE), 200, bureau=True),
    "native stream": Kind(5, script("one", **_NATIVE, **_STREAMED), "response.completed", bureau=True),
    "leaves native": Kind(3, script("one", {"hang": True}, **_NATIVE, **_STREAMED), None, bureau=True),
}
"""Those for an upstream that speaks the Responses API."""


def choices(kinds: Mapping[str, Kind], requests: int, seed: int) -> list[str]:
    """So many names of kinds."""
    return random.Random(seed).choices(list(kinds), [kind.weight for kind in kinds.values()], k=requests)


@dataclass
class Clients:
    """One client's connections to both surfaces."""

    stack: LocalStack
    http: httpx2.AsyncClient = field(init=False)

    def __post_init__(self) -> None:
        self.http = httpx2.AsyncClient(timeout=60, limits=httpx2.Limits(max_connections=None), verify=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.http.aclose()

    async def ask(self, kind: Kind) -> int | str | None:
        """Send a request; how it ended. A connection that breaks off is the name of httpx's exception."""
        try:
            if kind.ends is not None:
                return await self._answer(kind)
            async with asyncio.timeout(random.uniform(0.02, 0.3)):
                return await self._answer(kind)
        except TimeoutError:
            return None
        except httpx2.TransportError as error:
            return type(error).__name__

    async def _answer(self, kind: Kind) -> int | str:
        stack = self.stack
        base, key = (stack.bureau_url, stack.project_key) if kind.bureau else (stack.url, stack.api_key)
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        if kind.keyed:
            headers["idempotency-key"] = f"key-{random.randrange(1000)}"
        content = kind.body if isinstance(kind.body, bytes) else json.dumps(kind.body).encode()
        answer = await self.http.post(f"{base}/responses", content=content, headers=headers)
        if answer.headers["content-type"].startswith("text/event-stream"):
            events, violations = check_stream(answer.content)
            return f"a stream that is none: {violations[0]}" if violations else str(events[-1].type)
        return int(answer.status_code)
