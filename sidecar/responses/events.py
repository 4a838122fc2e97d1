"""The Responses event stream: the one place that numbers events and writes them as server-sent events.

Grammar (OpenAI's streaming reference)::

    stream   := created in_progress item* terminal
    message  := output_item.added content_part.added output_text.delta* output_text.done content_part.done
                output_item.done
    terminal := completed | incomplete | [failed] error

Every event is one ``event:`` line, one ``data:`` line and a blank line. An :class:`EventWriter` returns the bytes of
whole events; joining and sending them is the caller's work. The text of a message is kept as a list of its pieces and
joined once, when the message closes, so the cost per delta does not grow with the text.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from sidecar.responses.errors import ApiError
from sidecar.responses.ids import ResponseIds

ItemStatus = Literal["completed", "incomplete"]
Json = dict[str, Any]

_encode_string = json.encoder.c_encode_basestring or json.encoder.py_encode_basestring  # type: ignore[attr-defined]


def json_string(text: str) -> str:
    """``text`` as a JSON string, non-ASCII characters as they are.

    U+0085, U+2028 and U+2029 are escaped: many SSE readers split lines at them.
    """
    encoded: str = _encode_string(text)
    if not encoded.isascii():
        encoded = encoded.replace("\x85", "\\u0085").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return encoded


def json_bytes(value: Json) -> bytes:
    """``value`` as compact JSON in UTF-8, safe in a ``data:`` line."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if not text.isascii():
        text = text.replace("\x85", "\\u0085").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return text.encode()


class EventWriter:
    """Writes one response's events in order, numbers them and keeps the finished items.

    ``response`` holds the fields of the response object that do not change while it runs; the writer adds ``status``,
    ``output`` and ``usage``.
    """

    def __init__(self, ids: ResponseIds, response: Json) -> None:
        self._ids = ids
        self._response = response
        self._sequence_number = 0
        self._output: list[Json] = []
        self._message: _OpenMessage | None = None

    @property
    def output(self) -> list[Json]:
        """The items finished so far, in the order of their ``output_index``."""
        return self._output

    def start(self) -> bytes:
        """``response.created`` and ``response.in_progress``."""
        response = {**self._response, "status": "in_progress", "output": [], "usage": None}
        return self._event("response.created", response=response) + self._event(
            "response.in_progress", response=response
        )

    def open_message(self) -> bytes:
        """A message item and its text part begin."""
        index = len(self._output)
        self._message = message = _OpenMessage(self._ids.item("message", index), index)
        return self._event(
            "response.output_item.added", output_index=index, item=message.item("in_progress", [])
        ) + self._event(
            "response.content_part.added",
            item_id=message.id,
            output_index=index,
            content_index=0,
            part=message.part(""),
        )

    def text_delta(self, text: str) -> bytes:
        """One ``response.output_text.delta`` of the open message. This is the per-token path."""
        message = self._message
        assert message is not None, "a delta needs an open message"
        message.pieces.append(text)
        number = self._sequence_number
        self._sequence_number = number + 1
        return f'{message.delta_head}{json_string(text)},"sequence_number":{number}}}\n\n'.encode()

    def close_message(self, status: ItemStatus) -> bytes:
        """The open message's text, part and item end."""
        message = self._message
        assert message is not None, "only an open message closes"
        self._message = None
        text = "".join(message.pieces)
        where = {"item_id": message.id, "output_index": message.output_index, "content_index": 0}
        item = message.item(status, [message.part(text)])
        self._output.append(item)
        return (
            self._event("response.output_text.done", **where, text=text, logprobs=[])
            + self._event("response.content_part.done", **where, part=message.part(text))
            + self._event("response.output_item.done", output_index=message.output_index, item=item)
        )

    def finish(self, response: Json) -> bytes:
        """The terminal event of a response that ended well; its name follows ``response["status"]``."""
        return self._event(f"response.{response['status']}", response=response)

    def error(self, error: ApiError) -> bytes:
        """The terminal ``error`` event, flat as OpenAI documents it and nested as OpenAI sends it, at once.

        Clients read one or the other; no client takes either form for a success.
        """
        return self._event("error", code=error.code, message=error.message, param=error.param, error=error.fields())

    def _event(self, type_: str, **fields: Any) -> bytes:
        data = {"type": type_, "sequence_number": self._sequence_number, **fields}
        self._sequence_number += 1
        return b"event: %b\ndata: %b\n\n" % (type_.encode(), json_bytes(data))


class _OpenMessage:
    """A message whose text still grows."""

    __slots__ = ("delta_head", "id", "output_index", "pieces")

    def __init__(self, item_id: str, output_index: int) -> None:
        self.id = item_id
        self.output_index = output_index
        self.pieces: list[str] = []
        # Everything of a delta event that stays the same is written once.
        self.delta_head = (
            'event: response.output_text.delta\ndata: {"type":"response.output_text.delta",'
            f'"item_id":"{item_id}","output_index":{output_index},"content_index":0,"logprobs":[],"delta":'
        )

    def item(self, status: str, content: list[Json]) -> Json:
        return {"type": "message", "id": self.id, "status": status, "role": "assistant", "content": content}

    def part(self, text: str) -> Json:
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
