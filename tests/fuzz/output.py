"""The fuzz target of the parsers of generated text: ``python -m tests.fuzz.output [options of libFuzzer]``.

The fuzzer sees which branches of the parsers an input takes, and bends the inputs towards new ones.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["sidecar.generation"]):
    from sidecar.generation.formats import FORMATS
    from sidecar.generation.formats.forced import ForcedParser
    from sidecar.generation.reasoning import REASONING, ReasoningParser
    from sidecar.generation.segments import Parser
from tests.core.generation.generations import GENERATIONS
from tests.core.generation.segments_kit import FUNCTIONS, found, run
from tests.core.splits import split_at

FRAGMENTS = sorted(
    {marker for known in FORMATS.values() for marker in known.markers}
    | {marker for known in REASONING.values() for marker in known.markers}
    | {generation for generations in GENERATIONS.values() for generation, _ in generations.values()}
)
PARSERS = [*(known.make_parser for known in FORMATS.values()), ForcedParser]


def read_twice(data: bytes) -> None:
    """Read a text made of ``data`` whole and in pieces: the same must come out, by the rules of calls."""
    choices = atheris.FuzzedDataProvider(data)
    make_parser = choices.PickValueInList(PARSERS)
    markers = choices.PickValueInList([None, *REASONING.values()])
    opened = choices.ConsumeBool()
    parts: list[str] = []
    while choices.remaining_bytes() and len(parts) < 20:
        fragment = choices.PickValueInList(FRAGMENTS)
        begin, end = choices.ConsumeIntInRange(0, len(fragment)), choices.ConsumeIntInRange(0, len(fragment))
        parts += [fragment[begin:end] or fragment, choices.ConsumeUnicodeNoSurrogates(3)]
    text = "".join(parts)

    def parser() -> Parser:
        inner = make_parser(FUNCTIONS)
        return ReasoningParser(markers, inner, opened=opened) if markers else inner

    cuts = [choices.ConsumeIntInRange(0, len(text)) for _ in range(8)]
    whole = found(run(parser(), [text]))
    assert found(run(parser(), split_at(text, cuts))) == whole
    assert found(run(parser(), text)) == whole


if __name__ == "__main__":
    atheris.Setup(sys.argv, read_twice)
    atheris.Fuzz()
