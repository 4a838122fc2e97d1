"""The openai package for Node.js: schemas made by zod; parsed arguments are sent back with the call."""

from __future__ import annotations

from tests.e2e.requests.form import DRAFT_7, IMAGE, Form, call_output, function_call, picture, says, schema

HEADERS = {"accept": "application/json", "x-stainless-lang": "js", "x-stainless-retry-count": "0"}

WEATHER = {
    "type": "function",
    "name": "get_weather",
    "parameters": schema(
        {
            "city": {"type": "string"},
            "units": {"anyOf": [{"type": "string", "enum": ["C", "F"]}, {"type": "null"}]},
        },
        **{"$schema": DRAFT_7},
    ),
    "strict": True,
}
ANSWER_FORMAT = {
    "type": "json_schema",
    "name": "answer",
    "strict": True,
    "schema": schema({"answer": {"type": "string"}}, **{"$schema": DRAFT_7}),
}
ARGUMENTS = {"city": "Paris", "units": "C"}

FORMS = {
    "zod tool": Form({"input": "Weather?", "tools": [WEATHER]}),
    "parsed call sent back": Form(
        {
            "input": [
                {"role": "user", "content": "Weather?"},
                function_call(
                    "call_1",
                    "get_weather",
                    '{"city": "Paris", "units": "C"}',
                    id="fc_1",
                    status="completed",
                    parsed_arguments=ARGUMENTS,
                ),
                call_output("call_1", "sunny"),
            ],
            "tools": [WEATHER],
        }
    ),
    "image and schema": Form(
        {
            "input": [
                {
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": "What is this?"},
                        {"type": "input_image", "image_url": IMAGE, "detail": "auto"},
                    ],
                }
            ],
            "text": {"format": ANSWER_FORMAT},
        },
        refused=picture("input[0].content[1]"),
    ),
    "schema": Form({"input": says({"answer": "Paris"}), "text": {"format": ANSWER_FORMAT}}),
    "stream with reasoning": Form({"input": "Weather?", "reasoning": {"effort": "low"}, "stream": True}),
}
