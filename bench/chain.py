"""The per-token path without I/O: how much of it is the core, and whether it grows with the answer.

``core`` is the exchange alone: gRPC frames in, events out. ``session`` is all of the sidecar's own work per token: the
ext_proc messages parsed and built, the tunnel's HTTP/1.1, the exchange; only the gRPC transport is missing. Both get
one token per message, as a stream at reading pace does. ``cold`` is the session again where each token finds the
processor's caches empty, as after a pause in which others used them.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from envoy.config.core.v3.base_pb2 import HeaderMap, HeaderValue
from envoy.service.ext_proc.v3.external_processor_pb2 import (
    HttpBody,
    HttpHeaders,
    ProcessingRequest,
)

from bench import messages
from bench.stamps import Stamps
from sidecar.backends.triton import discovery
from sidecar.backends.triton.frames import GrpcStatus
from sidecar.backends.triton.protocol import SERVICE, service_pb2
from sidecar.config.model import RequestLimits
from sidecar.config.models import ModelConfig
from sidecar.exchange.catalog import Catalog
from sidecar.exchange.earlier import Continued
from sidecar.exchange.events import Answered, RequestComplete, UpstreamEnd
from sidecar.exchange.exchange import Exchange
from sidecar.exchange.plan import Prepare
from sidecar.exchange.planned import Plan
from sidecar.extproc.session import Session
from sidecar.extproc.sessions import SystemClock
from sidecar.extproc.wires import WIRES
from sidecar.server.models import load_model
from sidecar.surfaces import SURFACES

MODEL = "chain"
SIZES = (1_000, 10_000, 100_000, 1_000_000)
"""Lengths of the answers, in bytes of text."""
# Few enough to stay in the processor's caches: what is measured is the chain, not the reading of its recorded input.
_DISTINCT = 500
# To empty the caches takes a millisecond each time.
_COLD = 250
_CACHES = bytearray(8 << 20)
"""More than what a processor has for itself."""

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/grpc-web+proto\r\ntransfer-encoding: chunked\r\n\r\n"
_TRAILERS = b"\x80\x00\x00\x00\x0fgrpc-status:0\r\n"


@dataclass(frozen=True)
class ChainRow:
    """µs of processor time per token for an answer of ``tokens`` tokens and ``text_bytes`` bytes."""

    text_bytes: int
    tokens: int
    core_us: float
    session_us: float
    cold_us: float


def measure_chain(tokenizer: Path) -> list[ChainRow]:
    """The chain's cost at each of :data:`SIZES`, the best of five runs where they are short."""
    catalog = catalog_of(tokenizer)
    stamps = Stamps.of_file(tokenizer / "tokenizer.json")
    vocabulary = [
        (len(word) + 1, messages.token_response(MODEL, stamps.ids[tick])) for word, tick in stamps.ticks.items()
    ]
    rows = []
    for size in SIZES:
        responses = list(_answer(vocabulary[:_DISTINCT], size))
        runs = 5 if size < SIZES[-1] else 1
        core = min(_core_seconds(catalog, responses) for _ in range(runs))
        session = min(_session_seconds(catalog, responses) for _ in range(runs))
        core_us, session_us = (seconds / len(responses) * 1e6 for seconds in (core, session))
        cold_us = median(asyncio.run(_run_session(catalog, responses[:_COLD], emptied=True))) * 1e6
        rows.append(ChainRow(size, len(responses), core_us, session_us, cold_us))
    return rows


def _answer(vocabulary: Sequence[tuple[int, bytes]], size: int) -> Iterator[bytes]:
    """Responses that make ``size`` bytes of text; ``vocabulary`` is each token's length and its response."""
    for length, response in itertools.cycle(vocabulary):
        if size <= 0:
            return
        yield response
        size -= length


def catalog_of(tokenizer: Path) -> Catalog:
    """The catalog with :data:`MODEL` alone, a token-level model with this tokenizer."""
    described = messages.unary_responses()
    contract = discovery.recognise(
        service_pb2.ModelMetadataResponse.FromString(described[SERVICE + "ModelMetadata"][5:]),
        service_pb2.ModelConfigResponse.FromString(described[SERVICE + "ModelConfig"][5:]).config,
    )
    settings = ModelConfig(
        name=MODEL,
        triton_model=MODEL,
        tokenizer=tokenizer,
        context_length=10_000_000,
        limits=RequestLimits(max_tools=256),
    )
    model = load_model(settings)
    return Catalog("bench", 15, [replace(model, contract=contract)])


