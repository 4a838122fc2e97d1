"""The origin wire straight to a Triton, without an Envoy between: what holds through the egress listener holds here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from stack.local import SCRIPTED, LocalStack
from stack.triton import Triton
from tests.e2e.client import Client, error_of, eventually, script
from tests.e2e.test_failures import ScriptedLog

HANG = {"hang": True}


@pytest.fixture(scope="module")
def straight_stack(triton: Triton, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    address = f"127.0.0.1:{triton.grpc_port}"
    model = replace(SCRIPTED, context_length=10**8)
    with LocalStack(
        tmp_path_factory.mktemp("straight"),
        models=[model],
        triton_address=address,
        wire="origin",
        workers=1,
        sidecar_settings={"triton": {"address": address, "upstream": address}},
    ) as stack:
        yield stack


@pytest.fixture
def log(triton: Triton) -> ScriptedLog:
    assert triton.event_log is not None
    return ScriptedLog(triton.event_log)


async def test_answers_come_and_who_leaves_is_told_to_triton(straight_stack: LocalStack, log: ScriptedLog) -> None:
    async with Client(straight_stack) as client:
        whole = (await client.ask(script("one", " two"))).json()
        assert whole["output"][0]["content"][0]["text"] == "one two"
        refused = await client.ask(script({"error": "queue is full"}))
        assert (refused.status_code, error_of(refused)["code"]) == (503, "capacity_unavailable")
        async with client.stream(script("some", HANG)) as stream:
            await stream.until(b"output_text.delta")
        await eventually(lambda: log.events("cancelled"))
    assert straight_stack.envoy.stats("http.egress.downstream_rq_total") == {"http.egress.downstream_rq_total": 0}


async def test_megabytes_go_as_triton_s_windows_let_them_and_hold_nobody_up(straight_stack: LocalStack) -> None:
    body = script("ok")
    body["input"] = f"{'word ' * 200_000}{body['input']}"
    async with Client(straight_stack) as client:
        async with client.stream(script("some", {"sleep": 30})) as stream:
            await stream.until(b"output_text.delta")
            answer = (await client.ask(body)).json()
        assert answer["usage"]["input_tokens"] > 200_000
