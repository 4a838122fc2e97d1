"""Reads one HTTP/1.1 response, as Envoy's own listener writes it on the tunnel.

A full parser would cost more than all other work per token, and the peer is Envoy alone, so this one knows just what
Envoy's HTTP/1 codec sends (RFC 9112): a head, after any informational ones, and a body that is chunked or has a content
length. Data is passed on as it comes; only heads and chunk-size lines are ever buffered.
"""

from __future__ import annotations

from enum import Enum, auto

_MAX_LINE = 64 * 1024


class Http1Error(Exception):
    """Bytes that are no HTTP/1.1 response."""


class _Expect(Enum):
    HEAD = auto()
    SIZE = auto()
    DATA = auto()
    DATA_END = auto()
    TRAILER = auto()
    NOTHING = auto()


class ResponseReader:
    """The response so far. ``status`` and ``headers`` (lower-case names) are set once the head has come."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self._expect = _Expect.HEAD
        self._chunked = False
        self._left = 0
        self._line = b""

    @property
    def complete(self) -> bool:
        """Whether the whole response has come; without it, a closed connection means an aborted response."""
        return self._expect is _Expect.NOTHING

    @property
    def between_chunks(self) -> bool:
        """Whether what comes next begins a chunk, or ends the body."""
        return self._expect is _Expect.SIZE and not self._line

    def feed(self, data: bytes) -> bytes:
        """The body bytes in ``data``; any split of the response gives the same bytes in all.

        Raises:
            Http1Error: ``data`` does not go on as a response would.
        """
        if self._line:
            data, self._line = self._line + data, b""
        body: list[bytes] = []
        position, end = 0, len(data)
        while position < end and self._expect is not _Expect.NOTHING:
            if self._expect is _Expect.DATA:
                piece = data[position : position + self._left]
                body.append(piece)
                position += len(piece)
                self._left -= len(piece)
                if not self._left:
                    self._expect = _Expect.DATA_END if self._chunked else _Expect.NOTHING
                continue
            terminator = b"\r\n\r\n" if self._expect is _Expect.HEAD else b"\r\n"
            found = data.find(terminator, position)
            if found < 0:
                self._line = data[position:]
                if len(self._line) > _MAX_LINE:
                    raise Http1Error("an endless line")
                break
            self._take_line(data[position:found])
            position = found + len(terminator)
        return b"".join(body)

    def _take_line(self, line: bytes) -> None:
        match self._expect:
            case _Expect.HEAD:
                self._take_head(line)
            case _Expect.SIZE:
                self._left = _number(line.partition(b";")[0], 16)
                self._expect = _Expect.DATA if self._left else _Expect.TRAILER
            case _Expect.DATA_END:
                if line:
                    raise Http1Error("a chunk longer than its size")
                self._expect = _Expect.SIZE
            case _Expect.TRAILER:
                if not line:
                    self._expect = _Expect.NOTHING

    def _take_head(self, head: bytes) -> None:
        first, *fields = head.decode("latin-1").split("\r\n")
        version, _, rest = first.partition(" ")
        if not version.startswith("HTTP/1."):
            raise Http1Error("no status line")
        status = _number(rest[:3].encode(), 10)
        if status < 200:
            return
        pairs = (field.partition(":") for field in fields)
        self.headers = {name.lower(): value.strip() for name, _, value in pairs}
        self.status = status
        self._chunked = self.headers.get("transfer-encoding", "").lower() == "chunked"
        if self._chunked:
            self._expect = _Expect.SIZE
            return
        self._left = _number(self.headers.get("content-length", "0").encode(), 10)
        self._expect = _Expect.DATA if self._left else _Expect.NOTHING


def size_line(size: int) -> bytes:
    """The line, as Envoy writes it, before the data of a chunk of ``size`` bytes in all; nothing where none fits."""
    for digits in range(1, 9):
        line = b"%x\r\n" % max(1, size - digits - 4)
        if len(line) == digits + 2 and len(line) + int(line, 16) + 2 == size:
            return line
    return b""


def _number(digits: bytes, base: int) -> int:
    try:
        return int(digits, base)
    except ValueError as error:
        raise Http1Error("a malformed number") from error
