"""Requests made to be dear: each is answered, and takes memory in proportion to its bytes, not to what it spells.

A process of its own measures each, so that nothing which ran before hides what it takes.
"""

from __future__ import annotations

import json
import resource
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from sidecar.config.model import RequestLimits
from sidecar.exchange.asks import Facts
from sidecar.exchange.events import RequestComplete
from sidecar.exchange.plan import make_plan
from sidecar.prompts.chat_model import load_chat_model
from sidecar.prompts.renderer import PromptRenderer
from sidecar.responses.errors import ApiError
from sidecar.surfaces import SURFACES
from stack.paths import TOKENIZER
from tests.core import kit

MIB = 2**20
LARGEST = 10 * MIB
CONTEXT = 131_072
_HEAD = b'{"model":"letters",'


def text(unit: str, size: int = LARGEST) -> bytes:
    """A prompt of nothing but ``unit``."""
    written = json.dumps(unit, ensure_ascii=False)[1:-1].encode()
    return _HEAD + b'"input":"' + written * ((size - 100) // len(written)) + b'"}'


def listed(head: bytes, element: bytes, count: int, tail: bytes = b"]}") -> bytes:
    """``element`` in an array, ``%d`` in it its number; as many as fit into the largest body, at most ``count``."""
    count = min(count, (LARGEST - 200) // (len(element) + 5))
    return _HEAD + head + b",".join([element.replace(b"%d", b"%d" % at) for at in range(count)]) + tail


_PART = b'{"type":"input_text","text":"' + b"x" * 100 + b'"}'
_TURN = b'{"role":"user","content":"' + b"x" * 2000 + b'"}'
_ANSWERED = b',{"type":"function_call_output","call_id":"c","output":"x"}]}'
_CALL = b'"input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{\\"a\\":['
_MANY = LARGEST

CASES: dict[str, tuple[Callable[[], bytes], int]] = {
    "words": (lambda: text("a "), 400),
    "digits": (lambda: text("1"), 400),
    "spaces": (lambda: text(" "), 400),
    "line breaks": (lambda: text("\n"), 400),
    "emoji": (lambda: text("😀"), 400),
    "one long word": (lambda: text("a"), 400),
    "ideographs": (lambda: text("敏捷"), 400),
    "control tokens": (lambda: text("<|im_end|>"), 400),
    "beginnings of control tokens": (lambda: text("<"), 400),
    "cuts": (lambda: text("\ufdd0a"), 400),
    "quotation marks": (lambda: text('"'), 400),
    "a megabyte of digits": (lambda: text("1", MIB), 400),
    "a megabyte of control tokens": (lambda: text("<|im_end|>", MIB), 400),
    "a quarter of a megabyte of cuts": (lambda: text("\ufdd0a", MIB // 4), 200),
    "a megabyte of spaces": (lambda: text(" ", MIB), 200),
    "300 KB of prose": (lambda: text("The quick brown fox jumps over the lazy dog. ", 300_000), 200),
    "open brackets": (lambda: b"[" * LARGEST, 400),
    "closed brackets": (lambda: b"{" + b"]" * (LARGEST - 1), 400),
    "only quotation marks": (lambda: b'"' * LARGEST, 400),
    "one byte too many": (lambda: text("a ") + b" " * 200, 413),
    "ignored lists": (lambda: listed(b'"input":"x","client_metadata":[', b"[]", _MANY), 400),
    "as many ignored lists as may be": (lambda: listed(b'"input":"x","client_metadata":[', b"[]", 199_000), 200),
    "ignored numbers of many digits": (lambda: listed(b'"input":"x","client_metadata":[', b"9" * 4000, _MANY), 400),
    "members": (lambda: listed(b'"input":"x",', b'"k%d":1', 199_000, b"}"), 400),
    "metadata": (lambda: listed(b'"input":"x","metadata":{', b'"k%d":"1"', 199_000, b"}}"), 400),
    "a long number": (lambda: _HEAD + b'"input":"x","seed":' + b"1" * (LARGEST - 100) + b"}", 400),
    "a long key": (lambda: _HEAD + b'"' + b"k" * (LARGEST - 100) + b'":1}', 400),
    "empty items": (lambda: listed(b'"input":[', b"{}", 199_000), 400),
    "long turns": (lambda: listed(b'"input":[', _TURN, 4096), 400),
    "short turns": (lambda: listed(b'"input":[', b'{"role":"user","content":"x"}', 4096), 200),
    "parts of one turn": (lambda: listed(b'"input":[{"role":"user","content":[', _PART, 60_000, b"]}]}"), 400),
    "calls": (lambda: listed(b'"input":[', b'{"type":"function_call","call_id":"c%d","name":"f"}', 50_000), 400),
    "tools": (lambda: listed(b'"input":"x","tools":[', b'{"type":"function","name":"f%d"}', 60_000), 400),
    "arguments of many values": (lambda: listed(_CALL, b"[]", _MANY, b']}"}' + _ANSWERED), 400),
    "deep arguments": (lambda: _HEAD + _CALL + b"[" * (MIB // 8) + b'"}' + _ANSWERED, 200),
}


# Each process begins with what is imported here, and none has measured or parsed anything before.
_PROCESSES = get_context("forkserver")
_PROCESSES.set_forkserver_preload([__name__])


def prepare(name: str, context_length: int) -> tuple[int, int]:
    """The status that a request is answered with, and by how much preparing it raised this process's peak, in bytes."""
    renderer = PromptRenderer(load_chat_model(TOKENIZER))
    served = kit.model(
        renderer=renderer, context_length=context_length, limits=RequestLimits(max_request_bytes=LARGEST)
    )
    body = CASES[name][0]()
    headers = {**kit.CREATE, "content-type": "application/json"}
    request = RequestComplete(headers, body, len(body), 100.0, 1_800_000_000.5, 100.0)
    facts = Facts(SURFACES["node"], kit.catalog(served), request, bytes(range(18)))
    before = _peak()
    try:
        make_plan(facts)
    except ApiError as refusal:
        return refusal.status, _peak() - before
    return 200, _peak() - before


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.parametrize("name", CASES)
def test_what_is_dear_is_answered_with_bounded_memory(name: str) -> None:
    with ProcessPoolExecutor(1, mp_context=_PROCESSES) as own:
        status, taken = own.submit(prepare, name, CONTEXT).result()
    assert status == CASES[name][1]
    assert taken < 250 * MIB
