"""The requests that put an endpoint to the test.

None asks for a certain text: the checks hold for every model.
"""

from __future__ import annotations

from typing import Any

from conformance.expectations import (
    answer_fits,
    calls_are_made,
    function_calls,
    limit_is_kept,
    metadata_is_echoed,
)
from conformance.probe import Before, Probe
from conformance.shapes import Json

OUTPUT_LIMIT = 16
"""The lowest ``max_output_tokens`` that OpenAI's endpoint takes."""
REASONING_LIMIT = 512
"""Tokens for an answer with a reasoning phase before it."""
METADATA = {"probe": "verify", "ключ": "значение"}

NULLABLE = (
    *("background", "conversation", "include", "instructions", "max_tool_calls", "metadata", "parallel_tool_calls"),
    *("previous_response_id", "prompt", "prompt_cache_key", "reasoning", "safety_identifier", "service_tier", "store"),
    *("stream_options", "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user"),
)
"""The optional parameters of OpenAI's endpoint but for ``stream`` and the output limit."""


def _closed(**properties: Json) -> Json:
    """A schema of an object with all of ``properties`` and nothing else."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


# Values out of short lists keep what a guided model writes below the limit.
_CITY: Json = {"type": "string", "enum": ["Paris", "Rome"]}
REPORT = _closed(city=_CITY, sunny={"type": "boolean"})
WEATHER: Json = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather in a city.",
    "parameters": _closed(city=_CITY),
}
_NAMED = {"type": "function", "name": WEATHER["name"]}

_HELLO = {"input": "Say hello."}
_COUNT = {"input": "Count from one to two hundred in words."}
_CUT = {**_COUNT, "max_output_tokens": OUTPUT_LIMIT}
_UNICODE = {"input": "Repeat: Grüße an alle 👋🏽 日本語 \u2028 e\u0301"}
_ITEMS = {
    "input": [
        {"role": "developer", "content": "Be brief."},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Say hello."}]},
    ]
}
_TOOL = {"input": "How is the weather in Rome?", "tools": [WEATHER]}
_TWO_CALLS = {"input": "How is the weather in Rome, and how is it in Paris?", "tools": [WEATHER]}
_FORMAT = {"type": "json_schema", "name": "report", "schema": REPORT, "strict": True}
_THINK = {"input": "What is 17 plus 5?", "reasoning": {"effort": "low"}, "max_output_tokens": REASONING_LIMIT}
_CALLED_TWICE = [
    {"role": "user", "content": _TWO_CALLS["input"]},
    *(
        {
            "type": "function_call",
            "call_id": f"call_{city}",
            "name": WEATHER["name"],
            "arguments": f'{{"city":"{city}"}}',
        }
        for city in ("Rome", "Paris")
    ),
    *({"type": "function_call_output", "call_id": f"call_{city}", "output": "Sunny."} for city in ("Rome", "Paris")),
]

_USES_TOOLS = ("tools", "tool_choice", "parallel_tool_calls")


def _user_goes_on(output: list[Any]) -> list[Json]:
    return [{"role": "user", "content": "Say it again."}] if output else []


def _calls_are_answered(output: list[Any]) -> list[Json]:
    calls = function_calls(output)
    if not all(call.get("status") == "completed" for call in calls):
        # A client does not perform a call that was cut.
        return []
    return [
        {"type": "function_call_output", "call_id": call.get("call_id"), "output": "Sunny, 20 degrees."}
        for call in calls
    ]


PROBES = (
    Probe("a text, streamed", {**_HELLO, "stream": True}),
    Probe("a text, whole", _HELLO),
    Probe("a long text, streamed", {**_COUNT, "stream": True}, paced=True),
    Probe("an output limit, streamed", {**_CUT, "stream": True}, check=limit_is_kept(OUTPUT_LIMIT)),
    Probe("an output limit, whole", _CUT, check=limit_is_kept(OUTPUT_LIMIT)),
    Probe("characters beyond ASCII", {**_UNICODE, "stream": True}),
    Probe("metadata", {**_HELLO, "metadata": METADATA, "stream": True}, check=metadata_is_echoed(METADATA)),
    Probe("items as input", {**_ITEMS, "stream": True}),
    Probe("null for what is optional", {**_HELLO, **dict.fromkeys(NULLABLE), "stream": True}),
    Probe("a second turn, streamed", {"stream": True}, before=Before("a text, whole", _user_goes_on)),
    Probe("a second turn, whole", {}, before=Before("a text, streamed", _user_goes_on)),
    Probe(
        "a function tool",
        {**_TOOL, "stream": True},
        check=calls_are_made(WEATHER, demanded=False),
        optional=_USES_TOOLS,
    ),
    Probe(
        "a demanded call, streamed",
        {**_TOOL, "tool_choice": "required", "stream": True},
        check=calls_are_made(WEATHER, demanded=True),
        optional=_USES_TOOLS,
    ),
    Probe(
        "the output of a call",
        {"tools": [WEATHER], "stream": True},
        check=calls_are_made(WEATHER, demanded=False),
        optional=_USES_TOOLS,
        before=Before("a demanded call, streamed", _calls_are_answered),
    ),
    Probe(
        "a named strict call, whole",
        {**_TOOL, "tools": [{**WEATHER, "strict": True}], "tool_choice": _NAMED},
        check=calls_are_made(WEATHER, demanded=True),
        optional=_USES_TOOLS,
    ),
    Probe(
        "parallel calls",
        {**_TWO_CALLS, "tool_choice": "required", "parallel_tool_calls": True, "stream": True},
        check=calls_are_made(WEATHER, demanded=True),
        optional=_USES_TOOLS,
    ),
    Probe(
        "no parallel calls",
        {**_TWO_CALLS, "tool_choice": "required", "parallel_tool_calls": False, "stream": True},
        check=calls_are_made(WEATHER, demanded=True, single=True),
        optional=_USES_TOOLS,
    ),
    Probe(
        "the outputs of parallel calls",
        {"input": _CALLED_TWICE, "tools": [WEATHER], "stream": True},
        check=calls_are_made(WEATHER, demanded=False),
        optional=_USES_TOOLS,
    ),
    Probe(
        "a JSON schema, streamed",
        {"input": "Is it sunny in Paris today?", "text": {"format": _FORMAT}, "stream": True},
        check=answer_fits(REPORT),
        optional=("text",),
    ),
    Probe(
        "a JSON schema, whole",
        {"input": "Is it sunny in Rome today?", "text": {"format": _FORMAT}},
        check=answer_fits(REPORT),
        optional=("text",),
    ),
    Probe("reasoning, streamed", {**_THINK, "stream": True}, optional=("reasoning",)),
    Probe(
        "a turn after reasoning",
        {"stream": True},
        optional=("reasoning",),
        before=Before("reasoning, streamed", _user_goes_on),
    ),
    # An error that is known before the stream begins is a plain HTTP error.
    Probe("an unknown model, streamed", {**_HELLO, "model": "no-such-model", "stream": True}, statuses=(400, 404)),
    Probe("malformed JSON", b'{"model": ', statuses=(400,)),
    Probe("another content type", _HELLO, statuses=range(400, 500), content_type="text/plain"),
    Probe("no input", {"stream": True}, statuses=(400,)),
)
WRONG_KEY = Probe("a wrong key", _HELLO, statuses=(401,), key="wrong")


def probes_for(key: str | None) -> tuple[Probe, ...]:
    """The probes for an endpoint; a wrong key is tried where there is a right one."""
    return PROBES if key is None else (*PROBES, WRONG_KEY)
