"""Real clients on the bureau surface, with only the base URL and the key changed: each turn continues what is stored.

The scripted model plays the last script that it reads. A question has none but the first, so that what is played shows
that the conversation was there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from stack.local import LocalStack
from tests.e2e.codex import Codex
from tests.e2e.drivers import Access, run_node, run_python
from tests.e2e.test_agents import call, script
from tests.e2e.test_conversations import ANSWERS, FIRST, SECOND

SLUG = "local/scripted"
QUESTION = script(call("get_weather", city="Paris"))
CALLED = ["message", "function_call", "function_call_output"]


@pytest.fixture(scope="module")
def bureau(stack: LocalStack) -> Access:
    return Access.to_bureau(stack)


@pytest.fixture(scope="module")
def client(bureau: Access) -> Iterator[Any]:
    with OpenAI(base_url=bureau.url, api_key=bureau.api_key, max_retries=0) as client:
        yield client


def turns(client: Any, last: str) -> int:
    """How many responses make up the conversation that ends with one."""
    previous = client.responses.retrieve(last).previous_response_id
    return 1 if previous is None else 1 + turns(client, previous)


def test_openai_node_fetches_lists_deletes_and_continues(bureau: Access) -> None:
    seen = run_node("openai_stored.mjs", bureau, SLUG, FIRST, SECOND)
    assert seen["kept"] == seen["made"]
    assert seen["answers"] == [*ANSWERS, ANSWERS[1]]
    assert seen["previous"] is True
    assert seen["pages"] == [[FIRST, ANSWERS[0]], [SECOND, ANSWERS[1]], [SECOND]]
    gone = {"name": "NotFoundError", "status": 404, "code": "not_found"}
    params = [None, None, None, "previous_response_id"]
    assert seen["failures"] == [{**gone, "param": param} for param in params]


@pytest.mark.parametrize(
    ("run", "program", "ways", "responses"),
    [
        (run_python, "agents_stored.py", {"run", "run_streamed"}, 4),
        # What it calls in the first turn it sends whole; it has no id to continue yet.
        (run_node, "agents_stored.mjs", {"run", "run_streamed"}, 3),
        (run_python, "langchain_stored.py", {"invoke", "stream"}, 4),
    ],
)
def test_an_agent_continues_its_last_response(
    bureau: Access, client: Any, run: Callable[..., Any], program: str, ways: set[str], responses: int
) -> None:
    conversations = run(program, bureau, SLUG, FIRST, QUESTION, SECOND, "And then?")
    assert conversations.keys() == ways
    for conversation in conversations.values():
        assert conversation["answers"] == [*ANSWERS, ANSWERS[1]]
        assert turns(client, conversation["last"]) == responses
        # Nothing was sent twice.
        listed = client.responses.input_items.list(conversation["last"], order="asc")
        assert [item.type for item in listed] == [*CALLED, *["message"] * 4]


def test_codex_has_a_second_turn(bureau: Access, tmp_path: Path) -> None:
    codex = Codex(bureau, SLUG, tmp_path)
    assert [codex.ask(FIRST), codex.ask_on(SECOND)] == ANSWERS
