"""Output items that still grow, and the events that open and close each kind.

Source: OpenAI's streaming reference; the order within an item is fixed:

* message: ``output_item.added``, ``content_part.added``, ``output_text.delta``…, ``output_text.done``,
  ``content_part.done``, ``output_item.done``
* reasoning: the same with ``reasoning_text``; mirrored, its text is also that of a summary, whose
  ``reasoning_summary_part.added``, ``reasoning_summary_text.delta``…, ``reasoning_summary_text.done`` and
  ``reasoning_summary_part.done`` each follow their counterpart
* calls: :mod:`sidecar.responses.open_calls`

The text of an item is kept as the bytes that its deltas have sent, and decoded once: neither the cost per delta nor the
number of objects grows with the text.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

from sidecar.responses.json_text import Json

ItemStatus = Literal["in_progress", "completed", "incomplete"]
UnnumberedEvent = tuple[str, Json]
"""An event's type, and its members beyond ``type`` and ``sequence_number``."""


class OpenItem(ABC):
    """An item at ``output_index`` whose text still grows.

    ``delta_type`` is the type of its delta events; ``delta_extra`` are members that all of them have.
    """

    delta_type: str
    delta_extra: ClassVar[Json] = {}
    told_whole: ClassVar[bool] = False
    """Whether nothing is told of it before it is whole."""

    def __init__(self, item_id: str, output_index: int) -> None:
        self.id = item_id
        self.output_index = output_index
        self.encoded = bytearray()
        """The text so far, as it stands in a JSON string."""

    @property
    def text(self) -> str:
        """The text so far."""
        return str(json.loads(f'"{self.encoded.decode()}"'))

    @property
    def place(self) -> Json:
        """Where the item's deltas belong."""
        return {"item_id": self.id, "output_index": self.output_index}

    def deltas(self) -> list[UnnumberedEvent]:
        """The events that tell more of the text, all of them but the text: one, or one for each place it grows in."""
        return [(self.delta_type, {**self.place, **self.delta_extra})]

    @abstractmethod
    def snapshot(self, status: ItemStatus, text: str) -> Json:
        """The item object with ``text`` as all it holds."""

    @abstractmethod
    def opening(self) -> list[UnnumberedEvent]:
        """The events between ``output_item.added`` and the first delta."""

    @abstractmethod
    def closing(self, text: str) -> list[UnnumberedEvent]:
        """The events between the last delta and ``output_item.done``."""


class _WithPart(OpenItem):
    """An item whose text is its one content part."""

    @property
    def place(self) -> Json:
        return {**super().place, "content_index": 0}

    @abstractmethod
    def part(self, text: str) -> Json:
        """The content part."""

    def opening(self) -> list[UnnumberedEvent]:
        return [("response.content_part.added", {**self.place, "part": self.part("")})]

    def closing(self, text: str) -> list[UnnumberedEvent]:
        return [
            (self.delta_type.replace(".delta", ".done"), {**self.place, "text": text, **self.delta_extra}),
            ("response.content_part.done", {**self.place, "part": self.part(text)}),
        ]


class OpenMessage(_WithPart):
    """The assistant's visible text."""

    delta_type = "response.output_text.delta"
    delta_extra: ClassVar[Json] = {"logprobs": []}

    def snapshot(self, status: ItemStatus, text: str) -> Json:
        """The message; it has no content before its part was added."""
        content = [] if status == "in_progress" else [self.part(text)]
        return {"type": "message", "id": self.id, "status": status, "role": "assistant", "content": content}

    def part(self, text: str) -> Json:
        """An ``output_text`` part."""
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


@dataclass(frozen=True)
class ReasoningForm:
    """How reasoning is shown beside the text as it is.

    ``mirrored``, as its own summary too, for clients that show only that. ``seal`` makes ``encrypted_content`` of the
    text and the item's id, for clients that replay only that.
    """

    mirrored: bool = False
    seal: Callable[[str, str], str] | None = None


class OpenReasoning(_WithPart):
    """The model's reasoning, in its form."""

    delta_type = "response.reasoning_text.delta"

    def __init__(self, item_id: str, output_index: int, form: ReasoningForm) -> None:
        super().__init__(item_id, output_index)
        self._form = form

    def deltas(self) -> list[UnnumberedEvent]:
        """The reasoning's, then the summary's."""
        return [*super().deltas(), *self._summary(("response.reasoning_summary_text.delta", {}))]

    def opening(self) -> list[UnnumberedEvent]:
        """The part, then the summary's."""
        return [*super().opening(), *self._summary(("response.reasoning_summary_part.added", {"part": _summary("")}))]

    def closing(self, text: str) -> list[UnnumberedEvent]:
        """The part's end, then the summary's."""
        return [
            *super().closing(text),
            *self._summary(
                ("response.reasoning_summary_text.done", {"text": text}),
                ("response.reasoning_summary_part.done", {"part": _summary(text)}),
            ),
        ]

    def snapshot(self, status: ItemStatus, text: str) -> Json:
        """The reasoning item; without a seal it has no ``encrypted_content``, since some clients reject null there."""
        whole = status != "in_progress"
        sealed = {"encrypted_content": self._form.seal(text, self.id)} if whole and self._form.seal else {}
        return {
            "type": "reasoning",
            "id": self.id,
            "status": status,
            "summary": [_summary(text)] if whole and self._form.mirrored else [],
            "content": [self.part(text)] if whole else [],
            **sealed,
        }

    def part(self, text: str) -> Json:
        """A ``reasoning_text`` part."""
        return {"type": "reasoning_text", "text": text}

    def _summary(self, *events: UnnumberedEvent) -> list[UnnumberedEvent]:
        """``events`` of the summary, if there is one."""
        place = {"item_id": self.id, "output_index": self.output_index, "summary_index": 0}
        return [(type_, {**place, **members}) for type_, members in events if self._form.mirrored]


def _summary(text: str) -> Json:
    return {"type": "summary_text", "text": text}
