"""OpenAI's Agents SDK for Python: strict tools, handoffs as tools, items without a type, an empty ``include``."""

from __future__ import annotations

from typing import Any

from tests.e2e.requests.form import (
    ENCRYPTED_REASONING,
    IMAGE,
    Form,
    Json,
    answer,
    call_output,
    function_call,
    picture,
    reasoning,
    says,
    schema,
)

# A streamed run asks for JSON too.
HEADERS = {"accept": "application/json", "x-stainless-lang": "python", "x-stainless-retry-count": "0"}

WEATHER = {
    "name": "get_weather",
    "parameters": schema(
        {
            "city": {"title": "City", "type": "string"},
            "units": {"default": "C", "title": "Units", "type": "string"},
        },
        title="get_weather_args",
    ),
    "strict": True,
    "type": "function",
    "description": "The weather of a city",
}
HANDOFF = {
    "name": "transfer_to_billing",
    "parameters": schema({}),
    "strict": True,
    "type": "function",
    "description": "Hand over to the billing agent.",
}
FINAL_OUTPUT = {
    "format": {
        "type": "json_schema",
        "name": "final_output",
        "schema": schema({"answer": {"title": "Answer", "type": "string"}}, title="Output"),
        "strict": True,
    }
}
QUESTION = {"content": "Weather?", "role": "user"}
SCRIPTED_QUESTION = {"content": says({"answer": "Sunny."}), "role": "user"}
THANKS = {"role": "user", "content": "Thanks."}
PICTURE = {
    "role": "user",
    "content": [{"type": "input_text", "text": "What is this?"}, {"type": "input_image", "image_url": IMAGE}],
}


def turn(*items: Json, tools: tuple[Json, ...] = (WEATHER,), **more: Any) -> Json:
    return {
        "include": [],
        "input": [*items],
        "instructions": "Be nice.",
        "max_output_tokens": 200,
        "parallel_tool_calls": True,
        "temperature": 0.2,
        "tools": [*tools],
        **more,
    }


def call(number: int) -> Json:
    arguments = '{"city": "Paris", "units": "C"}'
    return function_call(f"call_{number}", "get_weather", arguments, id=f"fc_{number}", status="completed")


def output(number: int) -> Json:
    return call_output(f"call_{number}", "sunny")


ONE_CALL = [call(1), output(1)]
TWO_CALLS = [call(1), call(2), output(1), output(2)]
WITH_HANDOFF = (WEATHER, HANDOFF)
THINKING: Json = {
    "include": ENCRYPTED_REASONING,
    "reasoning": {"effort": "low", "summary": "auto"},
    "store": False,
    "text": {"verbosity": "low"},
}

FORMS = {
    "streamed run with a handoff": Form(turn(QUESTION, tools=WITH_HANDOFF, stream=True)),
    "its tool output": Form(turn(QUESTION, *ONE_CALL, tools=WITH_HANDOFF, stream=True)),
    "its next run": Form(turn(QUESTION, *ONE_CALL, answer("Sunny."), THANKS, tools=WITH_HANDOFF)),
    "structured output": Form(turn(SCRIPTED_QUESTION, text=FINAL_OUTPUT, stream=True)),
    "structured output after parallel calls": Form(turn(SCRIPTED_QUESTION, *TWO_CALLS, text=FINAL_OUTPUT, stream=True)),
    "structured output sent back": Form(
        turn(
            QUESTION,
            *TWO_CALLS,
            answer('{"answer": "Sunny."}'),
            SCRIPTED_QUESTION,
            text=FINAL_OUTPUT,
        )
    ),
    "reasoning": Form(turn(QUESTION, stream=True, **THINKING)),
    "reasoning before a call sent back": Form(
        turn(QUESTION, reasoning(1, status="completed"), *ONE_CALL, stream=True, **THINKING)
    ),
    "reasoning before an answer sent back": Form(
        turn(
            QUESTION,
            reasoning(1, status="completed"),
            *ONE_CALL,
            reasoning(2, status="completed"),
            answer("Sunny."),
            THANKS,
            **THINKING,
        )
    ),
    "plain run": Form(turn(QUESTION, stream=True)),
    "text before parallel calls sent back": Form(turn(QUESTION, answer("I will look."), *TWO_CALLS, stream=True)),
    "the run after it": Form(turn(QUESTION, answer("I will look."), *TWO_CALLS, answer("Sunny."), THANKS)),
    "forced call about an image": Form(
        {
            "include": [],
            "input": [PICTURE],
            "tool_choice": {"type": "function", "name": "get_weather"},
            "tools": [WEATHER],
        },
        refused=picture("input[0].content[1]"),
    ),
    "tool output about an image": Form(
        {"include": [], "input": [PICTURE, *ONE_CALL], "tools": [WEATHER]},
        refused=picture("input[0].content[1]"),
    ),
}