def _exchange(catalog: Catalog) -> Exchange:
    return Exchange(SURFACES["node"], catalog, (Prepare,), entropy=os.urandom(18))


REQUEST_HEADERS = {":method": "POST", ":path": "/v1/infer/responses", "content-type": "application/json"}
_REQUEST_BODY = json.dumps({"model": MODEL, "input": "Count.", "stream": True}).encode()


def _core_seconds(catalog: Catalog, responses: Sequence[bytes]) -> float:
    exchange = _exchange(catalog)
    request = RequestComplete(REQUEST_HEADERS, _REQUEST_BODY, len(_REQUEST_BODY), head_at=0, unix_time=0, at=0)
    (ask,) = exchange.handle(request)
    assert isinstance(ask, Prepare), ask
    exchange.handle(Answered(ask, ask.plan(), at=0))
    started = time.process_time()
    for response in responses:
        exchange.upstream(response, 1.0)
    exchange.upstream(messages.final_response(MODEL), 1.0)
    exchange.handle(UpstreamEnd(whole=True, http_status=200, grpc=GrpcStatus(0, ""), at=1.0))
    seconds = time.process_time() - started
    assert exchange.report.usage.output_tokens == len(responses), exchange.report.outcome
    return seconds


class _Transport:
    """A transport that takes what is sent, and does nothing with it."""

    congested = False

    def __init__(self) -> None:
        self.called = asyncio.Event()

    def send(self, _message: bytes, _mark: int) -> None:
        self.called.set()

    def close(self) -> None:
        """Nothing is to be closed."""


async def _prepare(ask: Prepare) -> Plan | Continued:
    return ask.plan()


def _session_seconds(catalog: Catalog, responses: Sequence[bytes]) -> float:
    return sum(asyncio.run(_run_session(catalog, responses, emptied=False)))


async def _run_session(catalog: Catalog, responses: Sequence[bytes], *, emptied: bool) -> list[float]:
    """Seconds of the answer, or of each of its messages, before which the caches are ``emptied``."""
    chunks = [_HEAD, *(_chunk(one) for one in responses), _chunk(messages.final_response(MODEL)), _chunk(_TRAILERS)]
    body_of = functools.cache(lambda chunk: ProcessingRequest(response_body=HttpBody(body=chunk)).SerializeToString())
    request = [
        _headers("request_headers", REQUEST_HEADERS),
        ProcessingRequest(request_body=HttpBody(body=_REQUEST_BODY, end_of_stream=True)).SerializeToString(),
    ]
    answer = [_headers("response_headers", {":status": "200"}), *map(body_of, (*chunks, _chunk(b"")))]
    transport, exchange = _Transport(), _exchange(catalog)
    session = Session(transport, exchange, WIRES["tunnel"](), {Prepare: _prepare}, (), SystemClock())
    for message in request:
        session.receive(message)
    await transport.called.wait()
    seconds = [_seconds_cold(session, message) for message in answer] if emptied else [_seconds_of(session, answer)]
    assert exchange.report.usage.output_tokens == len(responses), exchange.report.outcome
    return seconds


def _seconds_of(session: Session, answer: Sequence[bytes]) -> float:
    started = time.process_time()
    for message in answer:
        session.receive(message)
    return time.process_time() - started


def _seconds_cold(session: Session, message: bytes) -> float:
    _CACHES[:] = bytes(len(_CACHES))
    started = time.perf_counter()
    session.receive(message)
    return time.perf_counter() - started


def _headers(kind: str, headers: dict[str, str]) -> bytes:
    fields = [HeaderValue(key=name, raw_value=value.encode()) for name, value in headers.items()]
    request = ProcessingRequest(**{kind: HttpHeaders(headers=HeaderMap(headers=fields))})
    serialized: bytes = request.SerializeToString()
    return serialized


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def chain_table(rows: Sequence[ChainRow]) -> str:
    """The rows as a Markdown table."""
    lines = [
        "| answer | tokens | core µs/token | session µs/token | cold µs/token |",
        "| ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {row.text_bytes // 1000} KB | {row.tokens} | {row.core_us:.1f} | {row.session_us:.1f} | {row.cold_us:.0f} |"
        for row in rows
    ]
    return "\n".join(lines)
