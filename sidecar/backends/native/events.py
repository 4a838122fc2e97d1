"""Server-sent events as bytes: a stream cut into events, each with its type, without reading what they say.

Any split of the stream gives the same events. What makes no difference to a reader is evened out: line ends become LF,
comments, ``id`` and ``retry`` lines go, an event without an ``event`` line gets the one that its data names.

Source: the HTML standard, section 9.2. A line ends with LF or CRLF; a lone CR, which no server writes, ends none.
"""

from __future__ import annotations

from typing import NamedTuple

from sidecar.backends.native.failures import NOT_ITS_PROTOCOL
from sidecar.backends.native.json_values import read_object

MOST_BYTES = 16 * 1024 * 1024
"""Of one event: that of a whole response, with megabytes of tools and text, is far smaller."""

_TYPE_LINE, _DATA_LINE, _DELTA = b"event: ", b"data: ", b".delta"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event: its type, empty where it has none, and its lines without the blank one at the end."""

    type: bytes
    lines: bytes

    @property
    def is_delta(self) -> bool:
        """Whether it is more of something: text, arguments, reasoning."""
        return self.type.endswith(_DELTA)

    @property
    def data(self) -> bytes:
        """What the data lines say."""
        return b"\n".join(line[len(_DATA_LINE) :] for line in self.lines.split(b"\n") if line.startswith(_DATA_LINE))


class EventBlocks:
    """Cuts a stream at its blank lines."""

    def __init__(self) -> None:
        self.is_between = True
        """Whether the bytes so far end with an event."""
        self._rest = bytearray()
        self._ends_in_cr = False

    def feed(self, data: bytes) -> list[bytes]:
        """The lines of the events that ``data`` completes, LF between them; some may be nothing but comments.

        Raises:
            BackendError: an event is larger than :data:`MOST_BYTES`.
        """
        if self._ends_in_cr or b"\r" in data:
            data = self._without_cr(data)
        rest = self._rest
        # Nearly every read is whole events: then nothing is copied into the buffer.
        source: bytes | bytearray = data
        seen = 0
        if rest:
            seen = len(rest) - 1
            rest += data
            source = rest
        end = source.rfind(b"\n\n", seen)
        if end < 0:
            blocks: list[bytes] = []
            if not rest:
                rest += data
        else:
            blocks = bytes(source[:end]).split(b"\n\n")
            if source is rest:
                del rest[: end + 2]
            elif end + 2 < len(data):
                rest += data[end + 2 :]
        if len(rest) > MOST_BYTES:
            raise NOT_ITS_PROTOCOL.error("an event without an end")
        self.is_between = not (rest or self._ends_in_cr)
        return blocks

    def _without_cr(self, data: bytes) -> bytes:
        """The same with LF for CRLF, also where a split has parted the two."""
        if self._ends_in_cr:
            data = b"\r" + data
        self._ends_in_cr = data.endswith(b"\r")
        if self._ends_in_cr:
            data = data[:-1]
        return data.replace(b"\r\n", b"\n")


def is_one_delta(data: bytes) -> bool:
    """Whether bytes that follow whole events are one delta, just as :func:`event_of` would give it: most reads are."""
    end = data.find(b"\n")
    return (
        data[end - len(_DELTA) : end] == _DELTA
        and data.startswith(_TYPE_LINE)
        and data.startswith(_DATA_LINE, end + 1)
        and data.find(b"\n", end + 1) == len(data) - 2
        and data.endswith(b"\n\n")
        and b"\r" not in data
    )


def event_of(block: bytes) -> Event | None:
    """The event whose lines ``block`` is; ``None`` where it holds none, or only the ``[DONE]`` of other protocols.

    Raises:
        BackendError: its type has to be read from its data, and that is no JSON object.
    """
    if block.startswith(_TYPE_LINE):
        # Nearly every event has just these two lines.
        end = block.find(b"\n")
        if block.startswith(_DATA_LINE, end + 1) and block.find(b"\n", end + 1) < 0:
            return Event(block[len(_TYPE_LINE) : end], block)
    return _any_event(block)


def _any_event(block: bytes) -> Event | None:
    type_, data = b"", list[bytes]()
    for line in block.removeprefix(_BYTE_ORDER_MARK).split(b"\n"):
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"event":
            type_ = value
        elif name == b"data":
            data.append(value)
    text = b"\n".join(data)
    if not text or text.strip() == b"[DONE]":
        return None
    if not type_:
        named = read_object(text).get("type")
        type_ = named.encode() if isinstance(named, str) and named.isprintable() else b""
    lines = [_TYPE_LINE + type_] if type_ else []
    return Event(type_, b"\n".join([*lines, *(_DATA_LINE + line for line in data)]))
