"""The openai package for Python: bodies without defaults; what the SDK parsed is sent back as it was, or dumped."""

from __future__ import annotations

from tests.e2e.requests.form import (
    ENCRYPTED_REASONING,
    IMAGE,
    Form,
    answer,
    call_output,
    function_call,
    picture,
    reasoning,
    says,
    schema,
)

HEADERS = {"accept": "application/json", "x-stainless-lang": "python", "x-stainless-retry-count": "0"}

WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather of a city",
    "parameters": schema(
        {
            "city": {"title": "City", "type": "string"},
            "units": {"anyOf": [{"type": "string"}, {"type": "null"}], "title": "Units"},
        },
        title="Weather",
    ),
    "strict": True,
}
STEPS = schema(
    {
        "steps": {"items": {"type": "string"}, "title": "Steps", "type": "array"},
        "answer": {"title": "Answer", "type": "string"},
    },
    title="Steps",
)
THOUGHT = reasoning(1, status="completed")
FIRST_TURN = [{"role": "user", "content": "Weather?"}]
MORE = {"role": "user", "content": "More, please."}

FORMS = {
    "pydantic tool": Form({"input": "Weather?", "instructions": "Be brief.", "tools": [WEATHER]}),
    "tool output without tools": Form(
        {
            "input": [
                *FIRST_TURN,
                function_call("call_1", "get_weather", '{"city": "Paris"}', id="fc_1", status="completed"),
                call_output("call_1", "sunny"),
            ]
        }
    ),
    "image and schema": Form(
        {
            "input": [
                {"role": "system", "content": "Look well."},
                {
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": "What is this?"},
                        {"type": "input_image", "image_url": IMAGE, "detail": "auto"},
                    ],
                },
            ],
            "text": {"format": {"type": "json_schema", "strict": True, "name": "Steps", "schema": STEPS}},
        },
        refused=picture("input[1].content[1]"),
    ),
    "schema": Form(
        {
            "input": [
                {"role": "system", "content": "Think in steps."},
                {"role": "user", "content": [{"type": "input_text", "text": says({"steps": ["one"], "answer": "2"})}]},
            ],
            "text": {"format": {"type": "json_schema", "strict": True, "name": "Steps", "schema": STEPS}},
        }
    ),
    "stateless reasoning": Form(
        {
            "include": ENCRYPTED_REASONING,
            "input": "Weather?",
            "reasoning": {"effort": "low", "summary": "auto"},
            "store": False,
        }
    ),
    "reasoning sent back": Form(
        {
            "stream": True,
            "input": [*FIRST_TURN, THOUGHT, answer("Sunny."), MORE],
            "reasoning": {"effort": "low"},
            "store": False,
        }
    ),
    "items dumped with model_dump": Form(
        {"input": [*FIRST_TURN, {**THOUGHT, "encrypted_content": None}, answer("Sunny.", phase=None), MORE]}
    ),
    "items dumped with to_dict": Form({"input": [*FIRST_TURN, THOUGHT, answer("Sunny."), MORE]}),
}
