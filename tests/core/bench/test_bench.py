"""The bench's own parts: what measures must be right before what is measured can be."""

import asyncio
import itertools
import json
import os
import re
import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from bench import messages
from bench.cpu import context_switches, cpu_seconds, family, machine_seconds, system_seconds
from bench.fallback.http1 import Answer, ChunkedBody, EventReader
from bench.fallback.upstream import Cadence, Clock, GrpcConnection
from bench.figures import NothingMeasuredError, Observation, figures, quantile
from bench.http2 import (
    END_HEADERS,
    MAX_FRAME,
    PADDED,
    PREFACE,
    PRIORITY,
    SETTINGS_INITIAL_WINDOW_SIZE,
    Frame,
    FrameReader,
    Type,
    content,
    frame,
    header_block,
)
from bench.script import Script, read, write
from bench.stamps import TICKS, Stamps, written_at
from stack.paths import ROOT

WORDS = ["".join(letters) for letters in itertools.islice(itertools.product("abcdefghijk", repeat=5), TICKS)]


def tokenizer_of(words: list[str]) -> Tokenizer:
    return Tokenizer(WordLevel({word: position for position, word in enumerate(words)}, unk_token=words[0]))


@pytest.fixture(scope="module")
def stamps() -> Stamps:
    return Stamps(tokenizer_of(["<unk>", "no blank", *(f" {word}" for word in WORDS)]))


def split(data: bytes, cuts: list[int]) -> list[bytes]:
    ends = sorted({cut % (len(data) + 1) for cut in cuts} | {len(data)})
    return [data[start:end] for start, end in itertools.pairwise([0, *ends])]


CUTS = st.lists(st.integers(min_value=0, max_value=10_000), max_size=20)


# The clock


def test_every_tick_has_a_word_that_reads_back(stamps: Stamps) -> None:
    assert stamps.ids[0] == 2
    assert len(stamps.ids) == len(stamps.ticks) == TICKS
    assert stamps.read(f" {WORDS[5]} {WORDS[TICKS - 1]}") == [5, TICKS - 1]


def test_joined_and_trimmed_tokens_read_as_the_same_ticks(stamps: Stamps) -> None:
    assert stamps.read(f"{WORDS[7]} {WORDS[8]}") == stamps.read(f" {WORDS[7]}") + stamps.read(f" {WORDS[8]}")


def test_text_that_is_no_stamp_is_refused(stamps: Stamps) -> None:
    with pytest.raises(KeyError):
        stamps.read("hello")


def test_a_vocabulary_with_too_few_words_is_refused() -> None:
    with pytest.raises(ValueError, match="3 plain words"):
        Stamps(tokenizer_of(["<unk>", " a", " b", " c", " d1"]))


@given(
    start=st.floats(min_value=0, max_value=1e6),
    gaps=st.lists(st.floats(min_value=0, max_value=0.99), min_size=1, max_size=50),
)
def test_written_at_finds_times_over_many_turns_of_the_clock(start: float, gaps: list[float]) -> None:
    times = list(itertools.accumulate(gaps, initial=start))[1:]
    ticks = [int(time * TICKS) % TICKS for time in times]
    # Half a tick is what reading the clock loses, one more what the start's rounding may.
    assert written_at(ticks, start - 1 / TICKS) == pytest.approx(times, abs=1 / TICKS)


# Figures


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [([1.0], 0.5, 1.0), ([3.0, 1.0, 2.0], 0.5, 2.0), ([1.0, 2.0, 3.0, 4.0], 0.5, 2.0), (list(range(1, 101)), 0.99, 99)],
)
def test_quantile(values: list[float], share: float, expected: float) -> None:
    assert quantile(values, share) == expected


def observation(latency: float, gap: float, tokens: int = 5) -> Observation:
    seen = Observation(started=10.0)
    for position in range(tokens):
        written = 10.1 + position * gap
        seen.tokens_arrived([int(written * TICKS) % TICKS], written + latency)
    seen.failure = None
    return seen


def test_figures_measure_the_one_way_latency_of_each_token() -> None:
    found = figures([observation(0.002, 0.05), observation(0.004, 0.05)], tokens=5)
    assert found.latency_p50 == pytest.approx(2, abs=0.06)
    assert found.latency_p99 == pytest.approx(4, abs=0.06)
    assert found.ttft_p50 == pytest.approx(102)
    assert found.gap_p99 == pytest.approx(50)
    assert (found.requests, found.failures) == (2, {})


