"""gpt-oss: the whole generation is messages with a channel, and calls are messages to a recipient.

    <|channel|>analysis<|message|>Reasoning.<|end|>
    <|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a": 1}<|call|>
    <|start|>assistant<|channel|>final<|message|>Text.<|return|>

The prompt ends with ``<|start|>assistant``. The recipient may also stand before the channel, and without the
``functions`` that it belongs to. Commentary without a recipient is for the user, like the final channel.
Source: the Harmony response format of openai-harmony.
"""

from __future__ import annotations

import re

from sidecar.generation.calls import CallParser
from sidecar.generation.source import Emit, Steps

_START, _CHANNEL, _CONSTRAIN, _MESSAGE = "<|start|>", "<|channel|>", "<|constrain|>", "<|message|>"
_ENDS = ("<|end|>", "<|return|>", "<|call|>")
MARKERS = (_START, _CHANNEL, _CONSTRAIN, _MESSAGE, *_ENDS)
_HEADER = re.compile(r"[^<\n{]*")
_RECIPIENT = re.compile(r"\bto=([\w./:-]+)")
_CHANNEL_NAME = re.compile(r"\s*(?:assistant\b)?\s*(?:(analysis|commentary|final)\b)?\s*")
_REASONING = "analysis"


class HarmonyParser(CallParser):
    """Reads such messages; text outside of messages is visible."""

    begins = (_START, _CHANNEL)
    ends = _ENDS
    control = MARKERS

    def read(self) -> Steps[None]:
        """Message after message. The first may begin with its recipient, as the prompt has its role."""
        if (yield from self.source.ahead(" to=", "to=")):
            self.hold()
            yield from self._message(_START)
        while marker := (yield from self.text()):
            yield from self._message(marker)

    def _message(self, marker: str) -> Steps[None]:
        """Read a message. Where a header begins anew, what came before is dropped; one may lack its end."""
        role = channel = ""
        while marker and marker != _MESSAGE:
            words = yield from self.word(_HEADER)
            if marker == _START:
                role, channel = words, ""
            elif marker == _CHANNEL:
                channel = words
            else:
                channel += f" {words}"
            marker = yield from self.source.literal(_START, _CHANNEL, _CONSTRAIN, _MESSAGE)
        header = f"{role} {channel}"
        name = self._recipient(header)
        if name and (marker or (yield from self.source.peek()) == "{"):
            yield from self._call(name)
            return
        self.source.release()
        if not marker and self.source.ended:
            # Half a header is never text.
            self.source.take_rest()
            return
        self.sink.next_message()
        named = _CHANNEL_NAME.match(channel or role)
        self.sink.in_reasoning = named is not None and named[1] == _REASONING
        emit = self.sink.reasoning if self.sink.in_reasoning else self.sink.text
        if not marker and named:
            emit((channel or role)[named.end() :])
        yield from self._body(emit)

    def _recipient(self, header: str) -> str:
        """The function that the message goes to, with or without what it belongs to; any other recipient as it is."""
        found = _RECIPIENT.search(header)
        if not found:
            return ""
        _, _, inner = found[1].partition("functions")
        names = (found[1], inner[1:], re.split(r"[./:]", found[1])[-1])
        return next((name for name in names if name in self.functions), found[1])

    def _call(self, name: str) -> Steps[None]:
        self.markup()
        if (yield from self.arguments(name)):
            yield from self.closing()
        else:
            yield from self._body(self.sink.text)

    def _body(self, emit: Emit) -> Steps[None]:
        """Pass on text to the end of the message; the next one may begin without it."""
        while marker := (yield from self.source.until(self._marks, emit)):
            if marker in self.begins:
                break
            self.source.take(len(marker))
            if marker in _ENDS:
                break
            self.drop(emit)
        self.sink.in_reasoning = False
        self.sink.next_message()


def detect(template: str) -> bool:
    """Whether a chat template writes such messages."""
    return _CHANNEL in template and _MESSAGE in template
