"""Requests that are nearly right: valid ones with random changes to the body, the headers, the method or the path."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from bench.http2 import PREFACE, Type, frame, header_block
from stack.local import SCRIPTED, SCRIPTED_BY_CONTRACT, LocalStack

AT_ONCE = 64
NO_ANSWER = 0
"""Instead of a status: the connection was closed, or spoke HTTP/2, whose answers are not read."""

_PATH = "/v1/infer/responses"
# Seconds after which the sender leaves. A connection of HTTP/2 stays open when all has been answered.
_PATIENCE = 30.0
_PATIENCE_WITH_FRAMES = 0.2

_VALID: list[dict[str, Any]] = [
    {"model": SCRIPTED.name, "input": "Hello"},
    {"model": SCRIPTED.name, "input": "Hello", "stream": True, "temperature": 0.5, "max_output_tokens": 8},
    {
        "model": SCRIPTED_BY_CONTRACT["vllm"].name,
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a": 1}'},
            {"type": "function_call_output", "call_id": "c", "output": "done"},
        ],
        "tools": [{"type": "function", "name": "f", "parameters": {"type": "object", "properties": {"a": {}}}}],
        "metadata": {"k": "v"},
    },
    {
        "model": SCRIPTED_BY_CONTRACT["ensemble"].name,
        "input": [{"type": "message", "role": "user", "content": "Hello"}],
        "reasoning": {"effort": "low"},
        "include": ["reasoning.encrypted_content"],
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object", "required": ["a"]}}},
    },
]
_VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    1e308,
    2**63,
    "",
    "\x00",
    "x" * 5000,
    "\ud83d",
    "😀<|im_end|>",
    [],
    {},
    [[]] * 50,
    {"$ref": "#"},
    {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
    {"type": "input_image", "image_url": "http://127.0.0.1:9/x.png"},
    {"type": "item_reference", "id": "msg_1"},
    "http://[::1",
]
_METHODS = ["GET", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "BREW", "post", "POST "]
_PATHS = [
    "/",
    "/v1/infer/responses/",
    "/v1/infer//responses",
    "/v1/infer/responses?x=%00",
    "/v1/infer/responses/resp_1/input_items",
    "/v1/infer/models",
    "/v1/infer/models/%2e%2e/%2e%2e",
    "/../../etc/passwd",
    "/v1/infer/responses%0d%0ax: y",
    "/" + "a" * 9000,
    "*",
    "http://127.0.0.1:9/v1/infer/responses",
    "/v1/infer/responses#x",
]
_HEADERS = [
    "content-type: text/plain",
    "content-type: application/json; charset=utf-16",
    "content-encoding: gzip",
    "authorization: Bearer wrong",
    "authorization: Basic eDp5",
    "x-request-id: " + "i" * 4000,
    "x-request-id: \x01",
    "accept: text/event-stream;q=nan",
    "expect: 100-continue",
    "te: trailers",
    "upgrade: websocket",
    "connection: upgrade, x-envoy-original-path",
    "transfer-encoding: gzip",
    "x-envoy-upstream-rq-timeout-ms: 0",
    "x-envoy-retry-on: 5xx",
    "x-envoy-original-path: /admin",
    "grpc-timeout: 1n",
    "host: other",
    ": no name",
    "no colon",
    "x: " + "y" * 70_000,
    *(f"x-{index}: y" for index in range(3)),
]


async def send_odd_requests(stack: LocalStack, count: int, seed: int) -> Counter[int]:
    """Send so many, some at a time; how often each status was the answer."""
    chance = random.Random(seed)
    left = iter(range(count))
    statuses: Counter[int] = Counter()

    async def one_after_another() -> None:
        for _ in left:
            # Made before the first wait, so that the seed alone decides what is sent.
            sent = _odd(chance, stack.api_key)
            statuses[await _status(stack.port, sent)] += 1

    await asyncio.gather(*(one_after_another() for _ in range(AT_ONCE)))
    return statuses


async def _status(port: int, sent: bytes) -> int:
    """The status of the answer to bytes of HTTP/1.1, or of frames of HTTP/2."""
    answer = b""
    with contextlib.suppress(TimeoutError, ConnectionError):
        async with asyncio.timeout(_PATIENCE_WITH_FRAMES if sent.startswith(PREFACE) else _PATIENCE):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(sent)
                while piece := await reader.read(65_536):
                    answer = (answer + piece)[:4096]
            finally:
                writer.transport.abort()
    answer = answer.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
    return int(answer[9:12]) if answer.startswith(b"HTTP/1.1 ") else NO_ANSWER


def _odd(chance: random.Random, key: str) -> bytes:
    method, path, headers = "POST", _PATH, [f"authorization: Bearer {key}", "content-type: application/json"]
    value = copy.deepcopy(chance.choice(_VALID))
    kind = chance.choices(["value", "bytes", "headers", "method", "path", "frames"], [40, 20, 15, 5, 10, 10])[0]
    for _ in range(chance.randint(1, 3) if kind == "value" else 0):
        _change_value(chance, value)
    body = json.dumps(value).encode()
    if kind == "frames":
        return _frames(chance, key, body)
    if kind == "bytes":
        body = _changed_bytes(chance, body)
    if kind == "headers":
        if chance.random() < 0.2:
            del headers[chance.randrange(len(headers))]
        headers += chance.choices(_HEADERS, k=chance.choice([0, 1, 1, 4]))
    if kind == "method":
        method = chance.choice(_METHODS)
    if kind == "path":
        path = chance.choice(_PATHS)
    lines = [f"{method} {path} HTTP/1.1", "host: node", "connection: close", *headers, f"content-length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def _change_value(chance: random.Random, value: dict[str, Any]) -> None:
    """Replace, remove or repeat a member anywhere inside."""
    holder, place = chance.choice(list(_places(value)))
    match chance.randrange(4):
        case 0:
            del holder[place]
        case 1 if isinstance(holder, list):
            holder.extend([holder[place]] * chance.choice([1, 100]))
        case 1:
            holder[chance.choice(["x", "type", "id", "input", "stream", ""])] = holder[place]
        case _:
            holder[place] = copy.deepcopy(chance.choice(_VALUES))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    for place, member in value.items() if isinstance(value, dict) else enumerate(value):
        yield value, place
        if isinstance(member, dict | list):
            yield from _places(member)
    if not value:
        yield {"": None}, ""


def _changed_bytes(chance: random.Random, body: bytes) -> bytes:
    at = chance.randrange(len(body))
    changes: list[Callable[[], bytes]] = [
        lambda: body[:at],
        lambda: body[at:],
        lambda: body[:at] + chance.randbytes(chance.randint(1, 8)) + body[at:],
        lambda: body[:at] + body[at + 1 :],
        lambda: body + body,
        lambda: body[:at] + b"[" * chance.choice([1, 70, 5000]) + body[at:],
        lambda: body[:at] + b'\\ud800"' + body[at:],
        lambda: b"\xff\xfe" + body,
        lambda: body.replace(b'"Hello"', b"NaN"),
        lambda: body.replace(b'"Hello"', b"1" * 2000),
        lambda: chance.randbytes(chance.randint(0, 300)),
    ]
    return chance.choice(changes)()


def _frames(chance: random.Random, key: str, body: bytes) -> bytes:
    """A request of HTTP/2 with frames left out, twice, changed or cut, and then as bytes of it."""
    fields = [(":method", "POST"), (":scheme", "http"), (":path", _PATH), (":authority", "node")]
    fields += [("authorization", f"Bearer {key}"), ("content-type", "application/json")]
    chance.shuffle(fields)
    frames = [
        frame(Type.SETTINGS, 0, 0, b""),
        frame(Type.HEADERS, 4, 1, header_block(*fields)),
        frame(Type.DATA, chance.choice([0, 1]), 1, body),
        frame(
            chance.choice(list(Type)),
            chance.randrange(256),
            chance.randrange(5),
            chance.randbytes(chance.randrange(20)),
        ),
        frame(Type.WINDOW_UPDATE, 0, chance.choice([0, 1]), b"\x7f\xff\xff\xff"),
        frame(Type.RST_STREAM, 0, 1, b"\0\0\0\x08"),
        frame(Type.PING, 0, 0, bytes(8)) * chance.choice([1, 200]),
    ]
    sent = bytearray(b"".join(chance.choices(frames, k=3) if chance.random() < 0.3 else frames))
    for _ in range(chance.randrange(3)):
        sent[chance.randrange(len(sent))] = chance.randrange(256)
    return PREFACE + bytes(sent[: chance.randrange(len(sent) // 2, len(sent) + 1)])
