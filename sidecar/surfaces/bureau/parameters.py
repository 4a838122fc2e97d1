"""The bureau's table of parameters, for models of Triton.

All that OpenAI's endpoint takes stands here. What has no meaning for such a model passes as OpenAI's default alone: it
would say that something was done which was not.
"""

from __future__ import annotations

from typing import get_args

from sidecar.responses.json_text import Json
from sidecar.responses.request import Include
from sidecar.surfaces.parameters import Accepted, EachOf, Ignored, Only, Parameter, Refused

DEFAULT_OUTPUT_TOKENS = 4096

_WHOLE = "send the whole conversation as 'input' each turn (store: false)."
_INCLUDES = tuple(name for name in get_args(Include) if name != "message.output_text.logprobs")
_SUMMARY = "Any value asks for the reasoning as `summary_text` too; without effect unless the service is set to do so."

PARAMETERS = (
    Parameter(
        "model",
        Accepted(),
        "A slug of the catalog, a team's alias, with its preset for what is left out, or a vendor's own name.",
    ),
    Parameter("input", Accepted(), "The conversation: a string, which is one user message, or a list of items."),
    Parameter("instructions", Accepted(), "What the model is told first, before any system message in `input`."),
    Parameter(
        "previous_response_id",
        Accepted(),
        "A stored response: its conversation comes before `input`. The new one is stored too, unless `store` is false.",
    ),
    Parameter(
        "conversation",
        Refused(f"conversation is not supported: conversations are not kept; {_WHOLE}"),
        "Conversations are not kept; send the conversation.",
    ),
    Parameter(
        "prompt",
        Refused("prompt is not supported: prompt templates are not kept; send the text."),
        "Prompt templates are not kept; send the text.",
    ),
    Parameter(
        "background",
        Only((False,), "background: true is not supported: there are no background responses"),
        default=False,
    ),
    Parameter("truncation", Only(("disabled",), "truncation: auto is not supported; no input items are ever dropped")),
    Parameter("top_logprobs", Only((0,), ignored=True), "Log probabilities are not told."),
    Parameter(
        "max_tool_calls",
        Refused("max_tool_calls is not supported: it counts calls of hosted tools, of which this model has none"),
        "It counts calls of hosted tools; there are none.",
    ),
    Parameter(
        "include",
        EachOf(_INCLUDES),
        "`reasoning.encrypted_content` asks for reasoning as sealed text, to be sent back; the others have no effect.",
    ),
    Parameter(
        "tools",
        Accepted(),
        "Functions, custom tools, `local_shell` and `apply_patch`, that the model may call, each name once.",
    ),
    Parameter(
        "tool_choice",
        Accepted(),
        "`none`, `auto`, `required` (one call or more), or the one tool that has to be called.",
    ),
    Parameter("parallel_tool_calls", Accepted(), "With `false`, an answer ends with its first call."),
    Parameter("metadata", Accepted(), "Echoed in the response; the model does not see it."),
    Parameter("text", Accepted(), "The form of the answer."),
    Parameter("text.format", Accepted(), "Free text, any JSON object, or JSON that matches a schema."),
    Parameter("text.verbosity", Ignored(), "The model is not told: clients send it without being asked to."),
    Parameter("reasoning", Accepted(), "Whether the model reasons before it answers."),
    Parameter(
        "reasoning.effort",
        Accepted(),
        "`low` and above turn the reasoning phase on; unset, `none` and `minimal` leave it off.",
    ),
    Parameter("reasoning.summary", Accepted(), _SUMMARY),
    Parameter("reasoning.generate_summary", Accepted(), _SUMMARY),
    Parameter("reasoning.context", Only(("auto",), ignored=True)),
    Parameter("reasoning.mode", Only(("standard",), ignored=True)),
    Parameter("temperature", Accepted(), default=1.0),
    Parameter("top_p", Accepted(), "Nucleus sampling; `0` keeps only the most probable token.", default=1.0),
    Parameter(
        "max_output_tokens",
        Accepted(),
        "Reasoning included; so much is reserved. Lowered to what the context leaves beside the prompt.",
        default=DEFAULT_OUTPUT_TOKENS,
    ),
    Parameter("stream", Accepted(), "Server-sent events instead of one JSON body."),
    Parameter("stream_options", Accepted(), "Settings of the stream."),
    Parameter("stream_options.include_obfuscation", Ignored(), "Events are never padded."),
    Parameter(
        "store",
        Accepted(),
        "`true` keeps the response for 30 days, to be continued, fetched and deleted; see [stored.md](stored.md).",
        default=False,
    ),
    Parameter("user", Accepted(), "Your end user, for whom the request is counted."),
    Parameter("safety_identifier", Accepted(), "Your end user, where `user` does not name one."),
    Parameter("prompt_cache_key", Ignored(), "Echoed."),
    Parameter("service_tier", Only(("auto", "default"), ignored=True)),
    Parameter(
        "ib", Accepted(), "The bureau's own: `tags` and `session`. The fields of mixed-model sessions have no effect."
    ),
    Parameter("client_metadata", Ignored()),
    Parameter("prompt_cache_retention", Only(("in_memory",), ignored=True)),
    Parameter("prompt_cache_options", Only(({},), ignored=True)),
    Parameter("context_management", Only(([], {}), ignored=True)),
    Parameter("moderation", Refused()),
    Parameter("frequency_penalty", Only((0,), ignored=True)),
    Parameter("presence_penalty", Only((0,), ignored=True)),
)

EXAMPLE: Json = {
    "model": "qwen/qwen3-8b",
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
    "ib": {"tags": ["team:support"]},
}
"""A request that uses what clients mostly use."""
