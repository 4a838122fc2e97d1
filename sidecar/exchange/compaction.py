"""Compaction by a model of Triton's: what it is to read, and its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sidecar.exchange.events import UpstreamEnd
from sidecar.exchange.triton_live import TritonLive
from sidecar.responses.compaction import Uncompacted
from sidecar.responses.compaction_events import CompactionWriter
from sidecar.responses.errors import ApiError
from sidecar.responses.ids import ResponseIds
from sidecar.responses.json_text import Json
from sidecar.responses.request import ReasoningSettings, ResponsesRequest
from sidecar.responses.sealing import TeamSeal
from sidecar.responses.text_format import TextSettings
from sidecar.stored.items import input_items


@dataclass(frozen=True, slots=True)
class Compaction:
    """How an answer is a compaction: its text is sealed by ``seal``.

    ``kept`` are the items that its answer begins with, where it was asked for as such; ``None`` where the answer is a
    response with one item.
    """

    seal: TeamSeal
    kept: Sequence[Json] | None


def asked_to_summarise(request: ResponsesRequest, conversation: Uncompacted) -> ResponsesRequest:
    """``request`` as its model is to read it: the conversation, and no more than that where it is to be summarised."""
    if not conversation.asks:
        return request.model_copy(update={"input": conversation.items})
    free = {"tools": [], "tool_choice": "auto", "text": TextSettings(), "reasoning": ReasoningSettings()}
    return request.model_copy(update={"input": conversation.items, **free})


def kept_items(before: Sequence[Json], given: str | list[Json], ids: ResponseIds) -> list[Json]:
    """What a compacted conversation begins with: all that the user said, as it was said."""
    taken = {str(item.get("id")) for item in before}
    items = [*before, *input_items(given, ids, taken)]
    return [item for item in items if item["type"] == "message" and item.get("role") == "user"]


class CompactionLive(TritonLive):
    """A summary that grows."""

    def close(self, end: UpstreamEnd | None) -> bytes:
        """See :class:`LiveAnswer`; an empty summary is none."""
        events = super().close(end)
        assert isinstance(self._writer, CompactionWriter)
        if not self._writer.summary:
            raise ApiError("infer_backend_unavailable", "The model wrote no summary.", retry=False)
        return events

    def response(self) -> Json:
        """The response, or the compaction in its own shape."""
        response, compaction = super().response(), self._triton_plan.compaction
        assert compaction is not None
        if compaction.kept is None:
            return response
        return {
            "id": response["id"],
            "object": "response.compaction",
            "created_at": response["created_at"],
            "output": [*compaction.kept, *response["output"]],
            "usage": response["usage"],
        }
