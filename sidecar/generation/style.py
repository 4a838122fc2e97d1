"""How a model writes its answers: where its reasoning stands, and the format of its calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from sidecar.generation.coroutine import CoroutineParser, PlainText
from sidecar.generation.formats import FORMATS, Format, detect_format
from sidecar.generation.formats.forced import ForcedParser
from sidecar.generation.reasoning import REASONING, ReasoningFormat, ReasoningParser, detect_reasoning, unknown_markers
from sidecar.generation.segments import Parser

T = TypeVar("T")

AUTO = "auto"
NONE = "none"


@dataclass(frozen=True, slots=True)
class Style:
    """A model's way of writing; ``None`` where it has no reasoning, or no calls.

    ``calls_assumed`` tells that neither a setting names the format of calls nor the chat template shows a known one.
    ``unknown_reasoning`` are what the template writes that looks like markers of reasoning, but none that are known.
    """

    reasoning: ReasoningFormat | None
    calls: Format | None
    calls_assumed: bool = False
    unknown_reasoning: tuple[str, ...] = ()

    @property
    def markers(self) -> tuple[str, ...]:
        """What must be visible in the detokenized text, special tokens or not."""
        reasoning = self.reasoning.markers if self.reasoning else ()
        return reasoning + (self.calls.markers if self.calls else ())

    def opens_reasoning(self, prompt_text: str) -> bool:
        """Whether an answer to ``prompt_text`` begins inside the reasoning."""
        return self.reasoning is not None and self.reasoning.opened_by(prompt_text)

    def parser(self, functions: Mapping[str, Mapping[str, Any]], *, opened: bool) -> Parser:
        """A parser for an answer in which any of ``functions`` may be called; ``opened`` as :meth:`opens_reasoning`."""
        answer: CoroutineParser = PlainText()
        if self.calls and (functions or self.calls.frames_all):
            answer = self.calls.make_parser(functions)
        if self.reasoning is None:
            return answer
        return ReasoningParser(self.reasoning, answer, opened=opened)


def guided_parser(functions: Mapping[str, Mapping[str, Any]]) -> Parser:
    """A parser for an answer that guided decoding keeps to JSON: a call of one of ``functions``, or else text.

    The guide rules from the first token on, so there is neither reasoning nor markup.
    """
    return ForcedParser(functions) if functions else PlainText()


def choose_style(template: str, *, reasoning: str | ReasoningFormat, calls: str) -> Style:
    """The style that the settings name, or what the chat template's source shows where they say ``auto``.

    ``reasoning`` may also be markers of the model's own. Where the template knows no tools, or shows them in no known
    form, they are described in the Hermes format, so answers are read in that.

    Raises:
        ValueError: a setting names no known format.
    """
    unknown_reasoning = unknown_markers(template) if reasoning == AUTO else ()
    detected = detect_format(template) if calls == AUTO else calls
    call_format = _named(detected or "hermes", FORMATS, "tool")
    if reasoning == AUTO:
        reasoning = detect_reasoning(template) or NONE
    reasoning_format = _named(reasoning, REASONING, "reasoning") if isinstance(reasoning, str) else reasoning
    if call_format and call_format.reasons:
        reasoning_format, unknown_reasoning = None, ()
    return Style(reasoning_format, call_format, detected is None, unknown_reasoning)


def _named(name: str, known: Mapping[str, T], what: str) -> T | None:
    if name != NONE and name not in known:
        raise ValueError(f"unknown {what} format {name}; known are {', '.join((AUTO, NONE, *known))}")
    return known.get(name)
