"""Clients that store responses and continue them, streamed and not, while workers are killed; and what they were told.

Run as a program, it does so for longer, on a stack of its own:

    .venv/bin/python -m tests.e2e.storing KILLS STORE_URL
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from conformance import check_response
from sidecar.stored.keep import LONGEST
from stack.first_key import command
from stack.local import SCRIPTED, LocalStack
from tests.core.sse import parse
from tests.e2e.client import eventually
from tests.e2e.ledger import LocalLedger

SLUG = "local/scripted"
CLIENTS = 6
SECONDS = 5.0
"""For so long a client waits. A turn takes less than half a second, unless the response that it continues is lost."""


@dataclass
class Told:
    """A response that a client got to its end, and the conversation that it was told to belong to."""

    response: dict[str, Any]
    said: list[str]
    streamed: bool

    @property
    def as_stored(self) -> dict[str, Any]:
        return {**self.response, "store": True}


@dataclass
class Talks:
    """What clients say, and what they were told, by the ids of the responses: all of it, or some tokens of a stream."""

    url: str
    key: str
    seed: int
    told: dict[str, Told] = field(default_factory=dict)
    broken: dict[str, int] = field(default_factory=dict)
    failed: int = 0
    over: bool = False

    @asynccontextmanager
    async def going_on(self) -> AsyncIterator[None]:
        """Clients talk as long as the context lasts, and finish what they are at."""
        talking = [asyncio.create_task(self._talk(random.Random(self.seed + number))) for number in range(CLIENTS)]
        try:
            yield
        finally:
            self.over = True
            await asyncio.gather(*talking)

    async def _talk(self, choose: random.Random) -> None:
        last: Told | None = None
        async with client(self.key, SECONDS) as http:
            while not self.over:
                try:
                    last = await self._turn(http, last, choose)
                except httpx2.TransportError:
                    last = None
                if last is None:
                    self.failed += 1
                    await asyncio.sleep(0.1)
                elif choose.random() < 0.1:
                    last = None

    async def _turn(self, http: httpx2.AsyncClient, last: Told | None, choose: random.Random) -> Told | None:
        """A turn that continues ``last``; ``None`` where it was not answered to its end."""
        steps = [{"repeat": [choose.randint(5, 60), " w", 0.005]}, {"no_end_id": True}]
        said = f"{choose.random()} script:{json.dumps(steps)}"
        body: dict[str, Any] = {"model": SLUG, "input": said, "store": True}
        said_so_far = [said]
        if last is not None:
            body["previous_response_id"] = last.response["id"]
            said_so_far = [*last.said, text_of(last.response), said]
        if choose.random() < 0.5:
            answer = await http.post(f"{self.url}/responses", json=body)
            told = Told(answer.json(), said_so_far, streamed=False) if answer.status_code == 200 else None
        else:
            told = await self._stream(http, {**body, "stream": True}, said_so_far)
        if told is not None:
            self.told[told.response["id"]] = told
        return told

    async def _stream(self, http: httpx2.AsyncClient, body: dict[str, Any], said: list[str]) -> Told | None:
        received = b""
        try:
            async with http.stream("POST", f"{self.url}/responses", json=body) as answer:
                async for piece in answer.aiter_bytes():
                    received += piece
        except httpx2.TransportError:
            pass
        events = [event.data for event in parse(received[: received.rfind(b"\n\n") + 2])] if b"\n\n" in received else []
        if not events or "response" not in events[0]:
            return None
        if events[-1]["type"] == "response.completed":
            return Told(events[-1]["response"], said, streamed=True)
        deltas = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
        self.broken[events[0]["response"]["id"]] = sum(delta.count(" w") for delta in deltas)
        return None


def text_of(response: dict[str, Any]) -> str:
    """What the model said."""
    return "".join(part["text"] for item in response["output"] for part in item["content"])


def client(key: str, seconds: float = 60) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(headers={"authorization": f"Bearer {key}"}, timeout=seconds)


async def kill_at_random(stack: LocalStack, talks: Talks, kills: int) -> None:
    """Kill one worker after another, each when some responses have been made since the one before."""
    choose = random.Random(talks.seed)
    for _ in range(kills):
        enough = len(talks.told) + choose.randint(8, 30)
        async with asyncio.timeout(60):
            while len(talks.told) < enough:
                await asyncio.sleep(0.01)
        pids = await eventually(stack.sidecar.worker_pids, 60)
        os.kill(choose.choice(pids), signal.SIGKILL)


async def check_stored(stack: LocalStack, ledger: LocalLedger, talks: Talks) -> Counter[str]:
    """Look at all that there is: what was told to be stored is there as it was told, and nothing is there by half.

    Of a stream that was lost nothing is left when its time is over. Returns how many there were of each kind.
    """
    stored = ledger.rows("SELECT id FROM stored_responses WHERE stored_at IS NOT NULL")
    contents = ledger.rows("SELECT response_id AS id FROM stored_contents")
    assert sorted(row["id"] for row in stored) == sorted(row["id"] for row in contents)
    kinds = Counter[str]()
    lost = set[str]()
    async with client(talks.key) as http:
        for id, told in talks.told.items():
            there = await http.get(f"{talks.url}/responses/{id}")
            if there.status_code == 200 and there.json()["status"] != "in_progress":
                assert there.json() == told.as_stored
                await _check_items(http, f"{talks.url}/responses/{id}/input_items", told)
                kinds["streams stored" if told.streamed else "stored"] += 1
            else:
                # What was said to be stored is; a stream said nothing of it.
                assert told.streamed or told.response["store"] is False, told.response
                lost.add(id)
                kinds["streams lost" if told.streamed else "said not to be stored"] += 1
        for id in talks.broken:
            there = await http.get(f"{talks.url}/responses/{id}")
            if there.status_code == 200 and there.json()["status"] != "in_progress":
                assert check_response(there.json()) == []
                kinds["streams broken and stored"] += 1
            else:
                lost.add(id)
                kinds["streams broken and lost"] += 1
        ledger.execute("UPDATE stored_responses SET expires_at = expires_at - :longest", longest=LONGEST)
        for id in lost:
            assert (await http.get(f"{talks.url}/responses/{id}")).status_code == 404
    options = ("--project", "elsewhere", "--environment", "production")
    stranger = command(stack.sidecar.config, "keys", "create", "local", *options)["secret"]
    async with client(stranger) as http:
        for id in talks.told:
            assert (await http.get(f"{talks.url}/responses/{id}")).status_code == 404
    return kinds


async def _check_items(http: httpx2.AsyncClient, url: str, told: Told) -> None:
    found, after = list[str](), dict[str, str]()
    while True:
        page = (await http.get(url, params={"order": "asc", "limit": 100, **after})).json()
        found += [item["content"][0]["text"] for item in page["data"]]
        if not page["has_more"]:
            break
        after = {"after": page["last_id"]}
    assert found == told.said


def check_records(ledger: LocalLedger, talks: Talks) -> Counter[str]:
    """Each response that clients know has one record, with the tokens that they got; how many ended how."""
    records = {f"resp_{row['id']}": row for row in ledger.rows("SELECT * FROM usage_records")}
    kinds = Counter[str]()
    for id, told in talks.told.items():
        usage, record = told.response["usage"], records[id]
        tokens = {name: (usage[name], record[name]) for name in ("input_tokens", "output_tokens")}
        if record["outcome"] == "worker_lost":
            # A worker that was killed may not have noted what it had just written, of a whole answer all.
            kinds["tokens given for nothing"] += sum(given - noted for given, noted in tokens.values())
            assert all(noted <= given for given, noted in tokens.values()), record
        else:
            assert all(noted == given for given, noted in tokens.values()), record
        kinds[f"{record['outcome']} in the ledger"] += 1
    for id, given in talks.broken.items():
        kinds["tokens given for nothing"] += max(0, given - records[id]["output_tokens"])
        assert records[id]["outcome"] == "worker_lost" or records[id]["output_tokens"] >= given, records[id]
    return kinds


async def _run(kills: int, url: str) -> None:
    with (
        tempfile.TemporaryDirectory() as directory,
        LocalStack(Path(directory), models=[SCRIPTED], sidecar_settings={"store": {"url": url}, "drain": 1.0}) as stack,
    ):
        talks, ledger = Talks(stack.bureau_url, stack.project_key, seed=kills), LocalLedger(stack, url)
        async with talks.going_on():
            await kill_at_random(stack, talks, kills)
        await eventually(lambda: len(stack.sidecar.worker_pids()) == 2, 60)
        await ledger.settled()
        records = check_records(ledger, talks)
        kinds = await check_stored(stack, ledger, talks)
        print(f"{kills} kills, {talks.failed} turns failed: {dict(kinds)}, {dict(records)}")


if __name__ == "__main__":
    asyncio.run(_run(int(sys.argv[1]), sys.argv[2]))
