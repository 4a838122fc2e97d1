"""The node's table of parameters. What is not in it is refused. Rows that refuse are looked at in this order."""

from __future__ import annotations

from typing import get_args

from sidecar.responses.json_text import Json
from sidecar.responses.request import Include
from sidecar.surfaces.parameters import Accepted, EachOf, Ignored, Only, Parameter, Refused

_NOT_STORED = "Nothing is stored on this node; send the whole conversation as 'input' each turn (store: false)."
_INCLUDES = tuple(name for name in get_args(Include) if name != "message.output_text.logprobs")
_SUMMARY = "Any value asks for the reasoning as `summary_text` too; without effect unless the node is set to do so."

PARAMETERS = (
    Parameter("model", Accepted(), "The name or alias of a model that the node serves."),
    Parameter("input", Accepted(), "The whole conversation: a string, which is one user message, or a list of items."),
    Parameter("instructions", Accepted(), "What the model is told first, before any system message in `input`."),
    Parameter(
        "previous_response_id",
        Refused(f"previous_response_id is not supported. {_NOT_STORED}"),
        "Responses are not stored; send the conversation.",
    ),
    Parameter(
        "conversation",
        Refused(f"conversation is not supported. {_NOT_STORED}"),
        "Conversations are not stored; send the conversation.",
    ),
    Parameter("prompt", Refused(f"prompt is not supported. {_NOT_STORED}"), "Prompts are not stored; send the text."),
    Parameter("background", Only((False,), "background: true is not supported on this node")),
    Parameter(
        "truncation",
        Only(("disabled",), "truncation: auto is not supported; the node never drops input items"),
        "The node never drops input items.",
    ),
    Parameter("top_logprobs", Refused(), "Log probabilities are not told."),
    Parameter("max_tool_calls", Refused(), "It counts calls of tools that run on the server; there are none."),
    Parameter(
        "include",
        EachOf(_INCLUDES),
        "`reasoning.encrypted_content` asks for sealed reasoning, where the node is set to seal it; else no effect.",
    ),
    Parameter("tools", Accepted(), "Functions that the model may call, each name once."),
    Parameter(
        "tool_choice",
        Accepted(),
        "`none`, `auto`, `required` (one call or more), or the one function that has to be called.",
    ),
    Parameter("parallel_tool_calls", Accepted(), "With `false`, an answer ends with its first call."),
    Parameter("metadata", Accepted(), "Echoed in the response."),
    Parameter("text", Accepted(), "The form of the answer."),
    Parameter("text.format", Accepted(), "Free text, any JSON object, or JSON that matches a schema."),
    Parameter("text.verbosity", Ignored()),
    Parameter("reasoning", Accepted(), "Whether the model reasons before it answers."),
    Parameter(
        "reasoning.effort",
        Accepted(),
        "`low` and above turn the reasoning phase on; unset, `none` and `minimal` leave it off.",
    ),
    Parameter("reasoning.summary", Accepted(), _SUMMARY),
    Parameter("reasoning.generate_summary", Accepted(), _SUMMARY),
    Parameter("reasoning.context", Ignored()),
    Parameter("reasoning.mode", Ignored()),
    Parameter("temperature", Accepted(), "Unset, it is 1."),
    Parameter("top_p", Accepted(), "Nucleus sampling; `0` keeps only the most probable token. Unset, it is 1."),
    Parameter(
        "max_output_tokens",
        Accepted(),
        "Reasoning included. Lowered to what the context leaves beside the prompt; unset, that is the limit.",
    ),
    Parameter("stream", Accepted(), "Server-sent events instead of one JSON body."),
    Parameter("stream_options", Accepted(), "Settings of the stream."),
    Parameter("stream_options.include_obfuscation", Ignored(), "Events are never padded."),
    Parameter("store", Ignored(), "Nothing is stored; every response says `store: false`."),
    Parameter("user", Ignored()),
    Parameter("safety_identifier", Ignored()),
    Parameter("prompt_cache_key", Ignored()),
    Parameter("service_tier", Ignored()),
    Parameter("client_metadata", Ignored()),
    Parameter("prompt_cache_retention", Ignored()),
    Parameter("prompt_cache_options", Ignored()),
    Parameter("context_management", Only(([], {}), ignored=True)),
    Parameter("frequency_penalty", Only((0,), ignored=True)),
    Parameter("presence_penalty", Only((0,), ignored=True)),
)

EXAMPLE: Json = {
    "model": "qwen3-8b",
    "instructions": "You are a concise assistant.",
    "input": [{"role": "user", "content": "What is the weather in Eugene?"}],
    "tools": [
        {
            "type": "function",
            "name": "get_weather",
            "description": "Current weather for a city.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        }
    ],
    "reasoning": {"effort": "low"},
    "stream": True,
}
"""A request that uses what clients mostly use."""