def test_requests_for_one_token_have_no_gaps() -> None:
    assert figures([observation(0.002, 0.05, tokens=1)], tokens=1).gap_p99 == 0


def test_failed_requests_are_counted_and_not_measured() -> None:
    found = figures([observation(0.002, 0.05), Observation(started=10.0), observation(9, 0.05, tokens=4)], tokens=5)
    assert found.failures == {"unfinished": 1, "4 tokens of 5": 1}
    assert found.requests == 3
    assert found.latency_p99 == pytest.approx(2, abs=0.06)


def test_figures_of_nothing_but_failures_are_refused() -> None:
    with pytest.raises(NothingMeasuredError, match="unfinished"):
        figures([Observation(started=0)], tokens=1)


# Reading answers


def chunked(*parts: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (*parts, b""))


@given(parts=st.lists(st.binary(min_size=1, max_size=60), max_size=5), cuts=CUTS)
def test_chunked_bodies_read_the_same_however_split(parts: list[bytes], cuts: list[int]) -> None:
    body = ChunkedBody()
    assert b"".join(body.feed(piece) for piece in split(chunked(*parts), cuts)) == b"".join(parts)
    assert body.ended


@given(cuts=CUTS)
def test_events_read_the_same_however_split_and_comments_are_skipped(cuts: list[int]) -> None:
    stream = b"event: a\ndata: {}\n\n: keep-alive\n\nevent: b\ndata: 1\n\n"
    reader = EventReader()
    assert [event for piece in split(stream, cuts) for event in reader.feed(piece)] == [(b"a", b"{}"), (b"b", b"1")]


HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


def sse(name: str, **data: object) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode()


def delta(tick: int) -> bytes:
    return sse("response.output_text.delta", delta=f" {WORDS[tick]}")


@pytest.mark.parametrize(
    ("parts", "failure"),
    [
        ([delta(3), delta(4), sse("response.incomplete")], None),
        ([delta(3), delta(4), sse("response.completed")], None),
        ([delta(3), delta(4)], "no terminal event"),
    ],
)
def test_an_answer_is_good_when_the_end_came(stamps: Stamps, parts: list[bytes], failure: str | None) -> None:
    seen = Observation(started=0)
    assert Answer(seen, stamps.ticks).feed(HEAD + chunked(*parts), now=1.0)
    assert seen.failure == failure
    assert seen.ticks == [3, 4]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n", "503"),
        (HEAD + chunked(sse("error", code="internal")), "error event"),
    ],
)
def test_an_answer_that_is_an_error_says_which(stamps: Stamps, answer: bytes, message: str) -> None:
    with pytest.raises(ConnectionError, match=message):
        Answer(Observation(started=0), stamps.ticks).feed(answer, now=1.0)


# HTTP/2 and gRPC


@given(payloads=st.lists(st.binary(max_size=40), max_size=5), skip=st.integers(min_value=0, max_value=30), cuts=CUTS)
def test_frames_read_the_same_however_split(payloads: list[bytes], skip: int, cuts: list[int]) -> None:
    reader = FrameReader(skip)
    data = bytes(skip) + b"".join(frame(Type.DATA, 0, 1, payload) for payload in payloads)
    received = [one for piece in split(data, cuts) for one in reader.feed(piece)]
    assert received == [Frame(Type.DATA, 0, 1, payload) for payload in payloads]


def test_padding_and_priority_are_no_content() -> None:
    assert content(Frame(Type.DATA, PADDED, 1, b"\x02abc\x00\x00")) == b"abc"
    assert content(Frame(Type.HEADERS, PADDED | PRIORITY, 1, b"\x01\x00\x00\x00\x00\x00block\x00")) == b"block"


@given(sizes=st.lists(st.integers(min_value=0, max_value=80), max_size=5), cuts=CUTS)
def test_grpc_messages_read_the_same_however_split(sizes: list[int], cuts: list[int]) -> None:
    sent = [bytes(size) for size in sizes]
    unframer = messages.Unframer()
    data = b"".join(map(messages.framed, sent))
    assert [message for piece in split(data, cuts) for message in unframer.feed(piece)] == sent


@pytest.fixture(scope="module")
def script(stamps: Stamps, tmp_path_factory: pytest.TempPathFactory) -> Script:
    path = tmp_path_factory.mktemp("script") / "script.bin"
    write(path, stamps)
    return read(path)


