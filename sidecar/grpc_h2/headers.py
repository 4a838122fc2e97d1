"""Header blocks, of requests and of responses: the peer's are read and checked, ours are written.

Ours use no dynamic table, so that a block is the same bytes on every connection.

Source: RFC 7541; RFC 9113, sections 8.2 and 8.3; the gRPC over HTTP/2 protocol page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple, cast
from urllib.parse import quote

from hpack import Decoder, HPACKError, OversizedHeaderListError

from sidecar.grpc_h2.faults import ConnectionFault, StreamFault
from sidecar.grpc_h2.frames import ErrorCode
from sidecar.grpc_h2.status import Status

# Names as tokens in lower case, and no control characters in values: section 8.2.1, and RFC 9110, section 5.6.2.
_NAME = re.compile(rb":?[!#$%&'*+.^_`|~0-9a-z-]+")
_VALUE = re.compile(rb"(?:[^\x00-\x20\x7f](?:[^\x00-\x08\x0a-\x1f\x7f]*[^\x00-\x20\x7f])?)?")
_OF_REQUESTS = frozenset({":method", ":scheme", ":path", ":authority"})
_OF_RESPONSES = frozenset({":status"})
_OF_CONNECTIONS = frozenset({"connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade"})
_CONTENT_TYPE = "application/grpc"
_MAX_WORDS = 1024
_MOST_KNOWN = 64

NO_TABLE = b"\x20"
"""The dynamic table's size update to 0 (RFC 7541, section 6.3), for the first block of a connection.

It says for good that we use none; a peer that allows a smaller table than the default waits for such a word.
"""


class Request(NamedTuple):
    """A request's headers. Values of a name that comes several times are joined by commas."""

    method: str
    path: str
    metadata: dict[str, str]
    """All but the pseudo-headers; the values of names on ``-bin`` are still in base64."""


class HeaderReader:
    """Reads the header blocks of one connection, in the order in which they come."""

    def __init__(self, max_bytes: int) -> None:
        """``max_bytes`` is of one block, decompressed as RFC 9113, section 6.5.2 counts it."""
        self._decoder = Decoder(max_bytes)
        # A client repeats itself: its blocks soon are nothing but indices into the dynamic table. Such a block leaves
        # the table as it is, and means the same until another one changes the table.
        self._known: dict[bytes, Request] = {}

    def request(self, block: bytes) -> Request:
        """The headers that open a stream.

        Raises:
            ConnectionFault: the block cannot be decompressed, or is larger than allowed.
            StreamFault: the headers are malformed.
        """
        known = self._known.get(block)
        if known is not None:
            return known
        request = _request(*_checked(self._decode(block), _OF_REQUESTS))
        if _is_all_indices(block) and len(self._known) < _MOST_KNOWN:
            self._known[block] = request
        return request

    def response(self, block: bytes) -> dict[str, str]:
        """The headers of a response, ``:status`` among them, or its trailers, which have none.

        Raises:
            ConnectionFault, StreamFault: as :meth:`request`.
        """
        pseudo, metadata = _checked(self._decode(block), _OF_RESPONSES)
        return {**pseudo, **metadata}

    def trailers(self, block: bytes) -> None:
        """The headers that end a request; gRPC has nothing to say there.

        Raises:
            ConnectionFault, StreamFault: as :meth:`request`.
        """
        if any(name.startswith(b":") for name, _ in self._decode(block)):
            raise StreamFault(ErrorCode.PROTOCOL_ERROR, "a pseudo-header in trailers")

    def skip(self, block: bytes) -> None:
        """Headers that nobody wants: the decoder's state belongs to the connection (RFC 7541, section 2.2).

        Raises:
            ConnectionFault: as :meth:`request`.
        """
        self._decode(block)

    def _decode(self, block: bytes) -> list[tuple[bytes, bytes]]:
        if not _is_all_indices(block):
            self._known.clear()
        try:
            return list(cast("Iterable[tuple[bytes, bytes]]", self._decoder.decode(block, raw=True)))
        except OversizedHeaderListError as error:
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, "the headers are too large") from error
        except HPACKError as error:
            raise ConnectionFault(ErrorCode.COMPRESSION_ERROR, "the headers cannot be decompressed") from error


