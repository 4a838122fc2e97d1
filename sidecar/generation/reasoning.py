"""Reasoning that a model puts between markers before its answer."""

from __future__ import annotations

from dataclasses import dataclass

from sidecar.generation.coroutine import CoroutineParser, markers_of
from sidecar.generation.source import Steps


@dataclass(frozen=True)
class ReasoningFormat:
    """The markers of a model family.

    ``implied`` models may begin to reason without the opening marker, although the prompt does not end with it either.
    ``special`` markers are tokens of the model's own, which it cannot mean as text.
    """

    begin: str
    end: str
    implied: bool = False
    special: bool = False

    @property
    def markers(self) -> tuple[str, ...]:
        """What must be visible in the detokenized text, special token or not."""
        return (self.begin, self.end)

    def opened_by(self, prompt: str) -> bool:
        """Whether a generation that follows the rendered ``prompt`` begins inside the reasoning."""
        prompt = prompt.rstrip()
        return prompt.endswith(self.begin) or (self.implied and not prompt.endswith(self.end))


class ReasoningParser(CoroutineParser):
    """Reads the reasoning, then lets the parser of the answer read what follows.

    Only the beginning of a generation can be reasoning: markers in the answer may be an example or an argument, unless
    they are special tokens. ``opened`` tells that the generation begins inside; the opening marker may then come once
    more. A call's special token ends the reasoning too: models go over to a call without the end marker.
    """

    def __init__(self, markers: ReasoningFormat, inner: CoroutineParser, *, opened: bool) -> None:
        super().__init__(inner.source, inner.sink)
        self.sink.blank = True
        self._markers = markers
        self._inner = inner
        self._opened = opened
        if markers.special:
            inner.set_aside(markers.begin, markers.end, self._reasoning)

    def read(self) -> Steps[None]:
        """The reasoning, if there is any, then the answer."""
        yield from self.source.space()
        if (yield from self.source.literal(self._markers.begin)) or self._opened:
            yield from self._reasoning()
        yield from self._inner.read()

    def _reasoning(self) -> Steps[None]:
        marks = markers_of((self._markers.end, *self._inner.tokens))
        self.sink.next_message()
        while marker := (yield from self.source.until(marks, self.sink.reasoning)):
            if marker in self._inner.begins:
                break
            self.source.take(len(marker))
            if marker == self._markers.end:
                break
            self._inner.drop(self.sink.reasoning)
        yield from self.source.space()
        self.sink.next_message()


def _think(template: str) -> bool:
    return "</think>" in template


def _deepseek_r1(template: str) -> bool:
    # Later DeepSeek templates have a switch, and always write one of the markers.
    return "<｜Assistant｜>" in template and "</think>" in template and "thinking" not in template


def _mistral(template: str) -> bool:
    return "[THINK]" in template


_THINK = ReasoningFormat("<think>", "</think>")

REASONING = {
    "think": _THINK,
    "deepseek_r1": ReasoningFormat("<think>", "</think>", implied=True),
    "mistral": ReasoningFormat("[THINK]", "[/THINK]", special=True),
}
"""The known markers by name."""

_DETECTORS = {"deepseek_r1": _deepseek_r1, "think": _think, "mistral": _mistral}
"""How a chat template shows them; the first that does is the one."""


def detect_reasoning(template: str) -> str | None:
    """The name in :data:`REASONING` of the markers that a chat template writes; ``None`` where it writes none."""
    return next((name for name, shows in _DETECTORS.items() if shows(template)), None)
