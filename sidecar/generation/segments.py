"""What a generated text is made of: reasoning, visible text and function calls, in the order of their generation.

A parser turns text, split anywhere, into segments. Its rules:

* Any split of the text gives the same segments, runs of one kind taken together.
* It holds back at most what may be markup, and its cost is linear.
* Nothing readable is lost: what looked like markup and is not comes out as text, without the model's control tokens.
* A call's name is known before the call opens; each prefix of its joined arguments is a prefix of the final JSON.
* A call that opened ends as valid JSON. Only where the token limit cut the generation inside it does it end broken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, Protocol

Kind = Literal["reasoning", "text", "call", "arguments", "call_done", "call_broken"]

REASONING: Final = "reasoning"
"""More of the model's reasoning; never empty."""
TEXT: Final = "text"
"""More of the visible text; never empty."""
CALL: Final = "call"
"""A call begins; its text is the function's name."""
ARGUMENTS: Final = "arguments"
"""More of the open call's arguments, as JSON text; never empty."""
CALL_DONE: Final = "call_done"
"""The open call ends, its arguments a whole JSON object; no text."""
CALL_BROKEN: Final = "call_broken"
"""The token limit cut the open call, its arguments the beginning of a JSON object; no text."""

Segment = tuple[Kind, str]
"""A kind and its text. A plain tuple: a stream makes one for each token."""


class Parser(Protocol):
    """Reads one generated text. ``in_reasoning`` is whether what it has been fed so far ends in the reasoning."""

    in_reasoning: bool

    @property
    def repaired_calls(self) -> int:
        """How many calls had arguments that were written not quite right, and were made valid JSON."""

    def plain(self, text: str) -> Kind | None:
        """The kind of ``text``, which is not empty, where it is one segment as it is, as nearly always.

        Then it has been read, and changes neither ``in_reasoning`` nor what is held back. Else it is still to be fed.
        """

    def feed(self, text: str) -> Sequence[Segment]:
        """The segments that ``text`` adds."""

    def end(self, *, cut: bool = False) -> Sequence[Segment]:
        """What was held back, and the end of what is open.

        ``cut`` tells that the token limit ended the generation, not the model.
        """
