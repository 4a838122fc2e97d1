"""LangChain's ChatOpenAI for Python: typed messages, an explicit ``stream: false``, stale reasoning items."""

from __future__ import annotations

from typing import Any

from tests.e2e.requests.form import (
    ENCRYPTED_REASONING,
    IMAGE,
    Form,
    Json,
    call_output,
    forced,
    function_call,
    picture,
    reasoning,
    says,
    schema,
)

HEADERS = {"accept": "application/json", "x-stainless-lang": "python", "x-stainless-retry-count": "0"}

WEATHER = {
    "type": "function",
    "name": "Weather",
    "description": "The weather of a city",
    "parameters": schema({"city": {"type": "string"}}),
    "strict": True,
}
SYSTEM = {"content": "Be brief.", "role": "system", "type": "message"}
QUESTION = {"content": "Weather?", "role": "user", "type": "message"}
DEMANDED = {"content": forced("Weather", {"city": "Paris"}), "role": "user", "type": "message"}
# The item as it was when it was added to the stream, not as it was when it was done.
STALE_REASONING = {"id": "rs_1", "summary": [], "type": "reasoning", "content": [], "status": "in_progress"}
TOOL_LOOP = [
    function_call("call_1", "Weather", '{"city": "Paris"}', id="fc_1"),
    call_output("call_1", "sunny"),
]
ANSWER = {
    "type": "message",
    "content": [{"type": "output_text", "text": "Sunny.", "annotations": []}],
    "role": "assistant",
    "id": "msg_1",
}
PICTURE = {
    "content": [{"type": "input_text", "text": "And this?"}, {"type": "input_image", "image_url": IMAGE}],
    "role": "user",
    "type": "message",
}


def turn(*items: Json, stream: bool = False, **more: Any) -> Json:
    return {"stream": stream, "input": [*items], "parallel_tool_calls": False, "tools": [WEATHER], **more}


THINKING: Json = {"include": ENCRYPTED_REASONING, "reasoning": {"effort": "low", "summary": "auto"}}
THOUGHT_LOOP = [STALE_REASONING, *TOOL_LOOP]

FORMS = {
    "streamed tool with reasoning": Form(turn(SYSTEM, QUESTION, stream=True, **THINKING)),
    "stale reasoning sent back": Form(turn(SYSTEM, QUESTION, *THOUGHT_LOOP, **THINKING)),
    "image after a tool loop with reasoning": Form(
        turn(SYSTEM, QUESTION, *THOUGHT_LOOP, reasoning(2, status="completed"), ANSWER, PICTURE, **THINKING),
        refused=picture("input[7].content[1]"),
    ),
    "required call": Form(turn(SYSTEM, DEMANDED, stream=True, tool_choice="required")),
    "required call after its output": Form(turn(SYSTEM, DEMANDED, *TOOL_LOOP, tool_choice="required")),
    "image after a tool loop": Form(
        turn(SYSTEM, QUESTION, *TOOL_LOOP, ANSWER, PICTURE, tool_choice="required"),
        refused=picture("input[5].content[1]"),
    ),
    "structured output": Form(
        {
            "stream": False,
            "input": [{"content": says({"answer": "Sunny."}), "role": "user", "type": "message"}],
            "text": {
                "format": {
                    "type": "json_schema",
                    "strict": True,
                    "name": "Answer",
                    "schema": schema({"answer": {"title": "Answer", "type": "string"}}, title="Answer"),
                }
            },
        }
    ),
    "sampling": Form({"stream": False, "input": [QUESTION], "max_output_tokens": 50, "temperature": 0.1, "top_p": 0.9}),
}
