"""The events of a response that is a compaction: one item, of which nothing is told before it is whole.

Source: ``response.compaction.compacting`` of OpenAI's SDKs, which says that a summary grows, and not what is in it.
"""

from __future__ import annotations

from sidecar.responses.events import EventWriter
from sidecar.responses.ids import ResponseIds
from sidecar.responses.json_text import Json, json_string
from sidecar.responses.open_items import ItemStatus, OpenItem, UnnumberedEvent
from sidecar.responses.sealing import TeamSeal


class OpenCompaction(OpenItem):
    """A summary that still grows; it is not shown, sealed or not, before it is whole."""

    delta_type = "response.compaction.compacting"

    def __init__(self, item_id: str, output_index: int, seal: TeamSeal) -> None:
        super().__init__(item_id, output_index)
        self._seal = seal

    def snapshot(self, status: ItemStatus, text: str) -> Json:
        """The item, which has no status."""
        sealed = "" if status == "in_progress" else self._seal.seal(text.strip(), self.id)
        return {"type": "compaction", "id": self.id, "encrypted_content": sealed}

    def opening(self) -> list[UnnumberedEvent]:
        """Nothing: it has no parts."""
        return []

    def closing(self, text: str) -> list[UnnumberedEvent]:
        """Nothing."""
        return []


class CompactionWriter(EventWriter):
    """Writes the events of a response that is a compaction: what would be its message is the summary."""

    def __init__(self, ids: ResponseIds, response: Json, seal: TeamSeal) -> None:
        super().__init__(ids, response)
        self._seal = seal
        self.summary = ""
        """The whole summary, once it is."""

    def open_message(self) -> bytes:
        """The summary begins."""
        index = len(self._output)
        return self._open_item(OpenCompaction(self._ids.item("compaction", index), index, self._seal))

    def delta(self, text: str) -> bytes:
        """More of the summary: that there is more, and nothing of it."""
        item = self._open
        assert item is not None, "a delta needs an open item"
        item.encoded += json_string(text).encode()[1:-1]
        return self._events([(item.delta_type, item.place)])

    def close(self, status: ItemStatus) -> bytes:
        """The summary is whole."""
        assert self._open is not None, "only an open item closes"
        self.summary = self._open.text.strip()
        return super().close(status)
