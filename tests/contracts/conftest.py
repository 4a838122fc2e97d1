"""What the contract tests need to talk to the session's tritonserver, and servers that a test may break."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from stack import triton as triton_stack
from stack.paths import TOKENIZER, TRITON_VENV
from tests.contracts.triton_client import TritonClient


class EventLog:
    """What the scripted model of a server noted."""

    def __init__(self, server: triton_stack.Triton) -> None:
        assert server.event_log is not None
        self._path = server.event_log

    def of(self, request_id: str) -> list[dict[str, Any]]:
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        return [event for event in map(json.loads, lines) if event["id"] == request_id]

    async def wait_for(self, event: str, request_id: str, seconds: float = 20.0) -> dict[str, Any]:
        """The event of a request, as soon as it is noted."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for noted in self.of(request_id):
                if noted["event"] == event:
                    return noted
            await asyncio.sleep(0.005)
        raise AssertionError(f"no {event} of {request_id}: {self.of(request_id)}")


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(TOKENIZER / "tokenizer.json"))


@pytest.fixture
def events(triton: triton_stack.Triton) -> EventLog:
    return EventLog(triton)


@pytest.fixture
async def client(triton: triton_stack.Triton) -> AsyncIterator[TritonClient]:
    async with TritonClient(triton.grpc_port) as client:
        yield client


@pytest.fixture
def start_scripted(tmp_path: Path) -> Iterator[Callable[[], triton_stack.Triton]]:
    """Starts servers with the scripted model that belong to one test."""
    started: list[triton_stack.Triton] = []

    def start(model: str = "scripted") -> triton_stack.Triton:
        server = triton_stack.start(
            TRITON_VENV,
            tmp_path,
            [model],
            log=tmp_path / "triton.log",
            tokenizer=TOKENIZER,
            event_log=tmp_path / "events.log",
        )
        started.append(server)
        return server

    yield start
    for server in started:
        server.kill()
