"""LiteLLM: its own ``responses`` call, and its bridge from chat completions."""

from __future__ import annotations

from tests.e2e.requests.form import Form, call_output, function_call

HEADERS = {"accept": "*/*", "user-agent": "litellm/1.110.2"}

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "Weather",
    "parameters": PARAMETERS,
    "strict": True,
}


def message(role: str, text: str) -> dict[str, object]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


FORMS = {
    "streamed text": Form({"input": "Hi", "stream": True}),
    "tool with metadata": Form({"input": "Weather?", "metadata": {"a": "b"}, "tools": [WEATHER]}),
    "streamed message": Form({"input": [{"role": "user", "content": "Hi"}], "stream": True}),
    "bridged tool": Form({"input": [message("system", "Be brief."), message("user", "Weather?")], "tools": [WEATHER]}),
    "bridged tool output": Form(
        {
            "input": [
                message("user", "Weather?"),
                function_call("call_1", "get_weather", '{"city": "Paris"}'),
                call_output("call_1", [{"type": "input_text", "text": "sunny"}]),
            ]
        }
    ),
}
