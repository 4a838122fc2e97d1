"""The status page in a real browser, in front of a real node: what it shows, and what its playground does."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from typing import Any, NamedTuple

import httpx2
import pytest

from stack.local import LocalStack
from stack.setup import BROWSER_TESTS, NODE
from tests.e2e.client import Client, eventually, script

TOOLS = [{"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {"city": {}}}}]
CALL = '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>'
UNAUTHORIZED = "Failed to load resource: the server responded with a status of 401 (Unauthorized)"
MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script>"


def browse(program: str, stack: LocalStack, *arguments: str) -> Any:
    """What one of the programs in ``browser`` has seen; it is given the page and the key of the stack."""
    done = subprocess.run(
        [NODE, program, f"http://{stack.admin}/", stack.api_key, *arguments],
        cwd=BROWSER_TESTS,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


async def overview(stack: LocalStack) -> Any:
    async with httpx2.AsyncClient(verify=False) as http:
        return (await http.get(f"http://{stack.admin}/status/data/node")).json()


async def until_listed(stack: LocalStack, request_id: str) -> Any:
    """The failure with this id, once any worker tells of it."""
    async with asyncio.timeout(20):
        while True:
            for failure in (await overview(stack))["failures"]:
                if failure["request_id"] == request_id:
                    return failure
            await asyncio.sleep(0.05)


class Seen(NamedTuple):
    """What the page has shown, and the id of a request that had failed before."""

    page: Any
    failed: str


@pytest.fixture(scope="module")
def seen(stack: LocalStack) -> Seen:
    return asyncio.run(look(stack))


async def look(stack: LocalStack) -> Seen:
    async with Client(stack) as client:
        for _ in range(3):
            await client.events(script("some", " words"))
        failed = await client.ask(script({"error": "broken"}))
    request_id = failed.headers["x-request-id"]
    failure = await until_listed(stack, request_id)
    assert (failure["model"], failure["status"], failure["surface"]) == ("scripted", failed.status_code, "node")
    # The plots have what is older than ten seconds.
    async with asyncio.timeout(30):
        while sum((await overview(stack))["hour"]["requests"]) < 4:
            await asyncio.sleep(0.2)
    return Seen(browse("overview.mjs", stack), request_id)


def test_the_page_shows_the_node(seen: Seen) -> None:
    page = seen.page
    assert page["faults"] == [UNAUTHORIZED]
    assert page["title"] == "local – status"
    assert "2 workers" in page["summary"]
    assert page["plots"] == ["Streams", "Tokens written", "Time to the first token", "Errors"]
    assert page["drawn"] >= 1
    (row,) = (row for row in page["models"] if row.startswith("scripted\n"))
    assert all(words in row for words in ("ready", "token_level", "hermes", "32,768"))
    assert any(seen.failed in row for row in page["failures"])
    # What is selected in it to be copied stays so.
    assert page["stays"]


def test_organizations_are_for_who_has_a_key(seen: Seen, stack: LocalStack) -> None:
    page = seen.page
    assert "scope admin" in page["before"]
    assert "local" not in page["before"]
    assert "checksum" in page["refused"]
    (local,) = (one for one in page["organizations"] if one.startswith("local"))
    assert "Tokens out" in local
    # The key is nowhere but in the page's memory.
    assert page["kept"] == [f"http://{stack.admin}/status/", "", {}, {}]


def test_the_page_fits_keyboards_and_screens(seen: Seen) -> None:
    page = seen.page
    assert page["tabs"][:6] == ["Skip to the content", "Last hour", "Models", "Failures", "Organizations", "Playground"]
    assert page["tabs"][6] == "key"
    assert re.match(r"\d\d:\d\d:\d\d\s+at a time [\d.]+", page["read"])
    assert page["light"]["wider"] == page["phone"]["wider"] == 0
    assert page["light"]["ground"] != page["phone"]["ground"]


def test_by_another_name_the_page_needs_a_key(stack: LocalStack) -> None:
    page = browse("elsewhere.mjs", stack, script("far")["input"])
    assert ("scope admin" in page["refused"], page["before"]) == (True, 0)
    assert (page["alert"], page["text"]) == (False, "far")


def test_the_playground_shows_what_comes(stack: LocalStack) -> None:
    steps = ["<think>Hm, ", "the weather.</think>", "Let me look.", CALL]
    requests = [
        {
            "model": "scripted-thinking",
            "prompt": f"script:{json.dumps(steps)}",
            "further": json.dumps({"tools": TOOLS}),
        },
        {"model": "scripted", "prompt": f"script:{json.dumps([MARKUP])}"},
        {"model": "scripted", "prompt": f"script:{json.dumps(['some', {'error': 'boom'}])}"},
        {"model": "scripted", "prompt": "script:[]", "client-key": f"{stack.api_key[:-1]}!"},
        {"model": "scripted", "prompt": "script:[]", "further": "[1]"},
        {"surface": "bureau", "model": "local/scripted", "prompt": 'script:["two"]', "client-key": stack.project_key},
    ]
    page = browse("playground.mjs", stack, json.dumps(requests))
    thinking, markup, broken, unknown, unsent, bureau = page["answers"]
    assert (thinking["reasoning"], thinking["text"]) == ("Hm, the weather.", "Let me look.")
    assert thinking["calls"] == ['get_weather {"city": "Paris"}']
    assert (thinking["types"][0], thinking["types"][-1]) == ("response.created", "response.completed")
    assert json.loads(thinking["data"][-1])["response"]["status"] == thinking["outcome"][0] == "completed"
    assert (markup["text"], markup["elements"]) == (MARKUP, 0)
    assert (broken["text"], broken["outcome"][0]) == ("some", "not complete")
    assert broken["types"][-1] == "error"
    assert unknown["outcome"][0] == "HTTP 401"
    assert unknown["outcome"][-1].startswith("unauthorized: ")
    assert unsent["outcome"][-1] == "The further parameters: an object is needed"
    assert (bureau["text"], bureau["outcome"][0]) == ("two", "completed")
    assert page["faults"] == [UNAUTHORIZED]


async def test_an_answer_is_shown_as_it_comes_and_can_be_stopped(stack: LocalStack) -> None:
    prompt = script("some", " words", {"hang": True})["input"]
    page = browse("stop.mjs", stack, prompt)
    assert (page["during"], page["after"]) == ("answering", "stopped")
    log = stack.run_dir / "sidecar.log"

    def ended() -> bool:
        lines = [line for line in log.read_text().splitlines() if page["request"] in line]
        return any("client_gone" in line for line in lines)

    assert await eventually(ended, 20)
