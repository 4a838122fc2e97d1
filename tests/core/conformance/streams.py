"""Event streams written by hand: the items of an answer, and the events that stream them."""

import json
from collections.abc import Iterable
from typing import Any

Json = dict[str, Any]

USAGE = {
    "input_tokens": 7,
    "input_tokens_details": {"cached_tokens": 2},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 3},
    "total_tokens": 12,
}


def response(status: str, output: list[Json], **changes: Any) -> Json:
    """A response object. In the middle of a stream it has no usage."""
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_800_000_000,
        "completed_at": 1_800_000_001 if status == "completed" else None,
        "status": status,
        "error": {"code": "server_error", "message": "gone"} if status == "failed" else None,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "model": "m",
        "output": output,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "usage": USAGE if status in ("completed", "incomplete") else None,
        **changes,
    }


def message(index: int, *deltas: str, kind: str = "output_text", status: str = "completed") -> list[Json]:
    """The events of a message with one part."""
    begun = {"id": f"msg_{index}", "type": "message", "role": "assistant"}
    return _item(begun, index, status, _part(index, kind, deltas))


def reasoning(index: int, *deltas: str, summary: Iterable[str] = (), status: str = "completed") -> list[Json]:
    """The events of a reasoning item with one part of text, after a summary where there is one."""
    begun = {"id": f"rs_{index}", "type": "reasoning", "summary": []}
    parts = _part(index, "summary_text", summary) if summary else []
    return _item(begun, index, status, parts + _part(index, "reasoning_text", deltas))


def call(index: int, *deltas: str, kind: str = "function_call", status: str = "completed") -> list[Json]:
    """The events of a call. Without deltas only its item is streamed."""
    member, event = {
        "function_call": ("arguments", "response.function_call_arguments"),
        "custom_tool_call": ("input", "response.custom_tool_call_input"),
    }[kind]
    begun = {"id": f"fc_{index}", "type": kind, "call_id": f"call_{index}", "name": "look"}
    where = {"item_id": begun["id"], "output_index": index}
    events = [{"type": f"{event}.delta", **where, "delta": delta} for delta in deltas]
    if deltas:
        events.append({"type": f"{event}.done", **where, member: "".join(deltas)})
    added = {**begun, "status": "in_progress", member: ""}
    done = {**begun, "status": status, member: "".join(deltas)}
    return [_added(index, added), *events, _done(index, done)]


def item(index: int, done: Json) -> list[Json]:
    """The events of an item of which nothing else is streamed."""
    return [_added(index, {**done, "status": "in_progress"}), _done(index, done)]


def stream(*items: list[Json], end: str = "completed", **changes: Any) -> list[Json]:
    """A whole stream of items, numbered."""
    output = [events[-1]["item"] for events in items]
    start = response("in_progress", [])
    return numbered(
        [
            {"type": "response.created", "response": start},
            {"type": "response.in_progress", "response": start},
            *(event for events in items for event in events),
            {"type": f"response.{end}", "response": response(end, output, **changes)},
        ]
    )


def error(code: str | None = "server_error") -> Json:
    """An ``error`` event without its number."""
    fields = {"code": code, "message": "gone", "param": None}
    return {"type": "error", **fields, "error": {**fields, "type": "server_error"}}


def numbered(events: Iterable[Json]) -> list[Json]:
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def encode(events: Iterable[Json]) -> bytes:
    return b"".join(
        b"event: %b\ndata: %b\n\n" % (event["type"].encode(), json.dumps(event, ensure_ascii=False).encode())
        for event in events
    )


def _item(begun: Json, index: int, status: str, parts: list[Json]) -> list[Json]:
    done = {**begun, "status": status, "content": []}
    for event in parts:
        if event["type"] == "response.content_part.done":
            done["content"] = [*done["content"], event["part"]]
        elif event["type"] == "response.reasoning_summary_part.done":
            done["summary"] = [*done["summary"], event["part"]]
    events = [{"item_id": begun["id"], **event} for event in parts]
    return [_added(index, {**begun, "status": "in_progress", "content": []}), *events, _done(index, done)]


def _added(index: int, item: Json) -> Json:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def _done(index: int, item: Json) -> Json:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def _part(index: int, kind: str, deltas: Iterable[str]) -> list[Json]:
    deltas = list(deltas)
    text, part, counter, member = {
        "output_text": ("response.output_text", "response.content_part", "content_index", "text"),
        "refusal": ("response.refusal", "response.content_part", "content_index", "refusal"),
        "reasoning_text": ("response.reasoning_text", "response.content_part", "content_index", "text"),
        "summary_text": ("response.reasoning_summary_text", "response.reasoning_summary_part", "summary_index", "text"),
    }[kind]
    where = {"output_index": index, counter: 0}
    whole = "".join(deltas)
    begun = {"type": kind, member: "", **({"annotations": []} if kind == "output_text" else {})}
    return [
        {"type": f"{part}.added", **where, "part": begun},
        *({"type": f"{text}.delta", **where, "delta": delta} for delta in deltas),
        {"type": f"{text}.done", **where, member: whole},
        {"type": f"{part}.done", **where, "part": {**begun, member: whole}},
    ]
