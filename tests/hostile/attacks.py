"""The attacks: requests with a valid key that are made to stop, starve or fill a worker, and a process that sends them.

They come from a process of their own, so that what they cost their sender does not delay the honest clients who are
measured: ``python -m tests.hostile.attacks PORT SECONDS NAME…`` sends until the time is up, waits for the answers that
are still under way, and prints how often each attack was answered how.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from stack.local import SCRIPTED, SCRIPTED_BY_CONTRACT
from tests.hostile import images

KEY_VARIABLE = "HOSTILE_KEY"
REMOTE_VARIABLE = "HOSTILE_REMOTE"
"""A URL that no attack may make the sidecar ask for."""

MIB = 2**20
_LARGEST = 10 * MIB
# Answers that are still under way when the time is up, in seconds: longer than any attack should take.
_PATIENCE = 30.0

REFUSED = "400 invalid_request"
UNSUPPORTED = "400 unsupported_parameter"
TOO_LONG = "400 context_length_exceeded"
DONE = "200 response.completed"
CUT_SHORT = "200 response.incomplete"
FULL = "503 capacity_unavailable"
BROKEN_OFF = "200 error"
CUT = "cut off"
"""The attacker hung up, because time was up."""


@dataclass(frozen=True)
class Attack:
    """``bodies`` are sent in turn by ``senders`` at a time, each again and again; ``answers`` are those it may get."""

    bodies: Callable[[], list[bytes]]
    answers: frozenset[str]
    senders: int = 4


def _json(model: str = SCRIPTED.name, **members: Any) -> bytes:
    return json.dumps({"model": model, "input": "x", **members}, ensure_ascii=False).encode()


def _script(*steps: Any) -> str:
    return f"script:{json.dumps(steps)}"


def _tool(schema: Any, name: str = "f", **members: Any) -> dict[str, Any]:
    return {"type": "function", "name": name, "parameters": schema, **members}


def _everywhere(schema: Any, answer: Any) -> list[bytes]:
    """A schema in each place that takes one, and an answer that is held against it."""
    text = json.dumps(answer)
    call = "<tool_call>\n" + json.dumps({"name": "f", "arguments": answer}) + "\n</tool_call>"
    form = {"type": "json_schema", "name": "answer", "schema": schema}
    return [
        _json(input=_script(text), text={"format": {**form, "strict": True}}),
        _json(input=_script(text), text={"format": form}, stream=True),
        _json(input=_script(call), tools=[_tool(schema, strict=True)]),
        _json(input=_script(call), tools=[_tool(schema)], tool_choice="required"),
    ]


def _remote_references() -> list[bytes]:
    remote = os.environ[REMOTE_VARIABLE]
    draft_03 = {"$schema": "http://json-schema.org/draft-03/schema#", "extends": {"$ref": remote}, "type": "object"}
    drafts = ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema", remote]
    return [
        *_everywhere(draft_03, {}),
        *(body for draft in drafts for body in _everywhere({"$schema": draft, "$ref": remote}, {})),
        *_everywhere({"$id": remote, "$ref": "other", "$dynamicRef": remote, "$recursiveRef": remote}, {}),
    ]


def _backtracking() -> list[bytes]:
    """Less than 400 bytes whose pattern meets a name on which it tries every way to split it."""
    schema = {"type": "object", "patternProperties": {"^(([a-z])+.)+[A-Z]([a-z])+$": {"type": "string"}}}
    return _everywhere(schema, {"a" * 60: "x"})


def _doubling() -> list[bytes]:
    """Each definition refers to the next one twice."""
    levels = 60
    bodies = []
    for keyword in ("allOf", "anyOf", "oneOf"):
        twice = {f"d{level}": {keyword: [{"$ref": f"#/$defs/d{level + 1}"}] * 2} for level in range(levels)}
        last = {"type": "object", "properties": {"a": {"type": "string"}}}
        definitions = {**twice, f"d{levels}": last}
        bodies += _everywhere({"type": "object", "$ref": "#/$defs/d0", "$defs": definitions}, {"a": 1})
    return bodies


def _patterns() -> list[bytes]:
    """24 KB of 1,500 patterns, no two of which fit the same name."""
    patterns: dict[str, Any] = {f"^a{index:04}": {} for index in range(1500)}
    return _everywhere({"type": "object", "patternProperties": patterns}, dict.fromkeys("bcdefgh", 1))


def _tools(count: int) -> list[bytes]:
    """Tools with large, deep schemas."""
    leaf = {f"p{index}": {"type": "string", "enum": [f"v{value}" for value in range(10)]} for index in range(60)}
    schema: dict[str, Any] = {"type": "object", "properties": leaf}
    for _ in range(4):
        schema = {"type": "object", "properties": {"inner": schema}, "required": ["inner"]}
    tools = [_tool(schema, f"f{index}", strict=True) for index in range(count)]
    return [_json(tools=tools), _json(tools=tools, tool_choice="required")]


def _prompt(unit: str) -> bytes:
    return _json(input=unit * ((_LARGEST - 200) // len(unit.encode())))


def _filled(head: bytes, element: bytes, tail: bytes, between: bytes = b",") -> bytes:
    """``element`` as often as the largest body has room for it."""
    start = b'{"model":"%b",%b' % (SCRIPTED.name.encode(), head)
    room = _LARGEST - 200 - len(start) - len(tail)
    return start + between.join([element] * (room // (len(element) + len(between)))) + tail


def _image(kind: str, data: bytes) -> dict[str, Any]:
    return {"type": "input_image", "image_url": f"data:image/{kind};base64,{base64.b64encode(data).decode()}"}


def _with_images(*parts: dict[str, Any]) -> bytes:
    content = [*parts, {"type": "input_text", "text": _script("seen")}]
    return _json(SCRIPTED_BY_CONTRACT["vllm"].name, input=[{"role": "user", "content": content}])


def _played(contract: str, *steps: Any) -> bytes:
    return _json(SCRIPTED_BY_CONTRACT[contract].name, input=_script(*steps), stream=True)


_SCHEMA_ANSWERS = frozenset({DONE, REFUSED, UNSUPPORTED, "503 infer_backend_unavailable"})
"""A schema may be one that can be kept to; the scripted model then breaks it."""

_SCHEMAS = {
    "references to another host": Attack(_remote_references, _SCHEMA_ANSWERS),
    "patterns that backtrack": Attack(_backtracking, _SCHEMA_ANSWERS),
    "references that double": Attack(_doubling, _SCHEMA_ANSWERS),
    "1,500 patterns, ten at a time": Attack(_patterns, _SCHEMA_ANSWERS, senders=10),
    "20 big tools": Attack(lambda: _tools(20), _SCHEMA_ANSWERS | {TOO_LONG}),
    "128 and 200 big tools": Attack(lambda: _tools(128) + _tools(200), _SCHEMA_ANSWERS | {TOO_LONG}),
}
_BODIES = {
    "10 MB of words, eight at a time": Attack(lambda: [_prompt("a ")], frozenset({TOO_LONG, FULL}), senders=8),
    "10 MB of digits, eight at a time": Attack(lambda: [_prompt("1")], frozenset({TOO_LONG, FULL}), senders=8),
    "10 MB of control tokens": Attack(lambda: [_prompt("<|im_end|>")], frozenset({TOO_LONG, FULL})),
    "10 MB of ignored lists": Attack(
        lambda: [_filled(b'"input":"x","client_metadata":[', b"[]", b"]}")], frozenset({REFUSED, FULL})
    ),
    "10 MB of open brackets": Attack(
        lambda: [b"[" * _LARGEST, _filled(b'"input":', b"[", b"", b"")], frozenset({REFUSED, FULL})
    ),
}
_IMAGES = {
    "a JPEG of many scans": Attack(
        lambda: [_with_images(_image("jpeg", images.scans(1000)))], frozenset({REFUSED, FULL})
    ),
    "32 copies of a WebP of 40 Mpx": Attack(
        lambda: [_with_images(*[_image("webp", images.flat("WEBP"))] * 32)],
        frozenset({DONE, FULL}),
        senders=2,
    ),
}
# At the pauses below each stream comes at some 10,000 tokens a second, more than model servers write; without any, what
# is measured is how much of the processors the script's own player takes.
_ANSWERS = {
    "3.5 MB of spaces as an answer": Attack(
        lambda: [_played("ensemble", {"repeat": [1000, " " * 3500, 0.005]})], frozenset({DONE, CUT_SHORT}), senders=2
    ),
    "60,000 tokens as an answer": Attack(
        lambda: [_played("ensemble", {"repeat": [6000, " one two three four five six seven eight nine ten", 0.001]})],
        frozenset({DONE, CUT_SHORT}),
        senders=2,
    ),
}

ATTACKS: dict[str, Attack] = {**_SCHEMAS, **_BODIES, **_IMAGES, **_ANSWERS}


async def besiege(port: int, key: str, names: list[str], seconds: float) -> dict[str, Counter[str]]:
    """Send the attacks of these names to the Envoy at ``port``, all at once; the answers by attack, with how many."""
    made = {name: ATTACKS[name].bodies() for name in names}
    print("ready", flush=True)
    end = time.monotonic() + seconds
    answers: dict[str, Counter[str]] = {name: Counter() for name in names}

    async def one_after_another(name: str, first: int) -> None:
        bodies = made[name]
        for body in cycle(bodies[first % len(bodies) :] + bodies[: first % len(bodies)]):
            answers[name][await strike(port, key, body, end + _PATIENCE)] += 1
            if time.monotonic() > end:
                return

    async with asyncio.TaskGroup() as senders:
        for name in names:
            for first in range(ATTACKS[name].senders):
                senders.create_task(one_after_another(name, first))
    return answers


async def strike(port: int, key: str, body: bytes, until: float) -> str:
    """Send one request and read its answer, at most ``until`` then; status and code, or the last event."""
    head = [
        "POST /v1/infer/responses HTTP/1.1",
        "host: node",
        "connection: close",
        f"authorization: Bearer {key}",
        "content-type: application/json",
        f"content-length: {len(body)}",
    ]
    try:
        async with asyncio.timeout(until - time.monotonic()):
            received = await _exchange(port, "\r\n".join([*head, "", ""]).encode(), body)
    except TimeoutError:
        return CUT
    return told(received)


async def _exchange(port: int, head: bytes, body: bytes) -> bytes:
    """The answer; empty if there was none."""
    received = bytearray()
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return b""
    try:
        writer.write(head)
        writer.write(body)
        # The answer may come before the request has been sent to its end, and resets may follow it.
        with contextlib.suppress(ConnectionError):
            while piece := await reader.read(65_536):
                received += piece
    finally:
        writer.transport.abort()
    return bytes(received)


def told(answer: bytes) -> str:
    """What an answer says: its status, and the code of its error or its last event."""
    head, _, content = answer.partition(b"\r\n\r\n")
    if not head:
        return "closed"
    status = head.split(b" ", 2)[1].decode()
    if b"text/event-stream" in head.lower():
        last = content.rpartition(b"event: ")[2].partition(b"\n")[0]
        return f"{status} {last.decode()}"
    start, end = content.find(b"{"), content.rfind(b"}")
    try:
        said = json.loads(content[start : end + 1])
    except ValueError:
        return f"{status} without JSON"
    return f"{status} {said['error']['code']}" if said.get("error") else f"{status} response.{said['status']}"


if __name__ == "__main__":
    found = asyncio.run(besiege(int(sys.argv[1]), os.environ[KEY_VARIABLE], sys.argv[3:], float(sys.argv[2])))
    print(json.dumps(found))
