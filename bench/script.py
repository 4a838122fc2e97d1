"""What the fake model server is to say, as a file: all its bytes are built here, once, by Python.

The server (``native/upstream/``, or ``fallback/upstream.py`` without a compiler) speaks on one port gRPC over HTTP/2
by prior knowledge, as a Triton with a token-level model, and on another HTTP/1.1: streamed Chat Completions, streamed
Responses, and ``POST /cadence/<interval>/<ttft>/<tokens>/<in_step>``, which says how the next requests are answered:
with how many tokens, the first one ``ttft`` ns after the request and the others ``interval`` ns apart, whatever the
moment at which earlier ones could be written; ``in_step`` puts the tokens of all streams on one grid.

The file is a sequence of blobs, each a little-endian 32-bit length and so many bytes: the words of the ticks
(:mod:`bench.stamps`), their token ids in one blob of 32-bit integers, three faces of six blobs each, the models' list,
then for each unary gRPC method its path, its path in HPACK's Huffman code, and its answer; an empty blob ends the file.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path

from hpack.huffman import HuffmanEncoder
from hpack.huffman_constants import REQUEST_CODES, REQUEST_CODES_LENGTH

from bench import messages
from bench.http2 import header_block
from bench.stamps import TICKS, Stamps

MODEL = "bench"


@dataclass(frozen=True)
class Face:
    """One kind of answer: the head, a message before the tokens, what a token's message has around the token, the last
    message, and what ends the answer."""

    head: bytes
    first: bytes
    prefix: bytes
    suffix: bytes
    last: bytes
    end: bytes


@dataclass(frozen=True)
class Script:
    """A script read back; ``unary`` holds answers by path."""

    words: list[bytes]
    ids: list[bytes]
    faces: list[Face]
    models: bytes
    unary: dict[str, bytes]


def write(path: Path, stamps: Stamps) -> None:
    """Write the script whose tokens are those of ``stamps``."""
    path.write_bytes(b"".join(struct.pack("<I", len(blob)) + blob for blob in _blobs(stamps)))


def read(path: Path) -> Script:
    """Read what :func:`write` has written."""
    blobs = _read_blobs(path.read_bytes())
    *words, ids = (next(blobs) for _ in range(TICKS + 1))
    faces = [Face(*(next(blobs) for _ in range(6))) for _ in range(3)]
    models = next(blobs)
    unary = {}
    while path_of := next(blobs):
        next(blobs)
        unary[path_of.decode()] = next(blobs)
    return Script(words, [ids[at : at + 4] for at in range(0, len(ids), 4)], faces, models, unary)


def _read_blobs(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at)
        yield data[at + 4 : at + 4 + size]
        at += 4 + size


def _blobs(stamps: Stamps) -> Iterator[bytes]:
    yield from (f" {word}".encode() for word in stamps.ticks)
    yield struct.pack(f"<{len(stamps.ids)}I", *stamps.ids)
    for face in (_triton(), _chat(), _responses()):
        yield from astuple(face)
    yield _json({"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "bench"}]})
    huffman = HuffmanEncoder(REQUEST_CODES, REQUEST_CODES_LENGTH)
    for path, answer in messages.unary_responses().items():
        yield from (path.encode(), huffman.encode(path.encode()), answer)
    yield b""


def _triton() -> Face:
    prefix, suffix = _around(messages.token_response(MODEL, _MARK), struct.pack("<I", _MARK))
    return Face(
        head=header_block((":status", "200"), ("content-type", "application/grpc")),
        first=b"",
        prefix=prefix,
        suffix=suffix,
        last=messages.final_response(MODEL),
        end=header_block(("grpc-status", "0")),
    )


_MARK = 0x5A5B5C5D
_HTTP_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_HTTP_END = b"0\r\n\r\n"


def _around(message: bytes, mark: bytes) -> tuple[bytes, bytes]:
    prefix, _, suffix = message.partition(mark)
    return prefix, suffix


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _chat() -> Face:
    def chunk(choices: list[object], **more: object) -> bytes:
        content = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
        return b"data: %b\n\n" % _json({**content, "choices": choices, **more})

    def choice(delta: dict[str, str], reason: str | None) -> dict[str, object]:
        return {"index": 0, "delta": delta, "finish_reason": reason}

    prefix, suffix = _around(chunk([choice({"content": "<>"}, None)]), b"<>")
    usage = {"prompt_tokens": 8, "completion_tokens": 8, "total_tokens": 16}
    return Face(
        head=_HTTP_HEAD,
        first=chunk([choice({"role": "assistant", "content": ""}, None)]),
        prefix=prefix,
        suffix=suffix,
        last=chunk([choice({}, "stop")]) + chunk([], usage=usage) + b"data: [DONE]\n\n",
        end=_HTTP_END,
    )


def _responses() -> Face:
    def event(name: str, **members: object) -> bytes:
        data = _json({"type": name, **members, "sequence_number": 100})
        return b"event: %b\ndata: %b\n\n" % (name.encode(), data)

    response = {"id": "resp_1", "object": "response", "created_at": 1, "model": MODEL, "output": []}
    place = {"item_id": "msg_" + "0" * 32, "output_index": 0, "content_index": 0}
    delta = event("response.output_text.delta", **place, delta="<>", logprobs=[])
    prefix, suffix = _around(delta, b"<>")
    return Face(
        head=_HTTP_HEAD,
        first=event("response.created", response={**response, "status": "in_progress"}),
        prefix=prefix,
        suffix=suffix,
        last=event("response.completed", response={**response, "status": "completed"}),
        end=_HTTP_END,
    )
