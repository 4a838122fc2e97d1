"""Items as they are stored: each has a type and an id, and a list of them is a text with a line for each.

So a page of a conversation can be cut out of it without reading all of its JSON.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from sidecar.responses.ids import ResponseIds
from sidecar.responses.items import input_list
from sidecar.responses.json_text import Json, json_bytes


def input_items(given: str | Sequence[Json], ids: ResponseIds, taken: Collection[str] = ()) -> list[Json]:
    """The items of a request's ``input``, which has been found to be well-formed, as they are stored and listed.

    An item without an id, or with one of ``taken`` or of an item before it, gets one of its own of ``ids``, the
    response's: in a list that is paged through by ids, none may stand twice.
    """
    seen, listed = set(taken), list[Json]()
    for index, item in enumerate(input_list(given)):
        whole = _whole(item)
        id_ = whole.get("id")
        if not isinstance(id_, str) or not id_ or id_ in seen:
            whole["id"] = id_ = ids.input_item(whole["type"], index)
        seen.add(id_)
        listed.append(whole)
    return listed


def to_lines(items: Iterable[Json]) -> bytes:
    """A line of JSON for each item; empty for none."""
    return b"\n".join(map(json_bytes, items))


def lines_of(text: bytes) -> list[bytes]:
    """The lines of a stored list."""
    return text.split(b"\n") if text else []


def as_array(lines: Iterable[bytes]) -> bytes:
    """A JSON array of items that are lines."""
    return b"[" + b",".join(lines) + b"]"


def _whole(item: Json) -> Json:
    """An item with what clients may leave out: the type of a message, its parts where a string stands for them."""
    whole: dict[str, Any] = {"type": "message", **{name: value for name, value in item.items() if value is not None}}
    if whole["type"] != "message":
        return whole
    if isinstance(whole.get("content"), str):
        whole["content"] = [_text_part(whole["content"], written=whole.get("role") == "assistant")]
    return {"status": "completed", **whole}


def _text_part(text: str, *, written: bool) -> Json:
    if written:
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"type": "input_text", "text": text}
