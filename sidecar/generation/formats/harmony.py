"""gpt-oss: the whole generation is messages with a channel, and calls are messages to a recipient.

    <|channel|>analysis<|message|>Reasoning.<|end|>
    <|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a": 1}<|call|>
    <|start|>assistant<|channel|>final<|message|>Text.<|return|>

The prompt ends with ``<|start|>assistant``. The recipient may also stand before the channel. Commentary without a
recipient is for the user, like the final channel. Source: the Harmony response format of openai-harmony.
"""

from __future__ import annotations

import re

from sidecar.generation.calls import CallParser
from sidecar.generation.source import Emit, Markers, Steps

_START, _CHANNEL, _MESSAGE = "<|start|>", "<|channel|>", "<|message|>"
_ENDS = ("<|end|>", "<|call|>", "<|return|>")
MARKERS = (_START, _CHANNEL, "<|constrain|>", _MESSAGE, *_ENDS)
_BEGIN = Markers(_START, _CHANNEL)
# Models sometimes begin the next message without ending the one before.
_BODY_END = Markers(*_ENDS, _START, _CHANNEL)
_HEADER = re.compile(r"[^<\n]*")
_RECIPIENT = re.compile(r"\bto=functions\.([\w.-]+)")
_CHANNEL_NAME = re.compile(r"\s*(\w*)")
_REASONING = "analysis"


class HarmonyParser(CallParser):
    """Reads such messages; text outside of messages is visible."""

    def read(self) -> Steps[None]:
        """Message after message."""
        while marker := (yield from self.source.until(_BEGIN, self.sink.text)):
            self.hold(marker)
            role = ""
            if marker == _START:
                role = yield from self.word(_HEADER)
                marker = yield from self.source.literal(_CHANNEL, _MESSAGE)
            channel = ""
            if marker == _CHANNEL:
                channel = yield from self._channel()
                marker = yield from self.source.literal(_MESSAGE)
            if marker == _MESSAGE:
                yield from self._body(role, channel)
            elif self.source.ended:
                # The end cut a header, which is never text.
                self.source.release()
                self.source.take_rest()
            else:
                self.give_up()

    def _channel(self) -> Steps[str]:
        header = yield from self.word(_HEADER)
        if (yield from self.source.literal("<|constrain|>")):
            header += yield from self.word(_HEADER)
        return header

    def _body(self, role: str, channel: str) -> Steps[None]:
        recipient = _RECIPIENT.search(f"{role} {channel}")
        if recipient:
            yield from self._call(recipient[1])
            return
        self.source.release()
        self.sink.next_message()
        name = _CHANNEL_NAME.match(channel)
        reasoning = name is not None and name[1] == _REASONING
        yield from self._text(self.sink.reasoning if reasoning else self.sink.text)
        self.sink.next_message()

    def _call(self, name: str) -> Steps[None]:
        yield from self.source.space()
        if name in self.functions and (yield from self.source.literal(*_ENDS)):
            self.open(name)
            self.sink.arguments("{}")
            self.close(True)
        elif (yield from self.arguments(name)):
            yield from self.closing(*_ENDS)
        else:
            yield from self._text(self.sink.text)

    def _text(self, emit: Emit) -> Steps[None]:
        end = yield from self.source.until(_BODY_END, emit)
        if end in _ENDS:
            self.source.take(len(end))


def detect(template: str) -> bool:
    """Whether a chat template writes such messages."""
    return _CHANNEL in template and _MESSAGE in template
