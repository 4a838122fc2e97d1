"""What models write, read in pieces by each parser, and the events that come of it."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from sidecar.exchange.answer import Answer
from sidecar.generation.formats import FORMATS
from sidecar.generation.reasoning import REASONING
from sidecar.generation.segments import Parser
from sidecar.generation.stops import StopStrings
from sidecar.generation.style import choose_style, guided_parser
from sidecar.responses.events import EventWriter
from sidecar.responses.ids import ResponseIds
from sidecar.responses.usage import Usage
from tests.core.exchange.test_answer import Pieces
from tests.core.generation.generations import GENERATIONS
from tests.core.generation.segments_kit import FUNCTIONS
from tests.core.generation.slips import SLIPS
from tests.fuzz.slow.search import Target
from tests.hostile.work import calls

SECONDS = 0.1
SECONDS_PER_CHARACTER = 150e-6
CALLS = 2_000
CALLS_PER_CHARACTER = 90
"""Of Python functions, where each character comes alone."""
GUIDED = "guided"
"""Stands for the parser of an answer that is nothing but calls."""
PIECES = (1, 2, 7, 40, 1000)
STOPS = ("<|im_end|>", "\n\nUser:", " " * 30 + "x")

_TABLES = (GENERATIONS, SLIPS)
_WHOLE = [text for table in _TABLES for texts in table.values() for text, _ in texts.values()]
_MARKERS = sorted(
    {marker for known in FORMATS.values() for marker in known.markers}
    | {marker for known in REASONING.values() for marker in known.markers}
    | {" ", "\n", "\\", '"', "{", "}", "[", "]", "(", ")", "<", ">", "a", "1", "é", "😀", "\\u00", ",", ":", "=", "'"}
)


@dataclass(frozen=True)
class Generation:
    """A text, its parser and how much of it comes at a time."""

    format: str
    reasoning: str
    fragments: tuple[str, ...]
    piece: int

    @property
    def text(self) -> str:
        """All that the model writes."""
        return "".join(self.fragments)

    def parser(self) -> Parser:
        """A new one."""
        if self.format == GUIDED:
            return guided_parser(FUNCTIONS)
        reasoning = self.reasoning if self.format != "harmony" else "none"
        return choose_style("", reasoning=reasoning, calls=self.format).parser(FUNCTIONS, opened=False)

    def read(self) -> None:
        """Read the text to its end, as the answer to a request."""
        writer = EventWriter(ResponseIds("0" * 26), {"id": "resp_0"})
        answer = Answer(Pieces(), writer, StopStrings(STOPS), self.parser(), Usage(), parallel_calls=True)
        text = self.text
        for start in range(0, len(text), self.piece):
            answer.feed(text[start : start + self.piece].encode())
        answer.close(("", 0), "stop")
        answer.result("stop")


class Generations(Target[Generation]):
    """Generations of up to 20,000 characters."""

    most_bytes = 20_000

    def seeds(self) -> Sequence[Generation]:
        """An answer in each format, well written and not."""
        return [
            Generation(name, "none", (text,), 1)
            for table in _TABLES
            for name, texts in table.items()
            for text, _ in texts.values()
            if name in FORMATS
        ]

    def changed(self, old: Generation, other: Generation, chance: random.Random) -> Generation:
        """``old`` with fragments added, repeated, cut, moved or taken from ``other``, or read otherwise."""
        fragments = list(old.fragments)
        at = chance.randrange(len(fragments) + 1)
        match chance.randrange(8):
            case 0:
                fragments[at:at] = [chance.choice(_MARKERS)]
            case 1:
                begin, end = sorted((at, chance.randrange(len(fragments) + 1)))
                fragments[begin:end] *= chance.choice((2, 3, 8))
            case 2 if fragments:
                fragments[at % len(fragments)] *= chance.choice((2, 3, 8))
            case 3 if fragments:
                cut = fragments[at % len(fragments)]
                begin, end = sorted(chance.randrange(len(cut) + 1) for _ in range(2))
                fragments[at % len(fragments)] = cut[begin:end] or cut
            case 4:
                fragments[at:at] = [chance.choice([*other.fragments, *_WHOLE[:1]])]
            case 5 if len(fragments) > 1:
                del fragments[at % len(fragments)]
            case 6:
                formats = [*FORMATS, GUIDED]
                return replace(old, format=chance.choice(formats), reasoning=chance.choice(["none", *REASONING]))
            case _:
                return replace(old, piece=chance.choice(PIECES))
        return replace(old, fragments=tuple(fragments))

    def text(self, input: Generation) -> str:
        """The generation as JSON."""
        return json.dumps({**asdict(input), "fragments": [input.text]}, ensure_ascii=False)

    def size(self, input: Generation) -> int:
        """The bytes of the text."""
        return sum(len(fragment.encode()) for fragment in input.fragments)

    def share(self, input: Generation) -> float:
        """By the Python functions called, and by CPU time."""
        characters = len(input.text)
        before = time.process_time()
        input.read()
        took = time.process_time() - before
        # By now what a parser makes once, as it is first used, has been made.
        called = calls(input.read) / (CALLS + CALLS_PER_CHARACTER * characters)
        return max(called, took / (SECONDS + SECONDS_PER_CHARACTER * characters))
