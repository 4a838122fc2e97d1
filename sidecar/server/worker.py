"""One worker process: the ext_proc service and its health on a Unix socket, from start to drained stop."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import grpc
import uvloop
from envoy.service.ext_proc.v3.external_processor_pb2_grpc import add_ExternalProcessorServicer_to_server
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from sidecar.backends.triton.client import TritonUnreachableError, discover
from sidecar.backends.triton.discovery import UnknownContractError
from sidecar.config.load import read_sealing_key
from sidecar.config.models import Config
from sidecar.egress.loader import ImageLoader
from sidecar.exchange.catalog import Catalog, ServedModel
from sidecar.extproc.sessions import Sessions
from sidecar.extproc.transport.grpc_aio import ExtProcService
from sidecar.responses.errors import ApiError
from sidecar.responses.sealing import Sealer
from sidecar.server.models import load_model
from sidecar.server.performers import make_performers
from sidecar.server.preparation import preparation_threads
from sidecar.surfaces import SURFACES, Surface
from sidecar.telemetry.access_log import AccessLog
from sidecar.telemetry.broken_characters import BrokenCharacters

# Envoy sends request bodies in messages of at most its buffer limit (1 MiB here); the rest is headroom.
_MAX_MESSAGE_BYTES = 4 * 1024 * 1024
# Envoy checks health every second and waits a second for the answer: after this it sends nothing new.
_HEALTH_NOTICE_SECONDS = 2.5
# Kept at the end of a drain, so that streams still running end with an error event instead of being cut.
_LAST_WORDS_SECONDS = 1.0
_DISCOVERY_RETRY_SECONDS = 2.0

_log = logging.getLogger(__name__)


def run_worker(config: Config, index: int) -> None:
    """Serve until SIGTERM, or until standard input ends because the supervisor has died; then drain and return."""
    # The loop shares the interpreter with the threads that render prompts: hand over quickly.
    sys.setswitchinterval(0.001)
    uvloop.run(_serve(config, index))


async def _serve(config: Config, index: int) -> None:
    stop = _stop_event()
    catalog = Catalog(config.node, config.keep_alive, map(load_model, config.models))
    # Everything loaded so far lives as long as the worker: the garbage collector need not look at it again.
    gc.freeze()
    # A large request makes up to 200,000 objects, none of them garbage. To look for some after each 700, as is the
    # default, takes a third of its parsing.
    gc.set_threshold(50_000, 10, 10)
    with (
        preparation_threads() as preparation,
        # Apart, so that large images do not hold up the prompts of other requests.
        ThreadPoolExecutor(max_workers=2, thread_name_prefix="images") as decoders,
    ):
        performers = make_performers(preparation, ImageLoader(config.images, decoders), decoders)
        sessions = Sessions(catalog, _surfaces(config), performers, (AccessLog(), BrokenCharacters()))
        server, set_health = await _start(config, index, sessions)
        background = [
            asyncio.create_task(sessions.tick_forever()),
            *(asyncio.create_task(_discover(config.triton.address, model, sessions)) for model in catalog),
        ]
        await stop.wait()
        await _drain(server, set_health, sessions, config.drain)
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)


def _surfaces(config: Config) -> dict[str, Surface]:
    settings = config.surfaces.model_dump()
    sealer = Sealer(read_sealing_key(config.sealing_key)) if config.sealing_key else None
    return {name: replace(surface, **settings[name], sealer=sealer) for name, surface in SURFACES.items()}


async def _start(config: Config, index: int, sessions: Sessions) -> tuple[grpc.aio.Server, health.aio.HealthServicer]:
    path = config.socket(index)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES)])
    add_ExternalProcessorServicer_to_server(ExtProcService(sessions), server)
    set_health = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(set_health, server)
    server.add_insecure_port(f"unix:{path}")
    await server.start()
    await set_health.set("", health_pb2.HealthCheckResponse.SERVING)
    _log.info("worker %d serves on %s", index, path)
    return server, set_health


async def _drain(
    server: grpc.aio.Server, set_health: health.aio.HealthServicer, sessions: Sessions, seconds: float
) -> None:
    """Take no new requests, let the running ones finish, and end the rest with an error before the deadline."""
    _log.info("draining %d sessions for at most %g s", sessions.active, seconds)
    await set_health.set("", health_pb2.HealthCheckResponse.NOT_SERVING)
    await asyncio.sleep(_HEALTH_NOTICE_SECONDS)
    stopped = asyncio.ensure_future(server.stop(seconds + _LAST_WORDS_SECONDS))
    done, _ = await asyncio.wait({stopped}, timeout=seconds)
    if not done:
        sessions.abort_all(ApiError("node_unavailable", "The node is restarting; try again shortly."))
    await stopped
    await sessions.settled()


async def _discover(address: str, model: ServedModel, sessions: Sessions) -> None:
    """Ask Triton for the model's contract until it tells; requests for it are refused with 503 until then."""
    last = ""
    while True:
        try:
            contract = await discover(address, model.settings.triton_model)
        except (TritonUnreachableError, UnknownContractError) as error:
            if str(error) != last:
                last = str(error)
                _log.warning("model %s: %s", model.name, last)
            await asyncio.sleep(_DISCOVERY_RETRY_SECONDS)
        else:
            _log.info("model %s: contract %s", model.name, contract.name)
            sessions.catalog = sessions.catalog.with_contract(model.name, contract)
            return


def _stop_event() -> asyncio.Event:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    # A terminal sends Ctrl-C to the whole group; the supervisor decides then.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    loop.add_reader(sys.stdin.fileno(), _at_end_of_input(loop, stop.set))
    return stop


def _at_end_of_input(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> Callable[[], None]:
    def read() -> None:
        if not os.read(sys.stdin.fileno(), 1024):
            loop.remove_reader(sys.stdin.fileno())
            callback()

    return read
