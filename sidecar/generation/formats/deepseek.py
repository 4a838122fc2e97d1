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
from sidecar.generation.source import Steps

_CALLS_BEGIN, _CALLS_END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
_CALL_BEGIN, _CALL_END = "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"
_SEPARATOR = "<｜tool▁sep｜>"
MARKERS = (_CALLS_BEGIN, _CALLS_END, _CALL_BEGIN, _CALL_END, _SEPARATOR)


class DeepSeekParser(CallParser):
    """Reads text with such calls, in either spelling or a mixture."""

    begins = (_CALLS_BEGIN, _CALL_BEGIN)
    ends = (_CALL_END, _CALLS_END)
    control = MARKERS

    def read(self) -> Steps[None]:
        """Text and calls in turn."""
        while (yield from self.text()):
            yield from self.source.space()
            yield from self.source.literal(_CALL_BEGIN)
            yield from self.source.space()
            name = yield from self.word()
            yield from self.source.space()
            if (yield from self.source.literal(_SEPARATOR)) and name == "function":
                yield from self.source.space()
                # In V3 this is the call's type; in V3.1 it may be the name of a function.
                name = (yield from self.word()) or name
            if (yield from self.arguments(name)):
                yield from self.closing()


def detect(template: str) -> bool:
    """Whether a chat template writes calls so."""
    return _CALLS_BEGIN in template
