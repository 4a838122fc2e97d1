"""One real tritonserver with both models for the whole session, and what tests need to talk to it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from stack import triton
from tests.contracts.triton_client import TritonClient

LOCAL = Path(__file__).resolve().parents[2] / ".local"


class EventLog:
    """The scripted model's diary, read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def of(self, request_id: str) -> list[dict[str, Any]]:
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        return [event for event in map(json.loads, lines) if event["id"] == request_id]

    async def wait_for(self, event: str, request_id: str, seconds: float = 10.0) -> dict[str, Any]:
        """The event of a request, as soon as it is written."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for found in self.of(request_id):
                if found["event"] == event:
                    return found
            await asyncio.sleep(0.005)
        raise AssertionError(f"no {event} of {request_id}: {self.of(request_id)}")


@pytest.fixture(scope="session")
def triton_venv() -> Path:
    venv = LOCAL / "triton"
    triton.install(venv, print)
    return venv


@pytest.fixture(scope="session")
def tokenizer_directory(triton_venv: Path) -> Path:
    directory = LOCAL / "tokenizer"
    triton.build_tokenizer(triton_venv, directory)
    return directory


@pytest.fixture(scope="session")
def tokenizer(tokenizer_directory: Path) -> Tokenizer:
    return Tokenizer.from_file(str(tokenizer_directory / "tokenizer.json"))


@pytest.fixture(scope="session")
def start_triton(
    triton_venv: Path, tokenizer_directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., tuple[triton.Triton, EventLog]]]:
    """Starts servers, which end with the session if they have not before."""
    started: list[triton.Triton] = []

    def start(*models: str) -> tuple[triton.Triton, EventLog]:
        directory = tmp_path_factory.mktemp("triton")
        event_log = directory / "events.jsonl"
        server = triton.start(
            triton_venv,
            directory,
            models,
            log=directory / "tritonserver.log",
            tokenizer=tokenizer_directory,
            event_log=event_log,
        )
        started.append(server)
        return server, EventLog(event_log)

    yield start
    for server in started:
        server.kill()


@pytest.fixture(scope="session")
def shared(start_triton: Callable[..., tuple[triton.Triton, EventLog]]) -> tuple[triton.Triton, EventLog]:
    """The server that tests share; they leave it as they found it."""
    return start_triton("smollm2", "scripted")


@pytest.fixture
def events(shared: tuple[triton.Triton, EventLog]) -> EventLog:
    return shared[1]


@pytest.fixture
async def client(shared: tuple[triton.Triton, EventLog]) -> AsyncIterator[TritonClient]:
    async with TritonClient(shared[0].grpc_port) as client:
        yield client
