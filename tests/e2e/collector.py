"""A collector of traces: what a node sends by OTLP over HTTP, kept for the tests to look at."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from threading import Thread
from types import TracebackType
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Span:
    """One span; ids are hexadecimal, ``parent`` is empty where it has none."""

    service: str
    name: str
    trace: str
    id: str
    parent: str
    attributes: Mapping[str, Any]


class Collector:
    """Listens on the loopback address, as a context manager."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                chunked = self.headers.get("transfer-encoding") == "chunked"
                body = _read_chunks(self.rfile) if chunked else self.rfile.read(int(self.headers["content-length"]))
                is_json = self.headers["content-type"] == "application/json"
                collector.spans += _read_json(json.loads(body)) if is_json else _read(body)
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1/traces"

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def of(self, trace: str) -> dict[str, Span]:
        """The spans of a trace so far, by their ids."""
        return {span.id: span for span in list(self.spans) if span.trace == trace}

    def chains(self, trace: str) -> list[list[str]]:
        """From each span of a trace that is nobody's parent up to the first: ``service: name`` of each."""
        spans = self.of(trace)
        leaves = spans.keys() - {span.parent for span in spans.values()}
        return [[f"{span.service}: {span.name}" for span in _up(spans, leaf)] for leaf in leaves]


def _up(spans: Mapping[str, Span], leaf: str) -> Iterator[Span]:
    span = spans.get(leaf)
    while span is not None:
        yield span
        span = spans.get(span.parent)


def _read_chunks(file: BufferedIOBase) -> bytes:
    body = b""
    while size := int(file.readline(), 16):
        body += file.read(size)
        file.readline()
    file.readline()
    return body


def _read(body: bytes) -> Iterator[Span]:
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        service = next(each.value.string_value for each in resource.resource.attributes if each.key == "service.name")
        for scope in resource.scope_spans:
            for span in scope.spans:
                attributes = {
                    each.key: getattr(each.value, str(each.value.WhichOneof("value"))) for each in span.attributes
                }
                parent = span.parent_span_id.hex()
                yield Span(service, span.name, span.trace_id.hex(), span.span_id.hex(), parent, attributes)


def _read_json(request: Any) -> Iterator[Span]:
    """Triton's form: ids are hexadecimal there."""
    for resource in request["resourceSpans"]:
        attributes = resource["resource"]["attributes"]
        service = next(each["value"]["stringValue"] for each in attributes if each["key"] == "service.name")
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                yield Span(service, span["name"], span["traceId"], span["spanId"], span.get("parentSpanId", ""), {})
