"""The JSON Schemas of stream events: one for each type that :class:`sidecar.responses.events.EventWriter` writes."""

from __future__ import annotations

from collections.abc import Mapping

from sidecar.responses.json_text import Json
from sidecar.surfaces.openapi.answers import OUTPUT_ITEM
from sidecar.surfaces.openapi.shorthand import COUNT, STRING, const, list_of, object_of, or_null, ref

_RESPONSE: dict[str, Json] = {"response": ref("Response")}
_IN_ITEM: dict[str, Json] = {"item_id": STRING, "output_index": COUNT}
_IN_CONTENT: dict[str, Json] = {**_IN_ITEM, "content_index": COUNT}
_IN_SUMMARY: dict[str, Json] = {**_IN_ITEM, "summary_index": COUNT}
_PART: dict[str, Json] = {
    **_IN_CONTENT,
    "part": {"oneOf": [ref("OutputTextContent"), ref("ReasoningTextContent")]},
}
_SUMMARY_PART: dict[str, Json] = {**_IN_SUMMARY, "part": ref("SummaryTextContent")}
_DELTA: dict[str, Json] = {"delta": STRING}
_TEXT: dict[str, Json] = {"text": STRING}
_LOGPROBS: dict[str, Json] = {"logprobs": list_of({"type": "object"})}

EventTypes = Mapping[str, tuple[str, Mapping[str, Json]]]
"""Types of events: what each means, and the schemas of its members beyond ``type`` and ``sequence_number``."""

_EVENTS: EventTypes = {
    "response.created": ("The answer begins.", _RESPONSE),
    "response.in_progress": ("The answer is being made.", _RESPONSE),
    "response.output_item.added": ("An item begins.", {"output_index": COUNT}),
    "response.content_part.added": ("A part of an item begins.", _PART),
    "response.output_text.delta": ("More of a message.", {**_IN_CONTENT, **_DELTA, **_LOGPROBS}),
    "response.output_text.done": ("All of a message.", {**_IN_CONTENT, **_TEXT, **_LOGPROBS}),
    "response.reasoning_text.delta": ("More of the reasoning.", {**_IN_CONTENT, **_DELTA}),
    "response.reasoning_text.done": ("All of the reasoning.", {**_IN_CONTENT, **_TEXT}),
    "response.reasoning_summary_part.added": ("A summary of the reasoning begins.", _SUMMARY_PART),
    "response.reasoning_summary_text.delta": ("More of the summary.", {**_IN_SUMMARY, **_DELTA}),
    "response.reasoning_summary_text.done": ("All of the summary.", {**_IN_SUMMARY, **_TEXT}),
    "response.reasoning_summary_part.done": ("The summary is whole.", _SUMMARY_PART),
    "response.function_call_arguments.delta": ("More of a call's arguments.", {**_IN_ITEM, **_DELTA}),
    "response.function_call_arguments.done": (
        "All of a call's arguments.",
        {**_IN_ITEM, "arguments": STRING, "name": STRING},
    ),
    "response.content_part.done": ("A part is whole.", _PART),
    "response.output_item.done": ("An item is whole, or as whole as it gets.", {"output_index": COUNT}),
    "response.completed": ("The answer is whole. Nothing follows.", _RESPONSE),
    "response.incomplete": ("The answer was cut. Nothing follows.", _RESPONSE),
    "response.failed": ("The answer broke off. `error` follows.", _RESPONSE),
    "error": (
        "What failed, flat as OpenAI documents it and nested as OpenAI sends it. Nothing follows.",
        {"code": STRING, "message": STRING, "param": or_null(STRING), "error": ref("ErrorDetails")},
    ),
}


def _name(type_: str) -> str:
    """``response.output_text.delta`` → ``ResponseOutputTextDeltaEvent``."""
    return "".join(word.capitalize() for word in type_.replace(".", "_").split("_")) + "Event"


def event_schemas(item: Json, more: EventTypes) -> dict[str, Json]:
    """The schemas of all events whose items fit ``item``, with ``more`` types of a surface's own."""
    events = {type_: (meaning, dict(members)) for type_, (meaning, members) in {**_EVENTS, **more}.items()}
    for type_ in ("response.output_item.added", "response.output_item.done"):
        events[type_][1]["item"] = item
    return {
        **{
            _name(type_): object_of(meaning, {"type": const(type_), "sequence_number": COUNT, **members})
            for type_, (meaning, members) in events.items()
        },
        "ServerSentEvent": object_of(
            "An event of the stream, as its fields.",
            {
                "event": STRING | {"description": "The event's type."},
                "data": STRING | {"contentMediaType": "application/json", "contentSchema": ref("StreamEvent")},
            },
        ),
        "StreamEvent": {
            "description": "The data of one event; the event's name is its `type`. `sequence_number` counts from 0.",
            "oneOf": [ref(_name(type_)) for type_ in events],
            "discriminator": {
                "propertyName": "type",
                "mapping": {type_: ref(_name(type_))["$ref"] for type_ in events},
            },
        },
    }


EVENT_SCHEMAS = event_schemas(OUTPUT_ITEM, {})
