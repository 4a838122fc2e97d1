"""Runs parsers of generated text and writes their segments down shortly."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from sidecar.generation.segments import (
    ArgumentsDelta,
    CallClosed,
    CallOpened,
    Parser,
    ReasoningDelta,
    Segment,
    TextDelta,
)

FUNCTIONS: dict[str, dict[str, Any]] = {
    "get_weather": {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "metric": {"type": "boolean"},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "at": {"$ref": "#/$defs/point"},
        },
        "$defs": {"point": {"type": "object", "properties": {"x": {"type": "number"}}}},
    },
    "now": {},
}
"""The functions of a request."""

Found = tuple[str, Any]
"""A kind and its text; for a call the name, the arguments, and whether it is complete."""


def run(parser: Parser, pieces: Iterable[str]) -> list[Segment]:
    """All segments of a generation in these pieces, deltas of one kind in a row joined."""
    segments = [segment for piece in pieces for segment in parser.feed(piece)] + parser.end()
    assert all(segment[0] != "" for segment in segments), "no delta is empty"
    merged: list[Segment] = []
    for kind, group in groupby(segments, type):
        row = list(group)
        merged += [kind("".join(map(text_of, row)))] if kind in DELTAS else row
    return merged


DELTAS = (ReasoningDelta, TextDelta, ArgumentsDelta)


def text_of(segment: Segment) -> str:
    """A delta's text, or the name of the call that opens."""
    assert not isinstance(segment, CallClosed)
    return segment[0]


def found(segments: list[Segment]) -> list[Found]:
    """The segments in short, calls as one, with the rules that hold for calls checked."""
    short: list[Found] = []
    call: list[str] | None = None
    for segment in segments:
        match segment:
            case CallOpened(name):
                assert call is None, "calls come one after another"
                call = [name, ""]
            case ArgumentsDelta(text):
                assert call is not None
                call[1] += text
            case CallClosed(complete):
                assert call is not None
                if complete:
                    assert isinstance(json.loads(call[1]), dict)
                short.append(("call" if complete else "cut", tuple(call)))
                call = None
            case ReasoningDelta(text) | TextDelta(text):
                assert call is None
                short.append(("reasoning" if isinstance(segment, ReasoningDelta) else "text", text))
    assert call is None, "every call is closed"
    return short


def call(name: str, arguments: str) -> Found:
    """A complete call."""
    return "call", (name, arguments)


def cut(name: str, arguments: str) -> Found:
    """A call that the generation's end or broken markup left incomplete."""
    return "cut", (name, arguments)


def text(content: str) -> Found:
    """Visible text."""
    return "text", content


def reasoning(content: str) -> Found:
    """Reasoning."""
    return "reasoning", content
