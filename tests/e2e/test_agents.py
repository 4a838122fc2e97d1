"""Agents run to their end: calls at the same time, their outputs, a handoff and an answer kept to a schema.

The scripted model plays the last script that it reads. What it should play next therefore comes after the script it
plays now: in the output of a tool, or in what it says before a call.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stack.local import SCRIPTED, LocalStack
from tests.e2e.codex import ONLY_FUNCTION_TOOLS, Codex
from tests.e2e.drivers import Access, run_node, run_python

Run = Callable[..., Any]


def script(*steps: str) -> str:
    return f"script:{json.dumps(steps)}"


def call(name: str, **arguments: str) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


QUESTION = script(call("get_weather", city="Paris"), "\n", call("get_time", city="Paris"))
WEATHER = "Sunny."
REPORT = {"city": "Paris", "sky": "sunny", "hour": 12}
ANSWER = "It is a sunny noon."


@pytest.mark.parametrize(
    ("run", "program", "handoff"),
    [(run_python, "agents_run.py", "transfer_to_reporter"), (run_node, "agents.mjs", "transfer_to_Reporter")],
)
def test_two_calls_then_a_handoff_then_a_report(stack: LocalStack, run: Run, program: str, handoff: str) -> None:
    # The marker of the inner script comes in two pieces, or the model would play that one first.
    inner = script(json.dumps(REPORT))
    time = f"Noon. {script(inner[:4], inner[4:], call(handoff))}"
    calls = [["get_weather", "get_time"], [handoff], []]
    whole_run = {"calls_by_answer": calls, "last_agent": "Reporter", "report": REPORT}
    runs = run(program, stack, SCRIPTED.name, QUESTION, WEATHER, time)
    assert runs == {"run": whole_run, "run_streamed": whole_run}


@pytest.mark.parametrize(
    ("program", "ways"),
    [("langchain_agent.py", {"invoke", "stream"}), ("pydantic_ai_agent.py", {"run", "iterate_streamed"})],
)
def test_two_calls_then_an_answer(stack: LocalStack, program: str, ways: set[str]) -> None:
    time = f"Noon. {script(ANSWER)}"
    whole_run = {"calls_by_answer": [["get_weather", "get_time"], []], "answer": ANSWER}
    assert run_python(program, stack, SCRIPTED.name, QUESTION, WEATHER, time) == dict.fromkeys(ways, whole_run)


def test_an_agent_runs_commands_and_changes_files_itself(stack: LocalStack) -> None:
    diff = "@@\n-def greet():\n+def hello():\n"
    change = script(call("apply_patch", type="update_file", path="a.py", diff=diff))
    show = f"<tool_call>{json.dumps({'name': 'local_shell', 'arguments': {'command': ['cat', 'a.py']}})}</tool_call>"
    runs = run_python(
        "agents_client_tools.py",
        Access.to_bureau(stack),
        f"local/{SCRIPTED.name}",
        script(show),
        change,
        script(ANSWER),
    )
    whole_run = {"commands": [["cat", "a.py"]], "text": "def hello():\n    pass\n", "answer": ANSWER}
    assert runs == {"run": whole_run, "run_streamed": whole_run}


def test_codex_runs_a_command_and_reads_its_output(stack: LocalStack, tmp_path: Path) -> None:
    codex = Codex(stack, SCRIPTED.name, tmp_path)
    (codex.work / "notes").write_text(script(ANSWER))
    assert codex.ask(script(call("exec_command", cmd="cat notes"))) == ANSWER


def test_codex_has_a_conversation_compacted_and_goes_on(stack: LocalStack, tmp_path: Path) -> None:
    settings = f"{ONLY_FUNCTION_TOOLS}model_auto_compact_token_limit = 100\n"
    codex = Codex(Access.to_bureau(stack), f"local/{SCRIPTED.name}", tmp_path, settings, provider="OpenAI")
    assert codex.ask(script("first")) == "first"
    assert codex.ask_on(script("second")) == "second"
    (session,) = tmp_path.rglob("rollout-*.jsonl")
    records = [json.loads(line) for line in session.read_text().splitlines()]
    (compacted,) = [record["payload"] for record in records if record["type"] == "compacted"]
    (item,) = [item for item in compacted["replacement_history"] if item["type"] == "compaction"]
    assert item["encrypted_content"]
