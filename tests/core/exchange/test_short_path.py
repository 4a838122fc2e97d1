"""Responses that repeat earlier ones are read by a short path: it does what parsing each of them does.

Two exchanges get the same bytes. One is the product's; in the other each response is parsed, and each text goes through
the whole parser of its format.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, cycle
from typing import Any, cast
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.backends.triton.contracts.contract import Contract, Decoder, Generation, Vocabulary
from sidecar.backends.triton.contracts.ensemble import Ensemble
from sidecar.backends.triton.contracts.token_level import TokenLevel
from sidecar.backends.triton.contracts.vllm import Vllm
from sidecar.backends.triton.frames import frame
from sidecar.backends.triton.protocol import service_pb2
from sidecar.exchange.commands import CallUpstream, Command
from sidecar.exchange.delivered import Delivered
from sidecar.exchange.events import Abort
from sidecar.exchange.exchange import Exchange
from sidecar.generation.coroutine import CoroutineParser
from sidecar.generation.style import Style, choose_style
from sidecar.prompts.detokenizer import ByteLevelDetokenizer
from sidecar.responses.errors import ApiError
from tests.core import kit
from tests.core.splits import split_at

TEXTS = ["a", " b", "\n", " ", "é", "\u2028", '"', "<think>", "</think>", "<tool_call>", "</tool_call>", "STOP", "ST"]
TEXTS += ['{"name": "f", "arguments": {"a": "x', '"}}', "\x00", "🦀"]
HALVES = [b"\xf0\x9f", b"\xa6\x80", b"\xff"]
TOKENS: list[str | bytes] = [*TEXTS, *HALVES]
TABLE = {10 + at: token for at, token in enumerate(TOKENS)}
UNKNOWN = 9
IGNORED = ("sequence_length", "cum_log_probs")
TOOL = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}
STYLES = [Style(None, None), choose_style("", reasoning="think", calls="hermes")]
TOKEN_LEVEL = TokenLevel(kit.INPUTS, batched=True, tokens_per_block=2)
OF_TEXT: list[Contract] = [
    Vllm(frozenset({"text_input", "sampling_parameters"}), batched=False),
    Ensemble(frozenset({"text_input", "max_tokens"}), batched=True, accumulates=False, tokens_per_block=2),
]

Output = tuple[str, str, bytes]
"""A tensor: its name, datatype and content."""


class Renderer(kit.ByteRenderer):
    """Its detokenizer is the product's own, with tokens that are whole texts, halves of characters, or nothing."""

    def detokenizer(self) -> ByteLevelDetokenizer:  # type: ignore[override]
        return ByteLevelDetokenizer(TABLE)


@dataclass(frozen=True)
class Parsed:
    """A contract none of whose responses is read by the short path."""

    inner: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def decoder(self, generation: Generation, vocabulary: Vocabulary) -> Decoder:
        decoder: Any = self.inner.decoder(generation, vocabulary)
        decoder.varying = lambda response: None
        return decoder  # type: ignore[no-any-return]


def number(value: int) -> bytes:
    return struct.pack("<i", value)


def element(data: bytes) -> bytes:
    return struct.pack("<I", len(data)) + data


def response(outputs: Sequence[Output], *, final: bool = False, id: str = "", unknown: bytes = b"") -> bytes:
    message = service_pb2.ModelStreamInferResponse()
    answer = message.infer_response
    answer.id = id
    answer.parameters["triton_final_response"].bool_param = final
    for name, datatype, content in outputs:
        answer.outputs.add(name=name, datatype=datatype, shape=[1])
        answer.raw_output_contents.append(content)
    return frame(message.SerializeToString() + unknown)


numbers = st.integers(0, 3).map(number)
id_ = st.sampled_from([*TABLE, UNKNOWN, -1])
ids = id_.map(lambda one: [one]) | st.lists(id_, min_size=2, max_size=3)
written_ids = ids.map(lambda found: struct.pack(f"<{len(found)}i", *found))
texts = st.sampled_from([*(text.encode() for text in TEXTS), *HALVES, b""]).map(element)
texts |= st.sampled_from([b"", b"x"])
reasons = st.sampled_from([b"None"] * 6 + [b"stop", b"length"]).map(element)


def outputs(content: st.SearchStrategy[bytes], datatype: str, *names: str) -> st.SearchStrategy[Output]:
    return st.tuples(st.sampled_from(names), st.just(datatype), content)


of_ids = outputs(written_ids, "INT32", "output_ids")
beside_ids = st.lists(outputs(numbers, "INT32", *IGNORED, "kv_cache_reused_blocks"), max_size=2)
of_text = outputs(texts, "BYTES", "text_output")
told = outputs(numbers, "INT32", *IGNORED, "num_output_tokens", "num_input_tokens", "kv_cache_reused_blocks")
beside_text = st.lists(told | outputs(reasons, "BYTES", "finish_reason"), max_size=3)


