"""The JSON Schemas of answers that hold calls of custom tools."""

from __future__ import annotations

from sidecar.responses.json_text import Json
from sidecar.surfaces.openapi.answers import OUTPUT_ITEM
from sidecar.surfaces.openapi.events import EventTypes, event_schemas
from sidecar.surfaces.openapi.shorthand import COUNT, STRING, const, object_of, ref

ITEM: Json = {"oneOf": [*OUTPUT_ITEM["oneOf"], ref("OutputCustomToolCall")]}
"""An item of ``output``."""

_PLACE: dict[str, Json] = {"item_id": STRING, "output_index": COUNT}
_EVENTS: EventTypes = {
    "response.custom_tool_call_input.delta": ("More of a custom tool's input.", {**_PLACE, "delta": STRING}),
    "response.custom_tool_call_input.done": ("All of a custom tool's input.", {**_PLACE, "input": STRING}),
}

ANSWER_SCHEMAS: dict[str, Json] = {
    **event_schemas(ITEM, _EVENTS),
    "OutputCustomToolCall": object_of(
        "A call of a custom tool that the client is to make.",
        {
            "type": const("custom_tool_call"),
            "id": STRING,
            "status": {"enum": ["in_progress", "completed", "incomplete"]},
            "call_id": STRING,
            "name": STRING,
            "input": STRING,
        },
    ),
}
