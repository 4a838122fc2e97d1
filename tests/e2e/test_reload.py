"""Another configuration, and another model in Triton, while clients are served by real parts."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from stack.local import SCRIPTED, LocalStack
from stack.paths import ROOT, TOKENIZER, TRITON_VENV
from stack.procfs import started
from stack.triton import start as start_triton
from tests.e2e.client import Client, error_of, eventually, script
from tests.e2e.scraping import scrape

LOADED = "responses_config_last_reload_successful"
LOADED_AT = "responses_config_last_reload_success_timestamp_seconds"
HANG = {"hang": True}
OTHER = {**SCRIPTED.section(), "name": "other"}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    with LocalStack(
        tmp_path_factory.mktemp("reload"), models=[SCRIPTED], sidecar_settings={"keep_alive": 0.5}
    ) as stack:
        yield stack


@pytest.fixture
async def client(stack: LocalStack) -> AsyncIterator[Client]:
    async with Client(stack) as client:
        yield client


class Configuration:
    """The file of a running sidecar; ``log`` is what the sidecar has logged since."""

    def __init__(self, stack: LocalStack) -> None:
        self.stack = stack
        self.path = stack.sidecar.config
        self.text = self.path.read_text()
        self._log = stack.run_dir / "sidecar.log"
        self._logged = len(self._log.read_text())

    @property
    def log(self) -> str:
        return self._log.read_text()[self._logged :]

    def write(self, text: str) -> None:
        """As Kubernetes does it: what the link leads to is another directory each time."""
        directory = self.path.with_name(f"..{len(list(self.path.parent.iterdir()))}")
        directory.mkdir()
        (directory / self.path.name).write_text(text)
        link = directory / "link"
        link.symlink_to(directory / self.path.name)
        link.rename(self.path)

    def change(self, **settings: Any) -> None:
        self.write(yaml.safe_dump({**yaml.safe_load(self.text), **settings}))

    async def value(self, name: str) -> float:
        while True:
            with suppress(httpx2.TransportError):
                now = await scrape(self.stack)
                assert name in now.names(), sorted(now.names())
                return now.value(name)

    async def loaded(self, change: Callable[[], object]) -> None:
        """Do ``change``, and wait until what it leads to is in force."""
        before = await self.value(LOADED_AT)
        change()
        async with asyncio.timeout(90):
            while await self.value(LOADED_AT) <= before or await self.value(LOADED) != 1:
                await asyncio.sleep(0.1)

    async def refused(self, change: Callable[[], object]) -> None:
        """Do ``change``, and wait until it is known that it cannot be."""
        change()
        async with asyncio.timeout(90):
            while await self.value(LOADED) != 0:
                await asyncio.sleep(0.1)


@pytest.fixture
def configuration(stack: LocalStack) -> Configuration:
    """What the test before has left: each loads what it needs."""
    return Configuration(stack)


def hang_up(stack: LocalStack) -> None:
    os.kill(stack.sidecar.process.pid, signal.SIGHUP)


async def statuses_until(client: Client, over: asyncio.Event) -> set[int]:
    statuses = set()
    while not over.is_set():
        statuses.add((await client.ask(script("ok"))).status_code)
        # Few, so that the new workers come to start.
        await asyncio.sleep(0.05)
    return statuses


async def test_streams_go_on_as_they_began_and_no_request_fails(
    stack: LocalStack, client: Client, configuration: Configuration
) -> None:
    before, over = stack.sidecar.worker_pids(), asyncio.Event()
    async with AsyncExitStack() as open_streams:
        hanging = [await open_streams.enter_async_context(client.stream(script("a ", HANG))) for _ in range(4)]
        for stream in hanging:
            await stream.until(b"output_text.delta")
        writing = [asyncio.create_task(client.events(script({"repeat": [100, "x ", 0.1]}))) for _ in range(4)]
        asking = asyncio.create_task(statuses_until(client, over))
        await configuration.loaded(lambda: configuration.change(keep_alive=600, models=[SCRIPTED.section(), OTHER]))
        assert (await client.ask({**script("ok"), "model": "other"})).status_code == 200
        for stream in hanging:
            stream.received = b""
        # Only who began before is sent these.
        for stream in hanging:
            await stream.until(b": keep-alive\n\n")
        assert all(started(pid) for pid in before)
        over.set()
        assert await asking == {200}
        for events in await asyncio.gather(*writing):
            assert events[-1].type == "response.completed"
            assert sum(event.type == "response.output_text.delta" for event in events) == 100
    await eventually(lambda: not any(started(pid) for pid in before), 60)
    assert len(set(stack.sidecar.worker_pids()) - set(before)) == 2


async def test_limits_formats_and_models_take_effect_in_all_workers(
    client: Client, configuration: Configuration
) -> None:
    thinking = {**SCRIPTED.section(), "name": "thinking", "reasoning_format": "think"}
    small = {**SCRIPTED.section(), "limits": {"max_request_bytes": 200}}
    limits = {"defaults": {"requests_per_minute": 8}}
    await configuration.loaded(lambda: configuration.change(models=[small, thinking], admission=limits))
    for _ in range(6):
        gone = await client.ask({**script("ok"), "model": "other"})
        assert (gone.status_code, error_of(gone)["code"]) == (404, "model_not_available")
        assert (await client.ask(script("ok" * 100))).status_code == 413
    thought = (await client.ask({**script("<think>a</think>b"), "model": "thinking"})).json()
    assert [item["type"] for item in thought["output"]] == ["reasoning", "message"]
    statuses = [(await client.ask({**script("ok"), "model": "thinking"})).status_code for _ in range(10)]
    assert statuses == [200] * 7 + [429] * 3


async def test_a_new_worker_that_is_killed_at_its_start_costs_no_change(
    stack: LocalStack, configuration: Configuration
) -> None:
    before = _children(stack)

    def change() -> None:
        configuration.change(drain=7)
        # It loads for a second or two.
        while not (new := _children(stack) - before):
            time.sleep(0.02)
        os.kill(new.pop(), signal.SIGKILL)

    await configuration.loaded(change)
    assert "what was in force stays: worker" in configuration.log


def _children(stack: LocalStack) -> set[int]:
    """The workers, those on trial too."""
    supervisor = stack.sidecar.process.pid
    return set(map(int, Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()))


async def test_a_file_that_cannot_be_used_changes_nothing(
    stack: LocalStack, client: Client, configuration: Configuration
) -> None:
    before = stack.sidecar.worker_pids()
    await configuration.refused(lambda: configuration.write("models: ["))
    await eventually(lambda: "sidecar.yaml: not YAML" in configuration.log)
    configuration.change(models=[{**SCRIPTED.section(), "tokenizer": "nowhere"}])
    words = r"models\[0\].tokenizer: \S+nowhere/tokenizer.json: no such file"
    await eventually(lambda: re.search(words, configuration.log), 90)
    assert stack.sidecar.worker_pids() == before
    # What is started again in between has what is in force.
    os.kill(before[0], signal.SIGKILL)
    await eventually(lambda: len(set(stack.sidecar.worker_pids()) - set(before)) == 1, 90)
    for _ in range(4):
        assert (await client.ask(script("ok"))).status_code == 200
    configuration.write(configuration.text)
    await eventually(lambda: "is what is in force again" in configuration.log)
    assert await configuration.value(LOADED) == 1
    assert stack.sidecar.worker_pids()[1] == before[1]


async def test_what_counts_from_the_next_start_is_told_and_a_hang_up_has_all_loaded_again(
    stack: LocalStack, client: Client, configuration: Configuration
) -> None:
    changed = {"workers": 3, "node": "b", "drain": 3, "transport": "grpc_aio", "keep_alive": 0.5, "admission": {}}
    await configuration.loaded(lambda: configuration.change(**changed))
    assert re.search("changed: transport,.* drain", configuration.log)
    assert "counts from the next start only: node, workers" in configuration.log
    before = stack.sidecar.worker_pids()
    assert len(before) == 2
    async with client.stream(script("a ", HANG)) as stream:
        await stream.until(b"output_text.delta")
        await configuration.loaded(lambda: hang_up(stack))
        assert not set(before) & set(stack.sidecar.worker_pids())
        stream.received = b""
        await stream.until(b": keep-alive\n\n")
    await eventually(lambda: not any(started(pid) for pid in before), 90)
    assert (await client.ask(script("ok"))).status_code == 200


async def test_a_model_that_comes_back_with_other_tensors_is_recognised(
    stack: LocalStack, client: Client, configuration: Configuration, tmp_path: Path
) -> None:
    assert (await client.ask(script("ok"))).status_code == 200
    pids = stack.sidecar.worker_pids()
    repository = tmp_path / "models"
    shutil.copytree(ROOT / "triton/models/scripted_vllm/1", repository / "scripted/2")
    named = (ROOT / "triton/models/scripted_vllm/config.pbtxt").read_text().replace("scripted_vllm", "scripted")
    (repository / "scripted/config.pbtxt").write_text(named)
    (tmp_path / "runtime").symlink_to(ROOT / "triton/runtime")
    assert stack.triton is not None
    stack.triton.stop()
    stack.triton = start_triton(
        TRITON_VENV,
        stack.run_dir / "triton",
        ["scripted"],
        ports=stack.triton.ports,
        log=stack.run_dir / "triton.log",
        tokenizer=TOKENIZER,
        event_log=stack.scripted_events,
        repository=repository,
    )
    await eventually(lambda: configuration.log.count("model scripted: contract vllm") == 2, 30)
    # Where its absence was noticed it is known to fail until it has answered, to each worker for itself.
    async with asyncio.timeout(60):
        while (statuses := {(await client.ask(script("ok"))).status_code for _ in range(6)}) != {200}:
            assert statuses <= {200, 503}
            await asyncio.sleep(0.1)
    for _ in range(6):
        answer = (await client.ask(script("Grüße ", "an alle"))).json()
        assert answer["output"][0]["content"][0]["text"] == "Grüße an alle"
    assert stack.sidecar.worker_pids() == pids
