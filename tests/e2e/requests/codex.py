"""Codex CLI: developer messages first, many tools, and metadata that cannot be switched off."""

from __future__ import annotations

from typing import Any

from tests.e2e.requests.form import (
    ENCRYPTED_REASONING,
    Form,
    Json,
    answer,
    call_output,
    function_call,
    reasoning,
    schema,
)

HEADERS = {"accept": "text/event-stream", "originator": "codex_exec", "x-codex-turn-metadata": '{"turn_id":"turn"}'}


def tool(name: str, properties: Json, required: list[str]) -> Json:
    parameters = {**schema(properties), "required": required}
    return {"type": "function", "name": name, "description": "A tool.", "strict": False, "parameters": parameters}


STRING = {"type": "string", "description": "A text."}
NUMBER = {"type": "number", "description": "A number."}
OPTION = schema({"label": STRING, "description": STRING})
QUESTION = schema(
    {"id": STRING, "header": STRING, "question": STRING, "options": {"type": "array", "items": OPTION}},
)
SHELL = [
    tool(
        "exec_command",
        {
            "cmd": STRING,
            "justification": STRING,
            "login": {"type": "boolean", "description": "A choice."},
            "max_output_tokens": NUMBER,
            "prefix_rule": {"type": "array", "description": "Words.", "items": {"type": "string"}},
            "sandbox_permissions": {"type": "string", "enum": ["use_default", "require_escalated"]},
            "shell": STRING,
            "tty": {"type": "boolean", "description": "A choice."},
            "workdir": STRING,
            "yield_time_ms": NUMBER,
        },
        ["cmd"],
    ),
    tool(
        "write_stdin",
        {"session_id": NUMBER, "chars": STRING, "max_output_tokens": NUMBER, "yield_time_ms": NUMBER},
        ["session_id"],
    ),
    tool("request_user_input", {"questions": {"type": "array", "items": QUESTION}}, ["questions"]),
    tool("view_image", {"path": STRING}, ["path"]),
]
GOALS = [
    tool("get_goal", {}, []),
    tool("create_goal", {"objective": STRING, "token_budget": {"type": "integer"}}, ["objective"]),
    tool("update_goal", {"status": STRING}, ["status"]),
]
SUBAGENTS = {
    "type": "namespace",
    "name": "multi_agent_v1",
    "description": "Agents.",
    "tools": [tool("close_agent", {"target": STRING}, ["target"]), tool("spawn_agent", {"message": STRING}, [])],
}
WEB_SEARCH = {"type": "web_search", "external_web_access": False}
EVERY_TOOL = [*SHELL, SUBAGENTS, *GOALS, WEB_SEARCH]
WITHOUT_SUBAGENTS = [*SHELL, *GOALS, WEB_SEARCH]

UUID = "01900000-0000-7000-8000-000000000000"
METADATA = {
    "x-codex-installation-id": UUID,
    "thread_id": UUID,
    "x-codex-window-id": f"{UUID}:0",
    "turn_id": UUID,
    "root_turn_id": UUID,
    "session_id": UUID,
    "x-codex-turn-metadata": "{}",
}


def message(role: str, *texts: str, **more: Any) -> Json:
    parts = [{"type": "input_text", "text": text} for text in texts]
    return {"type": "message", "role": role, "content": parts, **more}


def turn(*items: Json, tools: list[Json], **more: Any) -> Json:
    return {
        "stream": True,
        "input": [*PREAMBLE, *items],
        "tools": tools,
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "reasoning": {"summary": "auto"},
        "store": False,
        "include": ENCRYPTED_REASONING,
        "prompt_cache_key": UUID,
        "client_metadata": METADATA,
        **more,
    }


PREAMBLE = [
    message("developer", "You are a coding agent.", id="msg_1"),
    message("developer", "The sandbox.", "The network.", id="msg_2"),
    message("user", "The environment.", id="msg_3"),
]
SAY_HI = message("user", "Say hi.", id="msg_4")
SHELL_CALL = [
    function_call("call_1", "exec_command", '{"cmd": "ls"}', id="fc_1", status="completed"),
    call_output("call_1", "Exit code: 0", id="fco_1"),
]
DESCRIBE = message(
    "user", '<image name=[Image #1] path="red.png">', "It was left out.", "</image>", "Describe.", id="msg_4"
)
UNREADABLE_REASONING = {"encrypted_content": None}

FORMS = {
    "every tool": Form(turn(SAY_HI, tools=EVERY_TOOL), refused=("unsupported_parameter", "tools[4]")),
    "its tool output": Form(turn(SAY_HI, *SHELL_CALL, tools=EVERY_TOOL), refused=("unsupported_parameter", "tools[4]")),
    "only functions": Form(turn(SAY_HI, tools=[*SHELL, *GOALS])),
    "fewest functions and high effort": Form(turn(SAY_HI, tools=SHELL, reasoning={"effort": "high"})),
    "resumed with web search": Form(
        turn(
            DESCRIBE,
            reasoning(1, **UNREADABLE_REASONING),
            *SHELL_CALL,
            reasoning(2, **UNREADABLE_REASONING),
            answer('{"answer": "red"}'),
            message("developer", "The model has changed.", id="msg_5"),
            message("user", "And again.", id="msg_6"),
            tools=WITHOUT_SUBAGENTS,
        ),
        refused=("unsupported_parameter", "tools[7]"),
    ),
    "resumed with functions only": Form(
        turn(
            DESCRIBE,
            reasoning(1, **UNREADABLE_REASONING),
            *SHELL_CALL,
            reasoning(2, **UNREADABLE_REASONING),
            answer('{"answer": "red"}'),
            message("developer", "The model has changed.", id="msg_5"),
            message("user", "And again.", id="msg_6"),
            tools=[*SHELL, *GOALS],
        )
    ),
    "compaction": Form(
        turn(SAY_HI, *SHELL_CALL, message("user", "Sum up what was done."), tools=[], parallel_tool_calls=False)
    ),
    "after a compaction": Form(
        turn(SAY_HI, message("user", "What was done so far.", id="msg_7"), tools=EVERY_TOOL),
        refused=("unsupported_parameter", "tools[4]"),
    ),
    "second compaction": Form(
        turn(
            SAY_HI,
            message("user", "What was done so far.", id="msg_7"),
            *SHELL_CALL,
            message("user", "Sum up what was done."),
            tools=[],
            parallel_tool_calls=False,
        )
    ),
}
