"""The JSON Schemas of answers that hold calls of tools which are no functions, or compactions."""

from __future__ import annotations

from sidecar.responses.json_text import Json
from sidecar.surfaces.openapi.answers import OUTPUT_ITEM
from sidecar.surfaces.openapi.events import EventTypes, event_schemas
from sidecar.surfaces.openapi.shorthand import COUNT, INTEGER, STRING, UNIX_TIME, const, list_of, object_of, ref

_ITEMS = ("OutputCustomToolCall", "OutputLocalShellCall", "OutputApplyPatchCall", "OutputCompaction")
ITEM: Json = {"oneOf": [*OUTPUT_ITEM["oneOf"], *map(ref, _ITEMS)]}
"""An item of ``output``."""

_STATUS_OF_WHOLE: Json = {"enum": ["in_progress", "completed"]}
_PLACE: dict[str, Json] = {"item_id": STRING, "output_index": COUNT}
_EVENTS: EventTypes = {
    "response.custom_tool_call_input.delta": ("More of a custom tool's input.", {**_PLACE, "delta": STRING}),
    "response.compaction.compacting": ("A summary grows.", _PLACE),
    "response.custom_tool_call_input.done": ("All of a custom tool's input.", {**_PLACE, "input": STRING}),
}

ANSWER_SCHEMAS: dict[str, Json] = {
    **event_schemas(ITEM, _EVENTS),
    "OutputCompaction": object_of(
        "A conversation as its summary.",
        {
            "type": const("compaction"),
            "id": STRING,
            "encrypted_content": STRING | {"description": "The summary, sealed: to be sent back as it is."},
        },
    ),
    "CompactedResponse": object_of(
        "A conversation to go on with: its `output` is the beginning of the next input.",
        {
            "id": STRING,
            "object": const("response.compaction"),
            "created_at": UNIX_TIME,
            "output": list_of({"anyOf": [ref("OutputCompaction"), {"type": "object"}]}),
            "usage": ref("Usage"),
        },
    ),
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
    "OutputLocalShellCall": object_of(
        "A command that the client is to run.",
        {
            "type": const("local_shell_call"),
            "id": STRING,
            "status": _STATUS_OF_WHOLE,
            "call_id": STRING,
            "action": object_of(
                "The command.",
                {
                    "type": const("exec"),
                    "command": list_of(STRING),
                    "env": {"type": "object", "additionalProperties": STRING},
                    "timeout_ms": INTEGER,
                    "working_directory": STRING,
                    "user": STRING,
                },
                optional=("timeout_ms", "working_directory", "user"),
            ),
        },
    ),
    "OutputApplyPatchCall": object_of(
        "A change of a file that the client is to make.",
        {
            "type": const("apply_patch_call"),
            "id": STRING,
            "status": _STATUS_OF_WHOLE,
            "call_id": STRING,
            "operation": object_of(
                "The change.",
                {"type": {"enum": ["create_file", "update_file", "delete_file"]}, "path": STRING, "diff": STRING},
                optional=("diff",),
            ),
        },
    ),
}
