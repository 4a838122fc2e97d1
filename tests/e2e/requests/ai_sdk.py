"""The AI SDK's Open Responses provider: typed items, ``tool_choice`` without tools, answers without annotations."""

from __future__ import annotations

from typing import Any

from tests.e2e.requests.form import (
    DRAFT_7,
    IMAGE,
    Form,
    Json,
    call_output,
    function_call,
    picture,
    reasoning,
    says,
    schema,
)

HEADERS = {"accept": "*/*", "user-agent": "ai-sdk/open-responses/2.0.36"}

WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather of a city",
    "parameters": schema({"city": {"type": "string"}}, **{"$schema": DRAFT_7}),
}


def user(*parts: Json) -> Json:
    return {"type": "message", "role": "user", "content": [*parts]}


def text(content: str) -> Json:
    return {"type": "input_text", "text": content}


PICTURE = {"type": "input_image", "image_url": IMAGE}
CALL = function_call("call_1", "get_weather", '{"city":"Paris"}', id="fc_1")
OUTPUT = call_output("call_1", "sunny")
ANSWER = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Sunny."}],
    "id": "msg_1",
}


def step(*items: Json) -> Json:
    """A step of a streamed run with tools."""
    return {
        "input": [*items],
        "instructions": "Be nice.",
        "max_output_tokens": 50,
        "temperature": 0.1,
        "tools": [WEATHER],
        "tool_choice": "auto",
        "stream": True,
    }


def generate(*items: Json, **more: Any) -> Json:
    """A plain call, which names a tool choice all the same."""
    return {"input": [*items], "tool_choice": "auto", **more}


QUESTION = user(text("Weather?"))
QUESTION_WITH_PICTURE = user(text("Weather?"), PICTURE)
THANKS = user(text("Thanks."))
ANSWER_FORMAT = {
    "type": "json_schema",
    "name": "response",
    "schema": schema({"answer": {"type": "string"}}, **{"$schema": DRAFT_7}),
    "strict": True,
}

FORMS = {
    "first step": Form(step(QUESTION)),
    "first step with an image": Form(step(QUESTION_WITH_PICTURE), refused=picture("input[0].content[1]")),
    "tool output": Form(step(QUESTION, CALL, OUTPUT)),
    "tool output after an image": Form(
        step(QUESTION_WITH_PICTURE, CALL, OUTPUT), refused=picture("input[0].content[1]")
    ),
    "tool output with reasoning": Form(step(QUESTION, reasoning(1), CALL, OUTPUT)),
    "tool output with reasoning after an image": Form(
        step(QUESTION_WITH_PICTURE, reasoning(1), CALL, OUTPUT), refused=picture("input[0].content[1]")
    ),
    "answer sent back": Form(generate(QUESTION, CALL, OUTPUT, ANSWER, THANKS)),
    "answer with reasoning sent back": Form(
        generate(QUESTION, reasoning(1), CALL, OUTPUT, reasoning(2), ANSWER, THANKS)
    ),
    "schema": Form(generate(user(text(says({"answer": "Sunny."}))), text={"format": ANSWER_FORMAT})),
}
