"""Real clients hold a conversation of two turns, the second with what they kept of the first one's output."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai
import pytest

from stack.local import SCRIPTED, LocalStack
from tests.e2e.codex import Codex
from tests.e2e.drivers import run_node, run_python

# The first answer is a script itself. The second question has none, so the model plays what the client sent back.
FIRST = r'script:["scri", "pt:[\"I remember.\"]"]'
SECOND = "And now?"
ANSWERS = ['script:["I remember."]', "I remember."]

Conversation = Callable[..., Any]


@pytest.mark.parametrize(
    ("run", "program", "ways"),
    [
        (run_node, "openai_conversation.mjs", {"create", "stream", "parse"}),
        (run_node, "open_responses_conversation.mjs", {"generateText", "streamText"}),
        (run_python, "agents_conversation.py", {"run", "run_streamed"}),
        (run_python, "langchain_conversation.py", {"invoke", "stream"}),
        (run_python, "agent_framework_conversation.py", {"run", "run_streamed"}),
        (run_python, "llm_conversation.py", {"whole", "streamed"}),
    ],
)
def test_a_client_sends_its_first_answer_back(
    stack: LocalStack, run: Conversation, program: str, ways: set[str]
) -> None:
    assert run(program, stack, SCRIPTED.name, FIRST, SECOND) == dict.fromkeys(ways, ANSWERS)


@pytest.mark.parametrize("way", ["create", "stream", "parse"])
def test_openai_python_sends_its_first_answer_back(stack: LocalStack, way: str) -> None:
    responses = openai.OpenAI(base_url=stack.url, api_key=stack.api_key).responses

    def ask(conversation: list[Any]) -> Any:
        if way == "stream":
            with responses.stream(model=SCRIPTED.name, input=conversation) as stream:
                return stream.get_final_response()
        return getattr(responses, way)(model=SCRIPTED.name, input=conversation)

    conversation: list[Any] = [{"role": "user", "content": FIRST}]
    first = ask(conversation)
    second = ask([*conversation, *first.output, {"role": "user", "content": SECOND}])
    assert [first.output_text, second.output_text] == ANSWERS


def test_codex_sends_its_first_answer_back(stack: LocalStack, tmp_path: Path) -> None:
    codex = Codex(stack, SCRIPTED.name, tmp_path)
    assert [codex.ask(FIRST), codex.ask_on(SECOND)] == ANSWERS


def test_codex_shows_why_its_other_tools_are_refused(stack: LocalStack, tmp_path: Path) -> None:
    codex = Codex(stack, SCRIPTED.name, tmp_path, settings="")
    with pytest.raises(AssertionError, match="is a tool of type 'namespace', which is not supported"):
        codex.ask(FIRST)


def test_codex_shows_why_a_stream_failed(stack: LocalStack, tmp_path: Path) -> None:
    codex = Codex(stack, SCRIPTED.name, tmp_path)
    with pytest.raises(AssertionError, match="The model failed while generating"):
        codex.ask('script:["some", {"error": "boom"}]')
