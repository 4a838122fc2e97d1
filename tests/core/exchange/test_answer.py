"""Segments become items: one after another, each with its events, and usage that knows the reasoning."""

from typing import Any

import pytest

from conformance.sse import ReceivedEvent
from sidecar.backends.backend import FinishReason, Piece, Take
from sidecar.backends.triton.frames import GrpcStatus
from sidecar.exchange.answer import Answer
from sidecar.generation.stops import StopStrings
from sidecar.generation.style import Style, choose_style
from sidecar.responses.events import EventWriter
from sidecar.responses.ids import ResponseIds
from sidecar.responses.usage import Usage
from tests.core.sse import parse

FUNCTIONS = {"f": {"type": "object"}, "g": {"type": "object"}}
THINKING_HERMES = choose_style("", reasoning="think", calls="hermes")
CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
SECOND = '<tool_call>\n{"name": "g", "arguments": {}}\n</tool_call>'


class Pieces:
    """An upstream that sends each piece as it is, a token each."""

    finish_reason: FinishReason | None = None
    input_tokens: int | None = None
    cached_tokens = 0
    counted = False
    broken_characters = 0

    def feed(self, data: bytes, take: Take) -> None:
        take(data.decode(), 1)

    def end(self, whole: bool, http_status: int | None, grpc: GrpcStatus | None) -> Piece:
        return ("", 0)

    def stop(self) -> Piece:
        return ("", 0)


class Played:
    """An answer after it has ended."""

    def __init__(
        self, pieces: list[str], finish: FinishReason = "stop", *, style: Style = THINKING_HERMES, parallel: bool = True
    ) -> None:
        self.usage = Usage()
        self.writer = EventWriter(ResponseIds("0" * 26), {"id": "resp_0"})
        parser = style.parser(FUNCTIONS, opened=style.opens_reasoning(""))
        self.answer = Answer(Pieces(), self.writer, StopStrings(()), parser, self.usage, parallel_calls=parallel)
        written = [self.answer.feed(piece.encode()) for piece in pieces]
        self.events: list[ReceivedEvent] = parse(b"".join([*written, self.answer.close(("", 0), finish)]))

    @property
    def items(self) -> list[Any]:
        """The items, each as its type, status and what it holds."""
        return [
            (item["type"], item["status"], item.get("arguments") or item["content"][0]["text"])
            for item in self.writer.output
        ]


def test_reasoning_text_and_calls_are_items_in_order() -> None:
    played = Played(["<think>", "because", "</think>", "\n\n", "See: ", CALL, "\n", SECOND])
    assert played.items == [
        ("reasoning", "completed", "because"),
        ("message", "completed", "See: "),
        ("function_call", "completed", '{"a": 1}'),
        ("function_call", "completed", "{}"),
    ]
    assert [event.data["output_index"] for event in played.events if event.type.endswith("item.added")] == [0, 1, 2, 3]
    assert len({item["call_id"] for item in played.writer.output[2:]}) == 2


def test_every_item_closes_before_the_next_opens() -> None:
    played = Played(["<think>", "because", "</think>", "text ", CALL])
    steps = [event.type.removeprefix("response.output_item.") for event in played.events if "output_item" in event.type]
    assert steps == ["added", "done"] * 3


def test_tokens_of_the_reasoning_are_counted_apart() -> None:
    played = Played(["<think>", "one", " two", "</think>", "\n\n", "text"])
    assert played.usage.output_tokens == 6
    assert played.usage.reasoning_tokens == 4


def test_white_space_between_reasoning_and_a_call_opens_no_message() -> None:
    assert [kind for kind, *_ in Played(["<think>x</think>", "\n\n<tool", CALL[5:]]).items] == [
        "reasoning",
        "function_call",
    ]


@pytest.mark.parametrize(
    ("pieces", "items"),
    [
        (["<think>", "half a tho"], [("reasoning", "incomplete", "half a tho")]),
        (["half a sen"], [("message", "incomplete", "half a sen")]),
        (["text ", CALL[:46]], [("message", "completed", "text "), ("function_call", "incomplete", '{"a": 1')]),
        ([" "], [("message", "incomplete", "")]),
    ],
)
def test_a_cut_answer_ends_with_what_was_open(pieces: list[str], items: list[Any]) -> None:
    assert Played(pieces, "length").items == items


@pytest.mark.parametrize("pieces", [[], [" ", "\n"], ["<think>because</think>"]])
def test_an_answer_without_text_gets_an_empty_message(pieces: list[str]) -> None:
    assert Played(pieces).items[-1] == ("message", "completed", "")


def test_one_call_is_enough_where_no_more_are_wanted() -> None:
    played = Played(["text ", CALL[:20], CALL[20:] + SECOND, "more"], parallel=False)
    assert played.answer.stopped
    assert [kind for kind, *_ in played.items] == ["message", "function_call"]


def test_text_and_calls_of_an_answer_are_told_apart() -> None:
    assert Played(["<think>a</think>", "b", "c"]).answer.text == "bc"
    with_call = Played(["b", CALL]).answer
    assert (with_call.text, with_call.calls) == ("b", [("f", '{"a": 1}')])


def test_arguments_stream_as_they_come() -> None:
    played = Played(list(CALL.replace("1", '"word"')))
    deltas = [event.data["delta"] for event in played.events if event.type.endswith("arguments.delta")]
    assert "".join(deltas) == '{"a": "word"}'
    assert len(deltas) > 1
