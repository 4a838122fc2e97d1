"""The event stream: order, numbers, ids, and bytes that every SSE reader takes."""

import json

from hypothesis import given
from hypothesis import strategies as st

from conformance.sse import ReceivedEvent
from sidecar.responses.errors import ApiError
from sidecar.responses.events import EventWriter
from sidecar.responses.ids import ResponseIds
from sidecar.responses.open_items import ReasoningForm
from tests.core.sse import parse

IDS = ResponseIds("0" * 26)
FIELDS = {"id": IDS.response, "object": "response", "created_at": 1, "model": "m"}


def message_stream(deltas: list[str]) -> bytes:
    writer = EventWriter(IDS, FIELDS)
    parts = [writer.start(), writer.open_message(), *map(writer.delta, deltas), writer.close("completed")]
    return b"".join([*parts, writer.finish({**FIELDS, "status": "completed", "output": writer.output})])


def test_a_message_has_every_event_in_order() -> None:
    events = parse(message_stream(["Hel", "lo"]))
    assert [event.type for event in events] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert [event.data["sequence_number"] for event in events] == list(range(len(events)))
    assert {event.data["item_id"] for event in events if "item_id" in event.data} == {IDS.item("message", 0)}
    assert events[6].data["text"] == "Hello"
    assert events[-1].data["response"]["output"] == [events[-2].data["item"]]


@given(st.lists(st.text(), max_size=6))
def test_deltas_join_to_the_text_whatever_its_characters(deltas: list[str]) -> None:
    events = parse(message_stream(deltas))
    assert [event.data["delta"] for event in events if event.type.endswith("delta")] == deltas
    assert next(event.data["text"] for event in events if event.type.endswith("text.done")) == "".join(deltas)


@given(st.text())
def test_a_delta_never_breaks_a_line(text: str) -> None:
    writer = EventWriter(IDS, FIELDS)
    writer.open_message()
    event, data, *empty = writer.delta(text).decode().splitlines()
    assert json.loads(data.removeprefix("data: "))["delta"] == text
    assert (event, empty) == ("event: response.output_text.delta", [""])


def test_an_error_is_flat_and_nested_at_once() -> None:
    writer = EventWriter(IDS, FIELDS)
    writer.start()
    (event,) = parse(writer.error(ApiError("infer_backend_unavailable", "gone")))
    fields = {"message": "gone", "type": "server_error", "param": None, "code": "infer_backend_unavailable"}
    flat = {"code": "infer_backend_unavailable", "message": "gone", "param": None}
    assert event == ReceivedEvent("error", {"type": "error", "sequence_number": 2, **flat, "error": fields})


def test_one_event_is_an_event_line_a_data_line_and_a_blank_line() -> None:
    lines = EventWriter(IDS, FIELDS).start().split(b"\n")
    assert [line.partition(b":")[0] for line in lines] == [b"event", b"data", b"", b"event", b"data", b"", b""]


def reasoning_stream(deltas: list[str], *, mirrored: bool) -> bytes:
    writer = EventWriter(IDS, FIELDS, ReasoningForm(mirrored=mirrored))
    parts = [writer.start(), writer.open_reasoning(), *map(writer.delta, deltas), writer.close("completed")]
    return b"".join([*parts, writer.finish({**FIELDS, "status": "completed", "output": writer.output})])


def test_mirrored_reasoning_is_its_own_summary() -> None:
    events = parse(reasoning_stream(["a", "b"], mirrored=True))
    assert [event.type.removeprefix("response.") for event in events[2:-1]] == [
        "output_item.added",
        "content_part.added",
        "reasoning_summary_part.added",
        "reasoning_text.delta",
        "reasoning_summary_text.delta",
        "reasoning_text.delta",
        "reasoning_summary_text.delta",
        "reasoning_text.done",
        "content_part.done",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
    ]
    assert [event.data["sequence_number"] for event in events] == list(range(len(events)))
    summary = {"type": "summary_text", "text": "ab"}
    place = {"item_id": IDS.item("reasoning", 0), "output_index": 0, "summary_index": 0}
    assert events[4].data == {"type": events[4].type, "sequence_number": 4, **place, "part": {**summary, "text": ""}}
    assert events[6].data == {"type": events[6].type, "sequence_number": 6, **place, "delta": "a"}
    assert events[11].data == {"type": events[11].type, "sequence_number": 11, **place, "text": "ab"}
    assert events[12].data == {"type": events[12].type, "sequence_number": 12, **place, "part": summary}
    assert events[2].data["item"]["summary"] == []
    assert events[13].data["item"]["summary"] == [summary]
    assert events[13].data["item"]["content"] == [{"type": "reasoning_text", "text": "ab"}]


@given(st.lists(st.text(), max_size=6))
def test_a_mirrored_stream_without_its_summary_is_the_plain_stream(deltas: list[str]) -> None:
    def told(mirrored: bool) -> list[object]:
        events = parse(reasoning_stream(deltas, mirrored=mirrored))
        kept = [event.data for event in events if "reasoning_summary" not in event.type]
        for data in kept:
            del data["sequence_number"]
            for item in [data["item"]] if "item" in data else data.get("response", {}).get("output", []):
                item["summary"] = []
        return list(kept)

    assert told(True) == told(False)
