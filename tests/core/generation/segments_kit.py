"""Runs parsers of generated text and writes their segments down shortly."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from typing import Any

from sidecar.generation.segments import (
    ARGUMENTS,
    CALL,
    CALL_BROKEN,
    CALL_DONE,
    REASONING,
    TEXT,
    Parser,
    Segment,
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
            "tags": {"type": "array"},
        },
        "$defs": {"point": {"type": "object", "properties": {"x": {"type": "number"}}}},
    },
    "shell": {"type": "object"},
    "now": {},
}
"""The functions of a request."""

Found = tuple[str, Any]
"""A kind and its text; for a call the name, the arguments, and whether it is complete."""


def run(parser: Parser, pieces: Iterable[str], *, cut: bool = False) -> list[Segment]:
    """All segments of a generation in these pieces, those of one kind in a row joined."""
    segments = [*(segment for piece in pieces for segment in parser.feed(piece)), *parser.end(cut=cut)]
    assert all(text or kind in (CALL_DONE, CALL_BROKEN) for kind, text in segments), "no segment is empty"
    merged: list[Segment] = []
    for kind, group in groupby(segments, itemgetter(0)):
        texts = [text for _, text in group]
        merged += [(kind, "".join(texts))] if kind in (REASONING, TEXT, ARGUMENTS) else [(kind, text) for text in texts]
    return merged


def found(segments: list[Segment]) -> list[Found]:
    """The segments in short, calls as one, with the rules that hold for calls checked."""
    short: list[Found] = []
    call: list[str] | None = None
    for kind, text in segments:
        if kind == CALL:
            assert call is None, "calls come one after another"
            call = [text, ""]
        elif kind == ARGUMENTS:
            assert call is not None
            call[1] += text
        elif kind in (CALL_DONE, CALL_BROKEN):
            assert call is not None
            if kind == CALL_DONE:
                assert isinstance(json.loads(call[1], parse_constant=refuse), dict)
            short.append(("call" if kind == CALL_DONE else "cut", tuple(call)))
            call = None
        else:
            assert call is None
            short.append((kind, text))
    assert call is None, "every call is closed"
    return short


def refuse(constant: str) -> None:
    """For what Python reads as JSON and is none."""
    raise ValueError(f"{constant} is not JSON")


def call(name: str, arguments: str) -> Found:
    """A complete call."""
    return "call", (name, arguments)


def cut(name: str, arguments: str) -> Found:
    """A call that the token limit cut."""
    return "cut", (name, arguments)


def text(content: str) -> Found:
    """Visible text."""
    return "text", content


def reasoning(content: str) -> Found:
    """Reasoning."""
    return "reasoning", content
