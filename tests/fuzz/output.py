"""The fuzz target of the parsers of generated text: ``python -m tests.fuzz.output [options of libFuzzer]``.

The fuzzer sees which branches of the parsers an input takes, and bends the inputs towards new ones. Whatever a model
writes: nothing is raised, any split gives the same segments, no special token comes out, a call that is not whole is
there only where the token limit cut it, and the work is linear.
"""

from __future__ import annotations

import sys
from types import FrameType

import atheris

with atheris.instrument_imports(include=["sidecar.generation"]):
    from sidecar.generation.formats import FORMATS
    from sidecar.generation.formats.forced import ForcedParser
    from sidecar.generation.reasoning import REASONING, ReasoningParser
    from sidecar.generation.segments import CALL, CALL_BROKEN, CALL_DONE, Parser
from tests.core.generation.generations import GENERATIONS
from tests.core.generation.segments_kit import FUNCTIONS, found, run
from tests.core.generation.slips import SLIPS
from tests.core.splits import split_at

FRAGMENTS = sorted(
    {marker for known in FORMATS.values() for marker in known.markers}
    | {marker for known in REASONING.values() for marker in known.markers}
    | {
        generation
        for table in (GENERATIONS, SLIPS)
        for generations in table.values()
        for generation, _ in generations.values()
    }
)
HARMONY = FORMATS["harmony"].make_parser
PARSERS = [*(known.make_parser for known in FORMATS.values()), ForcedParser]
LONGEST = 300
"""Characters of a generation."""
MOST_CALLS = 60
"""Calls of Python functions that a character costs at most, where each comes alone."""


def read_twice(data: bytes) -> None:
    """Read a text made of ``data`` whole and in pieces: the same must come out, by the rules."""
    choices = atheris.FuzzedDataProvider(data)
    make_parser = choices.PickValueInList(PARSERS)
    # A format that has its own place for reasoning is not read with markers around it.
    markers = choices.PickValueInList([None, *REASONING.values()]) if make_parser is not HARMONY else None
    opened, cut = choices.ConsumeBool(), choices.ConsumeBool()
    parts: list[str] = []
    while choices.remaining_bytes() and len(parts) < 20:
        fragment = choices.PickValueInList(FRAGMENTS)
        begin, end = choices.ConsumeIntInRange(0, len(fragment)), choices.ConsumeIntInRange(0, len(fragment))
        parts += [fragment[begin:end] or fragment, choices.ConsumeUnicodeNoSurrogates(3)]
    text = "".join(parts)[:LONGEST]

    def parser() -> Parser:
        inner = make_parser(FUNCTIONS)
        return ReasoningParser(markers, inner, opened=opened) if markers else inner

    segments = run(parser(), [text], cut=cut)
    whole = found(segments)
    cuts = [choices.ConsumeIntInRange(0, len(text)) for _ in range(8)]
    assert found(run(parser(), split_at(text, cuts), cut=cut)) == whole
    assert CALL_BROKEN not in [kind for kind, _ in (segments[:-1] if cut else segments)]
    shown = [text for kind, text in segments if kind not in (CALL, CALL_DONE, CALL_BROKEN)]
    special = (*make_parser.control, *((markers.begin, markers.end) if markers and markers.special else ()))
    assert not [marker for marker in special for text in shown if marker in text]

    if choices.ConsumeIntInRange(0, 9):
        return
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    reading = parser()
    sys.setprofile(count)
    try:
        pieces = [segment for character in text for segment in reading.feed(character)]
        pieces += reading.end(cut=cut)
    finally:
        sys.setprofile(None)
    assert "".join(text for _, text in pieces) == "".join(text for _, text in segments)
    assert calls <= MOST_CALLS * (len(text) + 2)


if __name__ == "__main__":
    atheris.Setup(sys.argv, read_twice)
    atheris.Fuzz()
