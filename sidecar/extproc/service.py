"""The ext_proc service over grpc.aio: one RPC is one session.

Another transport may take this module's place: it only has to hand each stream to :class:`Sessions`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from collections.abc import Mapping
from typing import Any

import grpc
from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingRequest, ProcessingResponse
from envoy.service.ext_proc.v3.external_processor_pb2_grpc import ExternalProcessorServicer

from sidecar.egress.loader import ImageLoader
from sidecar.exchange.exchange import Exchange
from sidecar.exchange.models import ModelCatalog
from sidecar.exchange.report import Report
from sidecar.extproc.preparation import Preparation
from sidecar.extproc.session import Session, Stream
from sidecar.responses.errors import ApiError
from sidecar.surfaces.surface import Surface

# gRPC initial metadata that the Envoy route sets for its requests.
SURFACE_METADATA = "x-responses-surface"
WIRE_METADATA = "x-responses-wire"

_TICK_SECONDS = 0.25
_log = logging.getLogger(__name__)
_access_log = logging.getLogger("sidecar.access")


class SystemClock:
    """The process's clocks."""

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    def unix(self) -> float:
        """Seconds since the epoch."""
        return time.time()


class Sessions:
    """Starts sessions and keeps account of those under way.

    ``keep_alive`` is in seconds, see :class:`Exchange`.
    """

    def __init__(
        self,
        catalog: ModelCatalog,
        surfaces: Mapping[str, Surface],
        *,
        node: str,
        keep_alive: float,
        prepare: Preparation,
        images: ImageLoader,
    ) -> None:
        self._catalog = catalog
        self._surfaces = surfaces
        self._node = node
        self._keep_alive = keep_alive
        self._prepare = prepare
        self._images = images
        self._clock = SystemClock()
        self._active: set[Session] = set()
        self._ticks: set[asyncio.Task[None]] = set()
        self._with_broken_characters: set[str] = set()

    @property
    def active(self) -> int:
        """How many sessions are under way."""
        return len(self._active)

    async def serve(self, stream: Stream, metadata: Mapping[str, str]) -> None:
        """Serve one ext_proc stream; ``metadata`` is its initial metadata.

        Raises:
            KeyError: the route names no known surface or wire.
        """
        exchange = Exchange(
            self._surfaces[metadata[SURFACE_METADATA]],
            self._catalog,
            node=self._node,
            entropy=os.urandom(18),
            keep_alive=self._keep_alive,
        )
        session = Session(
            stream,
            exchange,
            wire=metadata[WIRE_METADATA],
            clock=self._clock,
            prepare=self._prepare,
            images=self._images,
        )
        self._active.add(session)
        try:
            await session.run()
        finally:
            self._active.discard(session)
            _log_end(session.request_id, exchange)
            self._warn_of_broken_characters(exchange.report())

    async def tick_forever(self) -> None:
        """Tell the sessions under way that time passes, until cancelled. One timer serves them all."""
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            now = self._clock.monotonic()
            # A task each: one client that does not read must not stop the time of the others.
            for session in [session for session in self._active if session.due_at <= now]:
                task = asyncio.create_task(session.tick())
                self._ticks.add(task)
                task.add_done_callback(self._ticks.discard)

    async def abort_all(self, error: ApiError) -> None:
        """End the sessions under way with ``error``."""
        await asyncio.gather(*(session.abort(error) for session in list(self._active)))

    def _warn_of_broken_characters(self, report: Report) -> None:
        """Tell the operator once per model what repairs its text, where that is known."""
        if not report.broken_characters or report.model is None or report.model in self._with_broken_characters:
            return
        contract = self._catalog.find(report.model).contract
        if contract is not None and contract.remedy:
            self._with_broken_characters.add(report.model)
            _log.warning("model %s: Triton breaks characters into U+FFFD; %s", report.model, contract.remedy)


class ExtProcService(ExternalProcessorServicer):  # type: ignore[misc]
    """``envoy.service.ext_proc.v3.ExternalProcessor`` over grpc.aio."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def Process(self, _requests: object, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        """Serve one stream."""
        # An early head ends Envoy's retry window for the stream.
        await context.send_initial_metadata(())
        metadata = {key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)}
        await self._sessions.serve(_GrpcStream(context), metadata)


class _GrpcStream:
    """A grpc.aio servicer context as a session's stream."""

    def __init__(self, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        self._context = context

    async def read(self) -> ProcessingRequest | None:
        message = await self._context.read()
        return None if message is grpc.aio.EOF else message

    async def write(self, message: ProcessingResponse) -> None:
        await self._context.write(message)


def _log_end(request_id: str, exchange: Exchange) -> None:
    report, failure = exchange.report(), exchange.backend_error
    usage, timing = report.usage, report.timing
    if failure is not None:
        # The runtime's own words may hold prompts: they are for an operator who asks for them.
        _log.debug("request %s: the model runtime said: %r", request_id, failure.words)
    entry = {
        "request_id": request_id,
        "outcome": report.outcome,
        "backend_failure": failure.failure if failure else None,
        "model": report.model,
        "stream": report.stream,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "counted": report.counted,
        "broke_schema": report.broke_schema,
        "broken_characters": report.broken_characters,
        "ttft_ms": timing.ttft_ms,
        "total_ms": round(timing.total * 1000, 1),
    }
    _access_log.info("%s", json.dumps(entry))
