"""A stream is cut into events, whatever its line ends, and wherever it is split."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.backends.failure import BackendError
from sidecar.backends.native.events import MOST_BYTES, Event, EventBlocks, event_of
from tests.core.splits import split_at

LINES = st.sampled_from(
    [
        b"event: a",
        b"event:b",
        b'data: {"type":"c","x":"\xc3\xa9"}',
        b"data: [DONE]",
        b'data:{"type":"d"}',
        b": comment",
        b"id: 7",
        b"",
        b"",
        b"junk",
    ]
)


def events(pieces: list[bytes]) -> list[Event]:
    """The events up to the first that is no event."""
    blocks, found = EventBlocks(), list[Event]()
    try:
        for piece in pieces:
            for block in blocks.feed(piece):
                event = event_of(block)
                found += [event] if event else []
    except BackendError as error:
        found.append(Event(b"failure", error.words.encode()))
    return found


@given(st.lists(LINES, max_size=24), st.sampled_from([b"\n", b"\r\n"]), st.lists(st.integers(0, 400), max_size=12))
def test_any_split_and_either_line_end_give_the_same_events(lines: list[bytes], end: bytes, cuts: list[int]) -> None:
    whole = b"".join(line + end for line in lines)
    assert events(split_at(whole, cuts)) == events([b"".join(line + b"\n" for line in lines)])


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (b'event: a\ndata: {"x":1}\n\n', [Event(b"a", b'event: a\ndata: {"x":1}')]),
        (b'data: {"type":"a","x":1}\n\n', [Event(b"a", b'event: a\ndata: {"type":"a","x":1}')]),
        (b'data: {"x":1,\ndata: "type":"a"}\n\n', [Event(b"a", b'event: a\ndata: {"x":1,\ndata: "type":"a"}')]),
        (b'data: {"x":1}\n\n', [Event(b"", b'data: {"x":1}')]),
        (b"\xef\xbb\xbfevent: a\ndata: {}\n\n", [Event(b"a", b"event: a\ndata: {}")]),
        (b"event: a\n: between\nid: 3\nretry: 5\ndata: {}\n\n", [Event(b"a", b"event: a\ndata: {}")]),
        (b": ping\n\ndata: [DONE]\n\nevent: a\n\n\n\n", []),
        (b"event: a\ndata: {}", []),
    ],
)
def test_an_event_is_its_type_and_its_data(written: bytes, expected: list[Event]) -> None:
    assert events([written]) == expected


def test_the_data_of_several_lines_is_one() -> None:
    event = event_of(b"event: a\ndata: {\ndata: }")
    assert event is not None
    assert event.data == b"{\n}"


@pytest.mark.parametrize("piece", [b"x" * 65536, b"data: x\n" * 8192], ids=["a line", "lines"])
def test_an_event_without_an_end_is_given_up(piece: bytes) -> None:
    blocks = EventBlocks()
    with pytest.raises(BackendError) as error:
        for _ in range(MOST_BYTES // len(piece) + 1):
            blocks.feed(piece)
    assert error.value.failure == "upstream_not_its_protocol"


def test_an_event_that_names_no_type_has_to_be_json() -> None:
    with pytest.raises(BackendError):
        event_of(b"data: hello")
