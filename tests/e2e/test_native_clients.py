"""Real clients on a model of a native upstream, turn by turn: what they continue is stored here, or sent whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from openai import OpenAI

from stack.local import LocalStack
from tests.e2e.codex import Codex
from tests.e2e.drivers import Access, run_python

SLUG = "scripted/native"
# Its answer is a script, which the next turn plays; before that it must not look like one.
FIRST = r'script:["scri\u0070t:[\"I remember.\"]"]'
SECOND = "And now?"
ANSWERS = ['script:["I remember."]', "I remember."]
QUESTION = f"script:{json.dumps([{'call': ['get_weather', json.dumps({'city': 'Paris'})]}])}"


@pytest.mark.parametrize("program", ["agents_stored.py", "langchain_stored.py"])
def test_an_agent_continues_its_last_response(stack: LocalStack, program: str) -> None:
    bureau = Access.to_bureau(stack)
    conversations = run_python(program, bureau, SLUG, FIRST, QUESTION, SECOND)
    with OpenAI(base_url=bureau.url, api_key=bureau.api_key, max_retries=0) as client:
        for conversation in conversations.values():
            assert conversation["answers"] == ANSWERS
            listed = client.responses.input_items.list(conversation["last"], order="asc")
            assert [item.type for item in listed] == [
                "message",
                "function_call",
                "function_call_output",
                *["message"] * 2,
            ]


def test_codex_has_a_second_turn(stack: LocalStack, tmp_path: Path) -> None:
    codex = Codex(Access.to_bureau(stack), SLUG, tmp_path)
    assert [codex.ask(FIRST), codex.ask_on(SECOND)] == ANSWERS