def test_a_script_reads_back(stamps: Stamps, script: Script) -> None:
    assert script.words[7] == f" {WORDS[7]}".encode()
    assert script.ids[7] == struct.pack("<I", stamps.ids[7])
    assert script.unary == messages.unary_responses()
    triton, chat, responses = script.faces
    assert triton.prefix + script.ids[7] + triton.suffix == messages.token_response("bench", stamps.ids[7])
    assert json.loads((chat.prefix + b" word" + chat.suffix)[6:])["choices"][0]["delta"] == {"content": " word"}
    name, data = (responses.prefix + b" word" + responses.suffix).strip().split(b"\ndata: ")
    assert (name, json.loads(data)["delta"]) == (b"event: response.output_text.delta", " word")


class Wire(asyncio.Transport):
    """An in-memory transport: what is written is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return False


def server(script: Script, tokens: int) -> GrpcConnection:
    clock = Clock()
    clock.cadence = Cadence(tokens=tokens)
    return GrpcConnection(script, clock)


def test_tokens_in_step_are_due_on_one_grid() -> None:
    due = [Cadence(interval=0.02, ttft=0.05, in_step=True).first() for _ in range(3)]
    assert [moment / 0.02 - round(moment / 0.02) for moment in due] == pytest.approx([0, 0, 0], abs=1e-4)


def test_the_fake_triton_answers_what_envoy_asks_for_its_health() -> None:
    cluster = (ROOT / "sidecar/envoy/templates/parts/triton_cluster.yaml.j2").read_text()
    (path,) = re.findall(r"path: (/\S+)", cluster)
    (expected,) = re.findall(r"receive:\s+- text: \"([0-9a-f]+)\"", cluster)
    assert messages.unary_responses()[path].hex() == expected


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0)


def call(stream: int) -> bytes:
    head = frame(Type.HEADERS, END_HEADERS, stream, header_block((":path", messages.STREAM_INFER)))
    return head + frame(Type.DATA, 0, stream, messages.framed(b"any request"))


class Reader:
    """Reads what a connection has written to its wire."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._frames = FrameReader()
        self.frames: list[Frame] = []

    def data(self, stream: int) -> bytes:
        self.frames += self._frames.feed(bytes(self._wire.written))
        self._wire.written.clear()
        return b"".join(one.payload for one in self.frames if one.type == Type.DATA and one.stream == stream)


async def test_the_fake_triton_sends_no_more_than_the_windows_allow(script: Script) -> None:
    fake, wire = server(script, tokens=3), Wire()
    fake.connection_made(wire)
    sent = Reader(wire)
    settings = frame(Type.SETTINGS, 0, 0, struct.pack(">HL", SETTINGS_INITIAL_WINDOW_SIZE, 10))
    fake.data_received(PREFACE + settings + call(1))
    await until(lambda: fake.outboxes[1].trailers is not None)
    assert len(sent.data(1)) == 10
    fake.data_received(frame(Type.WINDOW_UPDATE, 0, 1, struct.pack(">L", 5)))
    assert len(sent.data(1)) == 15
    fake.data_received(frame(Type.WINDOW_UPDATE, 0, 1, struct.pack(">L", MAX_FRAME)))
    assert len(list(messages.Unframer().feed(sent.data(1)))) == 4, "three tokens and the final response"
    assert not fake.outboxes


async def test_a_cancelled_stream_gets_nothing_more(script: Script) -> None:
    fake, wire = server(script, tokens=3), Wire()
    fake.connection_made(wire)
    cancel = frame(Type.RST_STREAM, 0, 1, struct.pack(">L", 8))
    fake.data_received(PREFACE + call(1) + call(3) + cancel)
    await until(lambda: not fake.outboxes)
    sent = Reader(wire)
    assert sent.data(1) == b""
    assert sent.data(3) != b""


def test_processor_time_counts_this_process_and_the_machine() -> None:
    pids = family([os.getpid()])
    assert os.getpid() in pids
    before, machine = cpu_seconds(pids), machine_seconds()
    sum(range(3_000_000))
    assert cpu_seconds(pids) > before
    assert machine_seconds() >= machine
    assert 0 <= system_seconds(pids) <= cpu_seconds(pids) + 0.02
    assert context_switches(pids) > 0


def test_processes_that_are_gone_cost_nothing() -> None:
    assert cpu_seconds(family([2**22 + 1])) == 0
