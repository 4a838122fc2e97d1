"""Parts that leave, hang, break or die, on the real parts: no client is left with a silent half answer."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from openai import AsyncOpenAI

from stack.local import SCRIPTED, LocalStack
from stack.paths import ROOT, TOKENIZER, TRITON_VENV
from stack.triton import start as start_triton
from tests.e2e.client import Client, error_of, eventually, script
from tests.e2e.ledger import LocalLedger, billed_once

HANG = {"hang": True}


class ScriptedLog:
    """What the scripted model noted since this was made."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._start = path.stat().st_size if path.exists() else 0

    def events(self, name: str) -> list[dict[str, Any]]:
        if not self._path.exists():
            return []
        with self._path.open() as file:
            file.seek(self._start)
            # The model may be writing the last line just now.
            lines = [json.loads(line) for line in file if line.endswith("\n")]
        return [line for line in lines if line["event"] == name]


over_every_wire_that_tells = pytest.mark.parametrize("broken_stack", ["tunnel", "origin"], indirect=True)
"""The direct wire does not tell how an answer ended."""
over_one_wire = pytest.mark.parametrize("broken_stack", ["tunnel"], indirect=True)


@pytest.fixture(scope="module")
def broken_stack(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """A stack whose parts the tests of this module break and mend, with short timers."""
    model = replace(SCRIPTED, context_length=10**8, settings={"first_token_timeout": 3.0, "token_timeout": 3.5})
    with LocalStack(
        tmp_path_factory.mktemp("broken"),
        models=[model],
        wire=request.param,
        sidecar_settings={"keep_alive": 0.5, "drain": 3.0},
        envoy_settings={"client_stall_timeout": 2},
    ) as stack:
        yield stack


@pytest.fixture
async def client(broken_stack: LocalStack) -> AsyncIterator[Client]:
    async with Client(broken_stack) as client:
        yield client


@pytest.fixture
def log(broken_stack: LocalStack) -> ScriptedLog:
    return ScriptedLog(broken_stack.scripted_events)


def log_lines(path: Path, start: int) -> list[dict[str, Any]]:
    """What the sidecar's log, in the file ``path``, has after the byte ``start``."""
    with path.open() as file:
        file.seek(start)
        return [json.loads(line) for line in file if line.endswith("\n")]


def access_lines(path: Path, start: int) -> list[dict[str, Any]]:
    """Those of them that are about requests."""
    return [line for line in log_lines(path, start) if line["logger"] == "sidecar.access"]


async def well(client: Client) -> None:
    """Wait until every worker answers: each judges for itself whether the model does."""
    async with asyncio.timeout(60):
        while True:
            with suppress(httpx2.TransportError):
                answers = await asyncio.gather(*(client.ask(script("ok")) for _ in range(8)))
                if {answer.status_code for answer in answers} == {200}:
                    return
            await asyncio.sleep(0.1)


async def all_healthy(stack: LocalStack) -> None:
    """Wait until Envoy spreads requests over both workers, which the test before may have killed."""
    healthy = "cluster.sidecar.membership_healthy"
    await eventually(lambda: stack.envoy.stats(healthy)[healthy] == 2, 60)


@over_every_wire_that_tells
@pytest.mark.parametrize("steps", [[HANG], ["some", " more", HANG]], ids=["before the first token", "in the middle"])
@pytest.mark.parametrize("stream", [False, True])
async def test_triton_sees_within_100_ms_that_a_client_has_left(
    client: Client, log: ScriptedLog, steps: list[Any], stream: bool
) -> None:
    request = asyncio.create_task(client.ask(script(*steps, stream=stream)))
    await eventually(lambda: log.events("start"))
    await asyncio.sleep(0.2)
    left = time.time()
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    (cancelled,) = await eventually(lambda: log.events("cancelled"))
    assert cancelled["time"] - left < 0.1


@over_every_wire_that_tells
async def test_a_client_that_reads_some_events_and_leaves_stops_the_model(client: Client, log: ScriptedLog) -> None:
    async with client.stream(script({"repeat": [1000, "word ", 0.02]})) as stream:
        await stream.until(b"output_text.delta")
    (cancelled,) = await eventually(lambda: log.events("cancelled"))
    assert cancelled["output_tokens"] < 100


@over_one_wire
@pytest.mark.parametrize("stream", [False, True])
async def test_silence_before_the_first_token_is_a_503(client: Client, log: ScriptedLog, stream: bool) -> None:
    answer = await client.ask(script(HANG, stream=stream))
    assert (answer.status_code, error_of(answer)["code"]) == (503, "infer_backend_unavailable")
    await eventually(lambda: log.events("cancelled"))


@over_every_wire_that_tells
async def test_silence_in_the_middle_is_kept_alive_and_ends_with_an_error_event(
    client: Client, log: ScriptedLog
) -> None:
    async with client.stream(script("some", HANG)) as stream:
        events = await stream.rest()
    assert b": keep-alive\n\n" in stream.received
    assert events[-1].type == "error"
    await eventually(lambda: log.events("cancelled"))


def slow_reader(stack: LocalStack, chunks: int, *headers: str) -> socket.socket:
    """A client whose buffers hold little, with a request for so many chunks of 8 KB."""
    body = json.dumps(script({"repeat": [chunks, " " * 8000 + "a", 0.0005]}, stream=True)).encode()
    lines = [
        "POST /v1/infer/responses HTTP/1.1",
        "host: n",
        f"authorization: Bearer {stack.api_key}",
        "content-type: application/json",
        f"content-length: {len(body)}",
        *headers,
    ]
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", stack.port))
    client.sendall("\r\n".join([*lines, "", ""]).encode() + body)
    return client


@over_every_wire_that_tells
async def test_a_client_that_stops_reading_has_gone(broken_stack: LocalStack, log: ScriptedLog) -> None:
    sidecar_log = broken_stack.sidecar.process.log
    start = sidecar_log.stat().st_size
    # More than the buffers between the client and Envoy hold.
    with slow_reader(broken_stack, 3000):
        await eventually(lambda: log.events("cancelled"), 60)
        told = await eventually(lambda: access_lines(sidecar_log, start))
    assert [line["outcome"] for line in told] == ["client_gone"]


@over_one_wire
async def test_a_client_that_pauses_gets_all_of_the_last_answer_on_its_connection(
    broken_stack: LocalStack, log: ScriptedLog
) -> None:
    sidecar_log = broken_stack.sidecar.process.log
    start = sidecar_log.stat().st_size
    with slow_reader(broken_stack, 100, "connection: close") as client:
        # All of it waits in Envoy's buffers, which close the connection once they are empty.
        await eventually(lambda: access_lines(sidecar_log, start), 60)
        await asyncio.sleep(1.5)
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    assert answer.endswith(b"0\r\n\r\n")
    assert answer.count(b"event: response.completed") == 1


@over_every_wire_that_tells
async def test_triton_killed_before_the_first_token_is_a_503(broken_stack: LocalStack, client: Client) -> None:
    log = ScriptedLog(broken_stack.scripted_events)
    request = asyncio.create_task(client.ask(script({"sleep": 30}, "never", stream=True)))
    await eventually(lambda: log.events("start"))
    assert broken_stack.triton is not None
    broken_stack.triton.kill()
    answer = await request
    assert (answer.status_code, error_of(answer)["code"]) == (503, "infer_backend_unavailable")
    refused = await client.ask(script("ok"))
    assert (refused.status_code, error_of(refused)["code"]) == (503, "infer_backend_unavailable")
    broken_stack.start_triton()
    await well(client)


@over_every_wire_that_tells
async def test_triton_killed_in_the_middle_is_an_error_event(broken_stack: LocalStack, client: Client) -> None:
    async with client.stream(script("some", {"sleep": 30})) as stream:
        await stream.until(b"output_text.delta")
        assert broken_stack.triton is not None
        broken_stack.triton.kill()
        events = await stream.rest()
    assert [events[-1].type, events[-1].data["code"]] == ["error", "infer_backend_unavailable"]
    broken_stack.start_triton()
    await well(client)


@over_one_wire
async def test_a_model_that_crashes_in_the_middle_is_an_error_event(broken_stack: LocalStack, client: Client) -> None:
    events = await client.events(script("some", {"sleep": 0.2}, {"crash": True}))
    assert events[-1].type == "error"
    after = await client.ask(script("ok"))
    assert (after.status_code, error_of(after)["code"]) == (503, "infer_backend_unavailable")
    assert broken_stack.triton is not None
    broken_stack.triton.kill()
    broken_stack.start_triton()
    await well(client)


@over_one_wire
async def test_a_triton_that_comes_back_with_another_contract_is_asked_in_that(
    broken_stack: LocalStack, client: Client, tmp_path: Path
) -> None:
    workers = broken_stack.sidecar.worker_pids()
    assert broken_stack.triton is not None
    broken_stack.triton.kill()
    source = ROOT / "triton" / "models" / "scripted_vllm"
    model = tmp_path / "models" / "scripted"
    (model / "1").mkdir(parents=True)
    (model / "1" / "model.py").symlink_to(source / "1" / "model.py")
    (model / "config.pbtxt").write_text((source / "config.pbtxt").read_text().replace("scripted_vllm", "scripted"))
    broken_stack.triton = start_triton(
        TRITON_VENV,
        tmp_path,
        ["scripted"],
        ports=broken_stack.triton.ports,
        log=tmp_path / "triton.log",
        tokenizer=TOKENIZER,
        event_log=broken_stack.scripted_events,
        repository=model.parent,
    )
    await well(client)
    broken_stack.triton.kill()
    broken_stack.start_triton()
    await well(client)
    assert broken_stack.sidecar.worker_pids() == workers


@over_one_wire
async def test_a_killed_worker_takes_only_its_own_requests_with_it(broken_stack: LocalStack, client: Client) -> None:
    await all_healthy(broken_stack)
    first, second = broken_stack.sidecar.worker_pids()
    steps = [script("some", {"sleep": 1.0}, "end") for _ in range(8)]
    log = ScriptedLog(broken_stack.scripted_events)
    answers = [asyncio.create_task(client.ask({**body, "stream": True})) for body in steps]
    await eventually(lambda: len(log.events("start")) == len(steps))
    os.kill(first, signal.SIGKILL)
    results = await asyncio.gather(*answers, return_exceptions=True)
    whole = [one for one in results if isinstance(one, httpx2.Response) and b"response.completed" in one.content]
    assert 0 < len(whole) < 8
    # The other worker takes what comes meanwhile, and the supervisor starts a new one.
    assert (await client.ask(script("ok"))).status_code == 200
    await eventually(lambda: len(set(broken_stack.sidecar.worker_pids()) - {first}) == 2)
    assert second in broken_stack.sidecar.worker_pids()


def pid_of(life: str, stack: LocalStack) -> int:
    """The process of the worker that the store knows by this name: it has a file of that name open."""
    return next(
        pid
        for pid in stack.sidecar.worker_pids()
        if any(life in str(file.readlink()) for file in Path(f"/proc/{pid}/fd").iterdir() if file.is_symlink())
    )


@over_one_wire
async def test_who_lost_its_worker_tries_again_with_its_key_and_pays_once(
    broken_stack: LocalStack, log: ScriptedLog
) -> None:
    await all_healthy(broken_stack)
    key = {"Idempotency-Key": "after-a-death"}
    body = script("Hello", {"sleep": 0.1}, " there", {"sleep": 1.0}, "!", model="local/scripted")
    async with AsyncOpenAI(base_url=broken_stack.bureau_url, api_key=broken_stack.project_key, max_retries=0) as client:
        stream = await client.responses.create(**body, stream=True, extra_headers=key)
        events = aiter(stream)
        id_ = (await anext(events)).response.id.removeprefix("resp_")
        # With the second token it is certain that the first one counts.
        while "there" not in getattr(await anext(events), "delta", ""):
            pass
        ledger = LocalLedger(broken_stack)
        (row,) = ledger.rows("SELECT worker FROM reservations WHERE id = :id", id=id_)
        os.kill(pid_of(row["worker"], broken_stack), signal.SIGKILL)
        with pytest.raises((httpx2.TransportError, openai.APIError)):
            [event async for event in events]
        # It waits until it is known that nobody is at it any more.
        second = await client.responses.create(**body, stream=True, extra_headers=key)
        told = [event async for event in second]
        again = [event async for event in await client.responses.create(**body, stream=True, extra_headers=key)]
    assert told[-1].type == "response.completed"
    assert [event.to_json() for event in again] == [event.to_json() for event in told]
    assert len(log.events("start")) == 2
    await billed_once(ledger, told[-1].response.id.removeprefix("resp_"), "worker_lost")


@over_one_wire
async def test_a_hangup_is_nothing_to_a_worker(broken_stack: LocalStack, client: Client) -> None:
    workers = broken_stack.sidecar.worker_pids()
    for pid in workers:
        os.kill(pid, signal.SIGHUP)
    await well(client)
    assert broken_stack.sidecar.process.running()
    assert broken_stack.sidecar.worker_pids() == workers


@over_one_wire
async def test_all_workers_killed_while_a_head_is_held_is_envoys_json_503(
    broken_stack: LocalStack, client: Client, log: ScriptedLog
) -> None:
    request = asyncio.create_task(client.ask(script({"sleep": 20}, "never")))
    await eventually(lambda: log.events("start"))
    for pid in broken_stack.sidecar.worker_pids():
        os.kill(pid, signal.SIGKILL)
    answer = await request
    assert (answer.status_code, error_of(answer)["code"]) == (503, "node_unavailable")
    await well(client)


@over_every_wire_that_tells
async def test_a_draining_sidecar_finishes_short_streams_and_ends_long_ones_with_an_error(
    broken_stack: LocalStack, client: Client, log: ScriptedLog
) -> None:
    await all_healthy(broken_stack)
    short = asyncio.create_task(client.events(script("some", {"sleep": 1.0}, " end")))
    long = [asyncio.create_task(client.events(script({"repeat": [500, "word ", 0.1]}))) for _ in range(20)]
    await eventually(lambda: len(log.events("start")) == 21)
    sidecar_log = broken_stack.sidecar.process.log
    start = sidecar_log.stat().st_size
    os.kill(broken_stack.sidecar.process.pid, signal.SIGTERM)
    assert (await short)[-1].type == "response.completed"
    for events in await asyncio.gather(*long):
        assert (events[-1].type, events[-1].data["code"]) == ("error", "node_unavailable")
    await eventually(lambda: not broken_stack.sidecar.process.running(), 20)
    said = log_lines(sidecar_log, start)
    assert any(line["message"].startswith("draining") for line in said)
    assert [line for line in said if line["level"] != "info"] == []
    assert len(access_lines(sidecar_log, start)) == 21
    broken_stack.start_sidecar()
    await well(client)
