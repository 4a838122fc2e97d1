"""The way of spans to a collector: OpenTelemetry's SDK with its exporter of OTLP over HTTP, in a thread of its own.

Spans wait in a queue of bounded length, and what finds no place in it is dropped. A collector that does not answer is
told of once and left alone for a while, in which spans are dropped: then nothing waits for it, at the end neither.

What the exporter reads from the environment holds too, such as ``OTEL_EXPORTER_OTLP_HEADERS``.
https://opentelemetry.io/docs/specs/otel/protocol/exporter/
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.metadata import version
from threading import Thread

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

from sidecar.config.telemetry import OtlpConfig
from sidecar.telemetry.traces.observer import TraceExchanges

_QUEUED_SPANS = 2048
# Their encoding holds the interpreter for some milliseconds, between which the event loop has its turns.
_SPANS_AT_ONCE = 64
_PAUSE_MS = 1000
_EXPORT_SECONDS = 5.0
_REST_SECONDS = 30.0

_log = logging.getLogger(__name__)


class Exporting:
    """Makes spans of exchanges for one worker, and exports them."""

    def __init__(self, config: OtlpConfig, node: str, index: int) -> None:
        """``index`` is the worker's, ``config.endpoint`` is set."""
        assert config.endpoint is not None
        resource = Resource.create(
            {
                "service.name": "responses-sidecar",
                "service.version": version("responses-sidecar"),
                "service.instance.id": f"{node}/{index}",
            }
        )
        exporter = PatientExporter(OTLPSpanExporter(config.endpoint, timeout=_EXPORT_SECONDS), config.endpoint)
        # The first failure's reason is told by the library, which would tell that of each.
        logging.getLogger(OTLPSpanExporter.__module__).addFilter(lambda _record: not exporter.failing)
        self._provider = TracerProvider(
            sampler=ParentBased(TraceIdRatioBased(config.share)),
            resource=resource,
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(BatchSpanProcessor(exporter, _QUEUED_SPANS, _PAUSE_MS, _SPANS_AT_ONCE))
        self.tracing = TraceExchanges(self._provider.get_tracer("sidecar"), content=config.content)
        """The observer of exchanges, which says too what goes along with calls."""

    async def close(self, seconds: float) -> None:
        """Export what waits, for at most ``seconds``."""
        loop, done = asyncio.get_running_loop(), asyncio.Event()

        def close() -> None:
            self._provider.shutdown()
            # The loop may have ended meanwhile.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(done.set)

        # Not one that the process waits for.
        Thread(target=close, name="traces", daemon=True).start()
        with suppress(TimeoutError):
            await asyncio.wait_for(done.wait(), seconds)


class PatientExporter(SpanExporter):
    """Exports by ``exporter``; after a failure it drops all spans for a while before it tries again."""

    def __init__(self, exporter: SpanExporter, endpoint: str, clock: Callable[[], float] = time.monotonic) -> None:
        """``endpoint`` is for the log."""
        self._exporter = exporter
        self._endpoint = endpoint
        self._clock = clock
        self.failing = False
        """Whether the last export has failed."""
        self._again_at = 0.0
        self._dropped = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export, unless it makes no sense now."""
        if self.failing and self._clock() < self._again_at:
            self._dropped += len(spans)
            return SpanExportResult.FAILURE
        result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            if self.failing:
                _log.info("%s takes traces again; %d spans were dropped", self._endpoint, self._dropped)
            self.failing, self._dropped = False, 0
            return result
        if not self.failing:
            _log.warning("%s takes no traces; spans are dropped until it does", self._endpoint)
        self.failing = True
        self._dropped += len(spans)
        self._again_at = self._clock() + _REST_SECONDS
        return result

    def shutdown(self) -> None:
        """Close its connections."""
        self._exporter.shutdown()
