"""The event types of the Responses stream, as tables: members, order and what belongs to what.

Source: OpenAI's streaming reference and the event union of its SDKs.
"""

from __future__ import annotations

from typing import NamedTuple

from conformance.shapes import ARRAY, COUNT, NAME, OBJECT, STRING, Kind

Members = dict[str, Kind]

STATUSES: dict[str, tuple[str, ...]] = {
    "response.created": ("in_progress", "queued"),
    "response.queued": ("queued",),
    "response.in_progress": ("in_progress",),
    "response.completed": ("completed",),
    "response.incomplete": ("incomplete",),
    "response.failed": ("failed",),
}
"""The events that carry a response, and the statuses it can have there."""

TERMINALS = frozenset({"response.completed", "response.incomplete", "response.failed", "error"})
FAILURES = frozenset({"response.failed", "error"})


class PartEvent(NamedTuple):
    """A part of an item begins or is ``done``: the member of the item it is in, and the member that counts it."""

    holder: str
    counter: str
    done: bool


PART_EVENTS = {
    f"response.{name}.{step}": PartEvent(holder, counter, step == "done")
    for name, holder, counter in [
        ("content_part", "content", "content_index"),
        ("reasoning_summary_part", "summary", "summary_index"),
    ]
    for step in ("added", "done")
}


class TextEvent(NamedTuple):
    """A piece of text, or the whole of it: ``member`` holds it.

    ``part`` is the type of the part it belongs to, in the item's ``holder``, counted by ``counter``; without a part
    it belongs to the item itself, which has the type ``item``.
    """

    member: str
    done: bool
    part: str | None
    holder: str
    counter: str
    item: str


TEXT_EVENTS = {
    f"response.{name}.{step}": TextEvent("delta" if step == "delta" else member, step == "done", part, *where)
    for name, member, part, where in [
        ("output_text", "text", "output_text", ("content", "content_index", "message")),
        ("refusal", "refusal", "refusal", ("content", "content_index", "message")),
        ("reasoning_text", "text", "reasoning_text", ("content", "content_index", "reasoning")),
        ("reasoning_summary_text", "text", "summary_text", ("summary", "summary_index", "reasoning")),
        ("function_call_arguments", "arguments", None, ("", "", "function_call")),
        ("custom_tool_call_input", "input", None, ("", "", "custom_tool_call")),
    ]
    for step in ("delta", "done")
}

PART_TEXT = {"output_text": "text", "refusal": "refusal", "reasoning_text": "text", "summary_text": "text"}
"""The member that holds a part's text, by the part's type."""

ITEM_TEXT = {"function_call": "arguments", "custom_tool_call": "input"}
"""The member that is streamed without parts, by the item's type."""

PARTS_OF = {
    ("message", "content"): {"output_text", "refusal"},
    ("reasoning", "content"): {"reasoning_text"},
    ("reasoning", "summary"): {"summary_text"},
}
"""The parts that a member of an item can hold."""

ITEM_MEMBERS: dict[str, Members] = {
    "message": {"id": NAME, "role": NAME, "status": NAME, "content": ARRAY},
    "function_call": {"id": NAME, "call_id": NAME, "name": NAME, "status": NAME, "arguments": STRING},
    "reasoning": {"id": NAME, "summary": ARRAY},
    "custom_tool_call": {"id": NAME, "call_id": NAME, "name": NAME, "input": STRING},
    "local_shell_call": {"id": NAME, "call_id": NAME, "status": NAME, "action": OBJECT},
    "apply_patch_call": {"id": NAME, "call_id": NAME, "status": NAME, "operation": OBJECT},
}
PART_MEMBERS: dict[str, Members] = {
    # Clients' schemas want the annotations, empty or not.
    "output_text": {"text": STRING, "annotations": ARRAY},
    "refusal": {"refusal": STRING},
    "reasoning_text": {"text": STRING},
    "summary_text": {"text": STRING},
}
OTHER_ITEM_MEMBERS: Members = {"id": NAME, "type": NAME}
"""Of items that a server's own tools make."""

HOSTED_TOOLS = {
    "audio": ("delta", "done"),
    "audio.transcript": ("delta", "done"),
    "code_interpreter_call": ("in_progress", "interpreting", "completed"),
    "code_interpreter_call_code": ("delta", "done"),
    "compaction": ("compacting",),
    "file_search_call": ("in_progress", "searching", "completed"),
    "image_generation_call": ("in_progress", "generating", "partial_image", "completed"),
    "mcp_call": ("in_progress", "completed", "failed"),
    "mcp_call_arguments": ("delta", "done"),
    "mcp_list_tools": ("in_progress", "completed", "failed"),
    "output_text.annotation": ("added",),
    "shell_call_command": ("added", "delta", "done"),
    "shell_call_output_content": ("delta", "done"),
    "web_search_call": ("in_progress", "searching", "completed"),
}
"""Events of what runs on OpenAI's side: known, but not followed."""

KEEP_ALIVE = "keepalive"


def _members(event: PartEvent | TextEvent) -> Members:
    where = {"item_id": STRING, "output_index": COUNT}
    if event.counter:
        where[event.counter] = COUNT
    return {**where, event.member: STRING} if isinstance(event, TextEvent) else {**where, "part": OBJECT}


MEMBERS: dict[str, Members] = {
    **{type_: {"response": OBJECT} for type_ in STATUSES},
    # Told by a rule of its own.
    "error": {},
    "response.output_item.added": {"output_index": COUNT, "item": OBJECT},
    "response.output_item.done": {"output_index": COUNT, "item": OBJECT},
    **{type_: _members(event) for type_, event in (PART_EVENTS | TEXT_EVENTS).items()},
    **{f"response.{name}.{step}": {} for name, steps in HOSTED_TOOLS.items() for step in steps},
    KEEP_ALIVE: {},
}
"""Every known event type and the members it must have."""
