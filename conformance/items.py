"""The items of one stream: their parts and texts as the events build them up.

A fault is reported once. After it the checker goes on with what the events before had said, so that what follows is
judged for itself: a delta without its part opens the part, a done text that is not its deltas is allowed to come again
in the part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from conformance.documents import check_item
from conformance.event_types import (
    ITEM_TEXT,
    PART_EVENTS,
    PART_TEXT,
    PARTS_OF,
    TEXT_EVENTS,
    PartEvent,
    TextEvent,
)
from conformance.shapes import Json

Found = Callable[[str, str], None]
"""Takes a rule that does not hold, and a message."""

IDENTITY = ("type", "role", "name", "call_id")
"""The members that an item keeps from its start."""


@dataclass
class _Text:
    """Deltas, and the whole text once it is done."""

    pieces: list[str] = field(default_factory=list)
    whole: str | None = None

    @property
    def done(self) -> bool:
        return self.whole is not None

    def allows(self, text: object) -> bool:
        """Whether ``text`` is what was streamed, by its deltas or by its done event."""
        return text == "".join(self.pieces) or (self.done and text == self.whole)


@dataclass
class _Part:
    """A part of an item. ``assumed`` means that its start was missing; ``json`` is its form once it is done."""

    type: str
    assumed: bool = False
    text: _Text = field(default_factory=_Text)
    json: Json | None = None


@dataclass
class _Item:
    """An item. ``forms`` are the forms in which the final output may hold it, once it is done."""

    id: str | None
    output_index: int
    added: Json = field(default_factory=dict)
    assumed: bool = False
    text: _Text = field(default_factory=_Text)
    parts: dict[str, list[_Part]] = field(default_factory=lambda: {"content": [], "summary": []})
    closed: bool = False
    forms: list[Json] = field(default_factory=list)


class StreamedItems:
    """Follows the events of all items; each method takes the well-formed members of its event, others as ``None``."""

    def __init__(self, found: Found) -> None:
        self._found = found
        self._items: list[_Item] = []

    def take(self, type_: str, members: Mapping[str, Any]) -> None:
        """The next event that has to do with an item."""
        if type_ == "response.output_item.added":
            self._add(members)
        elif type_ == "response.output_item.done":
            self._finish(members)
        elif type_ in PART_EVENTS:
            self._take_part(type_, PART_EVENTS[type_], members)
        elif type_ in TEXT_EVENTS:
            self._take_text(type_, TEXT_EVENTS[type_], members)

    def end(self, output: list[Any]) -> None:
        """The response has ended well, with ``output``."""
        for item in self._items:
            if not item.closed:
                self._found("item-done", f"the response ends before item {item.output_index} is done")
        if len(output) != len(self._items):
            self._found("final-equals-streamed", f"{len(output)} items in the output, {len(self._items)} in the stream")
            return
        for at, (final, item) in enumerate(zip(output, self._items, strict=True)):
            if item.forms and not any(_same(final, form) for form in item.forms):
                self._found("final-equals-streamed", f"output[{at}] is not the item that was streamed")

    def _add(self, members: Mapping[str, Any]) -> None:
        added = members["item"] or {}
        for violation in check_item(added, "the item"):
            self._found(*violation[:2])
        if added.get("status") not in (None, "in_progress"):
            self._found("item-status", f"an item is {added['status']!r:.40} when it is added")
        if any(added.get(name) for name in ("content", "arguments", "input")):
            self._found("starts-empty", "an item has content when it is added")
        if self._items and self._items[-1].assumed and self._items[-1].id == added.get("id"):
            # Its events came too early, which has been told.
            self._items[-1].added = added
            return
        self._check_place(added, members["output_index"])
        index = len(self._items) if members["output_index"] is None else members["output_index"]
        self._items.append(_Item(added.get("id"), index, added))

    def _check_place(self, added: Json, output_index: int | None) -> None:
        """Whether an item may begin here."""
        if self._items and not self._items[-1].closed:
            self._found("item-done", f"an item is added before item {self._items[-1].output_index} is done")
            self._items[-1].closed = True
        if output_index not in (None, len(self._items)):
            self._found("output-index", f"the item has output_index {output_index} instead of {len(self._items)}")
        if any(item.id == added.get("id") is not None for item in self._items):
            self._found("item-id", f"the id {added['id']!r:.80} is another item's")

    def _find(self, type_: str, item_id: str | None, output_index: int | None) -> _Item | None:
        """The open item that an event names; ``None`` where it is closed already."""
        item = next((item for item in reversed(self._items) if item.id == item_id is not None), None)
        if item is not None and output_index not in (None, item.output_index):
            self._found("output-index", f"{type_} has output_index {output_index} instead of {item.output_index}")
        if item is None:
            item = next((item for item in reversed(self._items) if item.output_index == output_index), None)
            if item is not None and item_id is not None:
                self._found("item-id", f"{type_} names the item {item_id!r:.80} instead of {item.id!r:.80}")
        if item is None:
            self._found("item-open", f"{type_} names an item that has not been added")
            index = len(self._items) if output_index is None else output_index
            item = _Item(item_id, index, assumed=True)
            self._items.append(item)
        if item.closed:
            self._found("item-open", f"{type_} comes after its item is done")
            return None
        return item

    def _finish(self, members: Mapping[str, Any]) -> None:
        done = members["item"] or {}
        item = self._find("response.output_item.done", done.get("id"), members["output_index"])
        if item is None:
            return
        item.closed = True
        if done.get("status") == "in_progress":
            self._found("item-status", "an item is in_progress when it is done")
        streamed = {**done, **self._identity(item, done)}
        for name, parts in item.parts.items():
            streamed |= self._finish_parts(name, parts, done)
        streamed |= self._finish_text(item, done)
        item.forms = [done, streamed]

    def _identity(self, item: _Item, done: Json) -> Json:
        """The members that ``done`` had to keep."""
        kept = {name: item.added[name] for name in IDENTITY if name in item.added}
        for name, value in kept.items():
            if done.get(name) != value:
                self._found("item-unchanged", f"the item's {name} was {value!r:.80} and became {done.get(name)!r:.80}")
        return kept

    def _finish_parts(self, name: str, parts: list[_Part], done: Json) -> Json:
        """What the item's member ``name`` has to hold."""
        if parts and parts[-1].json is None:
            self._found("part-order", "the item is done before its last part is")
            return {}
        streamed = [part.json for part in parts]
        if PARTS_OF.get((str(done.get("type")), name)) is None or _same(done.get(name) or [], streamed):
            return {}
        self._found("item-equals-parts", f"the item's {name} is not the parts that were streamed")
        return {name: streamed}

    def _finish_text(self, item: _Item, done: Json) -> Json:
        """What a call's arguments or input has to be."""
        kind = done.get("type")
        member = ITEM_TEXT.get(kind) if isinstance(kind, str) else None
        if member is None:
            return {}
        if not item.text.done:
            if kind == "custom_tool_call" and not item.text.pieces:
                # Not every server streams the input of custom tools.
                return {}
            self._found("part-order", f"the call is done before its {member}")
        if item.text.allows(done.get(member)):
            return {}
        self._found("item-equals-parts", f"the call's {member} is not what was streamed")
        return {member: "".join(item.text.pieces)}

    def _take_part(self, type_: str, event: PartEvent, members: Mapping[str, Any]) -> None:
        item = self._find(type_, members["item_id"], members["output_index"])
        if item is None:
            return
        parts = item.parts[event.holder]
        part = members["part"] or {}
        allowed = PARTS_OF.get((str(item.added.get("type")), event.holder))
        if allowed is not None and str(part.get("type")) not in allowed:
            self._found("part-type", f"a part of type {part.get('type')!r:.40} in a {item.added['type']}")
        if event.done:
            self._finish_part(type_, parts, members[event.counter], part)
        else:
            self._add_part(type_, parts, members[event.counter], part)

    def _add_part(self, type_: str, parts: list[_Part], index: int | None, part: Json) -> None:
        if parts and parts[-1].json is None:
            self._found("part-order", f"{type_} comes while a part is open")
            if parts[-1].assumed:
                return
            parts[-1].json = {}
        if index not in (None, len(parts)):
            self._found("content-index", f"{type_} counts {index} instead of {len(parts)}")
        kind = str(part.get("type"))
        if part.get(PART_TEXT.get(kind, "")):
            self._found("starts-empty", "a part has text when it is added")
        parts.append(_Part(kind))

    def _finish_part(self, type_: str, parts: list[_Part], index: int | None, done: Json) -> None:
        if not parts or parts[-1].json is not None:
            self._found("part-order", f"{type_} ends no open part")
            return
        part = parts[-1]
        if index not in (None, len(parts) - 1):
            self._found("content-index", f"{type_} counts {index} instead of {len(parts) - 1}")
        part.json = done
        member = PART_TEXT.get(part.type)
        if member is None:
            return
        if not part.text.done:
            self._found("part-order", f"{type_} comes before the text is done")
        if not part.text.allows(done.get(member)):
            self._found("part-equals-text", f"the part's {member} is not what was streamed")
            part.json = {**done, member: "".join(part.text.pieces)}

    def _take_text(self, type_: str, event: TextEvent, members: Mapping[str, Any]) -> None:
        item = self._find(type_, members["item_id"], members["output_index"])
        if item is None:
            return
        kind = item.added.get("type")
        if kind not in (None, event.item):
            self._found("part-type", f"{type_} in an item of type {kind!r:.40}")
        text = item.text if event.part is None else self._text_of_part(type_, event, item, members[event.counter])
        if text is None or members[event.member] is None:
            return
        if text.done:
            self._found("part-order", f"{type_} comes after the text is done")
        elif not event.done:
            if not members[event.member]:
                self._found("empty-delta", f"{type_} has an empty delta")
            text.pieces.append(members[event.member])
        else:
            text.whole = members[event.member]
            if text.whole != "".join(text.pieces):
                self._found("done-equals-deltas", f"{type_} has {text.whole!r:.80}, not its deltas joined")

    def _text_of_part(self, type_: str, event: TextEvent, item: _Item, index: int | None) -> _Text | None:
        """The text of the open part that the event goes on with."""
        assert event.part is not None
        parts = item.parts[event.holder]
        if not parts or parts[-1].json is not None:
            self._found("part-order", f"{type_} has no open part")
            if index != len(parts):
                return None
            parts.append(_Part(event.part, assumed=True))
        elif index not in (None, len(parts) - 1):
            self._found("content-index", f"{type_} counts {index} instead of {len(parts) - 1}")
        if parts[-1].type != event.part:
            self._found("part-type", f"{type_} in a part of type {parts[-1].type!r:.40}")
            parts[-1].type = event.part
        return parts[-1].text


def _same(one: Any, other: Any) -> bool:
    """Whether two values are the same where a null member is as good as none."""
    if isinstance(one, dict) and isinstance(other, dict):
        return all(_same(one.get(name), other.get(name)) for name in one.keys() | other.keys())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)