KINDS = ["ordinary"] * 60 + ["others"] * 2 + ["changed"] * 2 + ["id", "end", "twice", "special"]


@st.composite
def streams(draw: st.DrawFn, first: st.SearchStrategy[Output], others: st.SearchStrategy[list[Output]]) -> list[bytes]:
    """Frames, most of which repeat one another all but for what a token brings."""
    frames: list[bytes] = []
    beside, place = draw(others), draw(st.integers(0, 2))
    length = draw(st.integers(0, 30))
    for kind in draw(st.lists(st.sampled_from(KINDS), min_size=length, max_size=length)):
        if kind == "others":
            beside = draw(others)
        elif kind == "changed" and frames:
            whole = draw(st.sampled_from(frames))
            at = draw(st.integers(5, len(whole) - 1))
            frames.append(whole[:at] + bytes([draw(st.integers(0, 255))]) + whole[at + 1 :])
        elif kind == "special":
            frames.append(draw(st.sampled_from([kit.failure("busy"), kit.final(), kit.trailers(), b"\x01\0\0\0\1x"])))
        else:
            varied = [
                (name, datatype, draw(numbers) if name in IGNORED else content) for name, datatype, content in beside
            ]
            last = ("output_ids", "INT32", number(kit.END))
            varied.insert(min(place, len(varied)), last if kind == "end" else draw(first))
            varied += [draw(first)] if kind == "twice" else []
            frames.append(response(varied, id="r" if kind == "id" else ""))
    return frames


def begin(contract: Contract, choices: Choices) -> Exchange:
    style = choices.style
    served = kit.model(contract=contract, renderer=Renderer(5), style=style, context_length=40, stop=("STOP",))
    exchange = kit.exchange(served)
    body: dict[str, Any] = {"tools": [TOOL], "parallel_tool_calls": choices.parallel} if style.calls else {}
    (call,) = kit.handle(exchange, kit.request(stream=choices.stream, **body))
    assert isinstance(call, CallUpstream)
    return exchange


def step(exchange: Exchange, data: bytes) -> tuple[list[Command], object]:
    """What ``data`` brings, and how things then stand."""
    commands = kit.upstream(exchange, data)
    report = exchange.report
    state = (replace(report.usage), report.delivered.written, exchange.due_at, exchange.phase)
    return commands, state


def same(contract: Contract, frames: list[bytes], choices: Choices) -> None:
    """Both exchanges do the same with ``frames``, at each step and in the end."""
    short, general = (begin(one, choices) for one in (contract, cast(Contract, Parsed(contract))))
    without_short_path = mock.patch.object(CoroutineParser, "plain", lambda self, text: None)
    ends = list(accumulate(map(len, frames)))
    kept = [end for end, keep in zip(ends, cycle(choices.kept), strict=False) if keep]
    for piece in split_at(b"".join(frames), [*kept, *choices.cuts]):
        found = step(short, piece)
        with without_short_path:
            assert found == step(general, piece)
    for end in (kit.whole_end(), Abort(ApiError("internal", "internal error"))):
        last = short.handle(end)
        with without_short_path:
            assert last == general.handle(end)
    delivered = Delivered()
    reports = [repr(replace(exchange.report, delivered=delivered)) for exchange in (short, general)]
    assert reports[0] == reports[1]


@dataclass(frozen=True)
class Choices:
    """What else varies: how the bytes are cut, between which frames among them, and what is asked for."""

    style: Style
    stream: bool
    parallel: bool
    kept: list[bool]
    cuts: list[int]


choices = st.builds(
    Choices,
    st.sampled_from(STYLES),
    st.booleans(),
    st.booleans(),
    st.sampled_from([[True], [True], [True, False], [True, True, True, False, False]]),
    st.lists(st.integers(0, 3000), max_size=2),
)


@settings(max_examples=200)
@given(streams(of_ids, beside_ids), choices)
def test_ids_are_read_as_if_each_response_were_parsed(frames: list[bytes], choices: Choices) -> None:
    same(TOKEN_LEVEL, frames, choices)


@settings(max_examples=200)
@given(st.sampled_from(OF_TEXT), streams(of_text, beside_text), choices)
def test_texts_are_read_as_if_each_response_were_parsed(
    contract: Contract, frames: list[bytes], choices: Choices
) -> None:
    same(contract, frames, choices)


def test_what_looks_like_a_content_behind_the_contents_is_none() -> None:
    content = number(10)
    frames = [response([("output_ids", "INT32", content)], unknown=b"\x32\x04" + end) for end in (content, number(11))]
    same(TOKEN_LEVEL, frames, Choices(STYLES[0], stream=True, parallel=True, kept=[True], cuts=[]))