def response_head() -> bytes:
    """The block that begins a response."""
    # The static table's entry for ":status: 200".
    return b"\x88" + _literal(b"content-type", _CONTENT_TYPE.encode())


def response_trailers(status: Status, words: str) -> bytes:
    """The block that ends a response."""
    block = _literal(b"grpc-status", b"%d" % status)
    if words:
        block += _literal(b"grpc-message", quote(words[:_MAX_WORDS], safe=" !\"#$&'()*+,/:;<=>?@[\\]^`{|}").encode())
    return block


def grpc_request(path: str, authority: str, metadata: Mapping[str, str]) -> bytes:
    """The block that opens a call of the method ``path``."""
    # The static table's entries for ":method: POST" and ":scheme: http".
    fields = {":path": path, ":authority": authority, "content-type": _CONTENT_TYPE, "te": "trailers", **metadata}
    return b"\x83\x86" + b"".join(_literal(name.encode(), value.encode("latin-1")) for name, value in fields.items())


def plain_response(http_status: int) -> bytes:
    """The block that is the whole answer to a request which is not gRPC."""
    return _literal(b":status", b"%d" % http_status)


def is_grpc(request: Request) -> bool:
    """Whether the request's content type is gRPC's, with any message format."""
    return request.metadata.get("content-type", "").startswith(_CONTENT_TYPE)


def _is_all_indices(block: bytes) -> bool:
    """Whether every byte is a whole indexed field (RFC 7541, section 6.1)."""
    return all(127 < byte < 255 for byte in block)


def _checked(fields: list[tuple[bytes, bytes]], known: frozenset[str]) -> tuple[dict[str, str], dict[str, str]]:
    """The pseudo-headers, which are ``known`` ones, and the others.

    Raises:
        StreamFault: the headers are malformed.
    """
    pseudo: dict[str, str] = {}
    metadata: dict[str, str] = {}
    for raw_name, raw_value in fields:
        if not _NAME.fullmatch(raw_name) or not _VALUE.fullmatch(raw_value):
            raise StreamFault(ErrorCode.PROTOCOL_ERROR, "a malformed header")
        name, value = raw_name.decode("ascii"), raw_value.decode("latin-1")
        if name.startswith(":"):
            if metadata or name in pseudo or name not in known:
                raise StreamFault(ErrorCode.PROTOCOL_ERROR, "a pseudo-header that is late, repeated or unknown")
            pseudo[name] = value
        elif name in _OF_CONNECTIONS or (name == "te" and value != "trailers"):
            raise StreamFault(ErrorCode.PROTOCOL_ERROR, "a header of HTTP/1.1 connections")
        else:
            metadata[name] = f"{metadata[name]},{value}" if name in metadata else value
    return pseudo, metadata


def _request(pseudo: dict[str, str], metadata: dict[str, str]) -> Request:
    if not pseudo.keys() >= {":method", ":scheme", ":path"} or not pseudo[":path"]:
        raise StreamFault(ErrorCode.PROTOCOL_ERROR, "a pseudo-header is missing")
    return Request(pseudo[":method"], pseudo[":path"], metadata)


def _literal(name: bytes, value: bytes) -> bytes:
    """A field that is in no table and enters none (RFC 7541, section 6.2.2)."""
    return b"\x00" + _string(name) + _string(value)


def _string(text: bytes) -> bytes:
    """A string without Huffman coding (RFC 7541, sections 5.1 and 5.2)."""
    size = len(text)
    if size < 127:
        return bytes((size,)) + text
    prefix = bytearray(b"\x7f")
    size -= 127
    while size > 127:
        prefix.append(size & 127 | 128)
        size >>= 7
    prefix.append(size)
    return bytes(prefix) + text
