"""DeepSeek V3 and R1: a type, the name and fenced JSON between tokens; V3.1: name and JSON only.

    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f
    ```json
    {"a": 1}
    ```<｜tool▁call▁end｜><｜tool▁calls▁end｜>

    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{"a": 1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>

Source: the chat templates of DeepSeek V3, R1-0528 and V3.1.
"""

from __future__ import annotations

from sidecar.generation.calls import CallParser
from sidecar.generation.source import Markers, Steps

_CALLS_BEGIN, _CALLS_END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
_CALL_BEGIN, _CALL_END = "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"
_SEPARATOR = "<｜tool▁sep｜>"
MARKERS = (_CALLS_BEGIN, _CALLS_END, _CALL_BEGIN, _CALL_END, _SEPARATOR)
_BEGIN = Markers(_CALLS_BEGIN, _CALL_BEGIN)


class DeepSeekParser(CallParser):
    """Reads text with such calls."""

    def read(self) -> Steps[None]:
        """Text and calls in turn."""
        while marker := (yield from self.source.until(_BEGIN, self.sink.text)):
            self.hold(marker)
            if marker == _CALLS_BEGIN:
                yield from self.source.space()
                yield from self.source.literal(_CALL_BEGIN)
            if (yield from self._call()):
                yield from self._call_end()

    def _call(self) -> Steps[bool]:
        yield from self.source.space()
        name = yield from self.word()
        if not (yield from self.source.literal(_SEPARATOR)):
            self.give_up()
            return False
        if name == "function" and (yield from self.source.peek()) != "{":
            yield from self.source.space()
            name = yield from self.word()
            yield from self.source.space()
            yield from self.source.literal("```json")
        yield from self.source.space()
        return (yield from self.arguments(name))

    def _call_end(self) -> Steps[None]:
        fence = yield from self.closing("```", _CALL_END)
        if fence == "```":
            fence = yield from self.closing(_CALL_END)
        if fence:
            yield from self.closing(_CALLS_END)


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    return _CALLS_BEGIN in template
