"""Models that hang, crash or go away: they are refused at once, and taken again without anybody's help."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest

from stack.local import SCRIPTED, LocalStack
from tests.e2e.client import Client, error_of, eventually, script
from tests.e2e.test_metrics import until

REFUSED = "The model runtime is not available; try again shortly."
"""What a request is told that the model was not given."""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """Two workers and a Triton that the tests of this module may break and mend."""
    model = replace(SCRIPTED, settings={"first_token_timeout": 6.0, "token_timeout": 10.0})
    with LocalStack(tmp_path_factory.mktemp("outages"), models=[model]) as stack:
        yield stack


@pytest.fixture
async def client(own: LocalStack) -> AsyncIterator[Client]:
    async with Client(own) as client:
        yield client


def prompts(stack: LocalStack) -> str:
    """All that the model was given so far."""
    if not stack.scripted_events.exists():
        return ""
    lines = [json.loads(line) for line in stack.scripted_events.read_text().splitlines()]
    return "\n".join(line["prompt"] for line in lines if line["event"] == "start")


async def all_refuse(client: Client, *steps: Any) -> None:
    """Wait until no worker gives the model a request any more."""
    async with asyncio.timeout(30):
        while True:
            answers = await asyncio.gather(*(client.ask(script(*steps, stream=True)) for _ in range(8)))
            errors = [error_of(answer) for answer in answers]
            assert {error["code"] for error in errors} == {"infer_backend_unavailable"}
            if {error["message"] for error in errors} == {REFUSED}:
                return


async def test_a_hung_model_is_refused_and_taken_again_once_it_answers(own: LocalStack, client: Client) -> None:
    assert (await client.ask(script("ok"))).status_code == 200
    stuck = own.scripted_events.with_name(f"{own.scripted_events.name}.stuck")
    stuck.touch()
    try:
        waiting = await asyncio.gather(*(client.ask(script(f"waits {number}")) for number in range(4)))
        assert {error_of(answer)["code"] for answer in waiting} == {"infer_backend_unavailable"}
        await all_refuse(client, "comes too late")
        await until(own, "responses_model_ready", 0, model="scripted")
        await all_refuse(client, "is not given to the model")
    finally:
        stuck.unlink()
    await until(own, "responses_model_ready", 1, model="scripted")
    assert (await client.ask(script("ok"))).status_code == 200
    assert "is not given to the model" not in prompts(own)


async def test_a_triton_that_goes_and_comes_back_is_noticed_without_a_request(own: LocalStack) -> None:
    assert own.triton is not None
    own.triton.kill()
    await until(own, "responses_model_ready", 0, model="scripted")
    own.start_triton()
    await until(own, "responses_model_ready", 1, model="scripted")
    async with Client(own) as client:
        assert {(await client.ask(script("ok"))).status_code for _ in range(8)} == {200}


async def test_a_model_that_crashes_is_refused(own: LocalStack, client: Client) -> None:
    events = await client.events(script("some", {"sleep": 0.1}, {"crash": True}))
    assert events[-1].type == "error"
    await all_refuse(client, "ok")
    log = own.sidecar.process.log
    await eventually(lambda: "model scripted: does not answer" in log.read_text())
    assert own.triton is not None
    own.triton.kill()
    own.start_triton()
    await until(own, "responses_model_ready", 1, model="scripted")
