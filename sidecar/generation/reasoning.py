"""Reasoning that a model puts between markers before its answer."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sidecar.generation.coroutine import CoroutineParser, markers_of
from sidecar.generation.source import Steps


@dataclass(frozen=True)
class ReasoningFormat:
    """The markers of a model family.

    ``implied`` models may begin to reason without the opening marker, although the prompt does not end with it either.
    ``special`` markers are tokens of the model's own, which it cannot mean as text.
    ``tokens`` are those of which the markers consist, where they are no tokens themselves.
    """

    begin: str
    end: str
    implied: bool = False
    special: bool = False
    tokens: tuple[str, ...] = ()

    @property
    def markers(self) -> tuple[str, ...]:
        """What must be visible in the detokenized text, special token or not."""
        return (self.begin, self.end, *self.tokens)

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
        self.sink.in_reasoning = True
        while marker := (yield from self.source.until(marks, self.sink.reasoning)):
            if marker in self._inner.begins:
                break
            self.source.take(len(marker))
            if marker == self._markers.end:
                break
            self._inner.drop(self.sink.reasoning)
        self.sink.in_reasoning = False
        yield from self.source.space()
        self.sink.next_message()


REASONING = {
    "think": ReasoningFormat("<think>", "</think>"),
    "deepseek_r1": ReasoningFormat("<think>", "</think>", implied=True),
    "mistral": ReasoningFormat("[THINK]", "[/THINK]", special=True),
    "cohere": ReasoningFormat("<|START_THINKING|>", "<|END_THINKING|>", special=True),
    "seed_oss": ReasoningFormat("<seed:think>", "</seed:think>"),
    "gemma4": ReasoningFormat("<|channel>thought", "<channel|>", special=True, tokens=("<|channel>",)),
    "kimi_k3": ReasoningFormat(
        "<|open|>think<|sep|>", "<|close|>think<|sep|>", special=True, tokens=("<|open|>", "<|close|>", "<|sep|>")
    ),
    "kimi_vl": ReasoningFormat("◁think▷", "◁/think▷"),
    "longcat": ReasoningFormat("<longcat_think>", "</longcat_think>"),
    "apertus": ReasoningFormat("<|inner_prefix|>", "<|inner_suffix|>", special=True),
    "minimax_m3": ReasoningFormat("<mm:think>", "</mm:think>"),
    "granite": ReasoningFormat("Here is my thought process:", "Here is my response:"),
}
"""The known markers by name."""


_SHOWN_BY = {
    "kimi_k3": ("<|open|>", "<|close|>", "<|sep|>"),
    "mistral": ("[THINK]",),
    "cohere": ("<|END_THINKING|>",),
    "seed_oss": ("</seed:think>",),
    "gemma4": ("<channel|>",),
    "kimi_vl": ("◁think▷",),
    "longcat": ("<longcat_think>",),
    "apertus": ("<|inner_suffix|>",),
    "minimax_m3": ("<mm:think>",),
    "granite": ("Here is my thought process:",),
    # A template that only takes the reasoning out of earlier answers has the end alone.
    "think": ("</think>",),
}
"""What a chat template has that writes the markers; the first of which it has all are the ones."""


def detect_reasoning(template: str) -> str | None:
    """The name in :data:`REASONING` of the markers that a chat template writes; ``None`` where it writes none."""
    found = next((name for name, parts in _SHOWN_BY.items() if all(part in template for part in parts)), None)
    # Later DeepSeek templates have a switch, and always write one of the markers.
    if found == "think" and "<｜Assistant｜>" in template and "thinking" not in template:
        return "deepseek_r1"
    return found


_LIKE_THINKING = re.compile(r"<[\w:|/]*(?:think|thought|reason)\w*\|?>", re.ASCII)


def unknown_markers(template: str) -> tuple[str, ...]:
    """What a chat template writes that looks like markers of reasoning, where it writes none that are known."""
    return () if detect_reasoning(template) else tuple(dict.fromkeys(_LIKE_THINKING.findall(template)))
