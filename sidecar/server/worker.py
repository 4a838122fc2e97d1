"""One worker process: the ext_proc service and its health on a Unix socket, from its start to its end."""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import logging
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import uvloop

from sidecar.config.load import ConfigError, read_sealing_keys
from sidecar.config.models import Config
from sidecar.egress.loader import ImageLoader, decoding_processes
from sidecar.exchange.catalog import Catalog
from sidecar.exchange.plan import Prepare
from sidecar.extproc.driver import Observer
from sidecar.extproc.sessions import Sessions
from sidecar.extproc.transport import TRANSPORTS, Serving
from sidecar.extproc.wires import WIRES, wires
from sidecar.grpc_h2 import Client, Limits
from sidecar.identity.ext_authz import CHECK, AuthorizationService
from sidecar.killable import Pool
from sidecar.responses.sealing import Sealer
from sidecar.server.accounts import accounts_of, new_life
from sidecar.server.administration import serve_admin
from sidecar.server.contracts import Contracts
from sidecar.server.elsewhere import Elsewhere
from sidecar.server.ending import Ends, close, drain, end_within, ends_of_a_worker, retire
from sidecar.server.fleet import READY, STACKS_SIGNAL
from sidecar.server.forks import Forks
from sidecar.server.grammars import grammar_processes
from sidecar.server.health import Health
from sidecar.server.heartbeat import beat_forever
from sidecar.server.models import load_models
from sidecar.server.performers import make_performers
from sidecar.server.preparation import PrepareLarge, in_forks, lanes_of_a_worker
from sidecar.server.resting import Resting
from sidecar.server.sampling import Sampling, note_recent_of, note_store, open_metrics_of
from sidecar.server.signs import Signs
from sidecar.server.tracing import exporting_of
from sidecar.server.upstream_keys import UpstreamKeys
from sidecar.server.ways import envoys_way, requests_way
from sidecar.surfaces import SURFACES, Surface
from sidecar.telemetry.access_log import AccessLog
from sidecar.telemetry.broken_characters import BrokenCharacters
from sidecar.telemetry.metrics import table
from sidecar.telemetry.metrics.observer import CountExchanges

_LAST_SPANS_SECONDS = 1.5
# Whatever Triton does: other models, and all else, are served without it.
_FIRST_LOOK_SECONDS = 5.0

# Envoy lets responses have 60 KiB of headers; words of Triton's may be among them.
_UPSTREAM_LIMITS = Limits(max_header_bytes=64 * 1024)

_log = logging.getLogger(__name__)


class _Processes(NamedTuple):
    """What a worker has done elsewhere: preparing large requests, decoding images, making grammars."""

    prepare_large: PrepareLarge
    decoders: Pool
    grammars: Pool


def run_worker(config: Config, index: int, place: int) -> None:
    """Serve until SIGTERM, or until standard input ends because the supervisor has died; then drain and return.

    On :data:`~sidecar.server.fleet.RETIRE_SIGNAL` return when the streams have ended. ``place`` is where the metrics
    are kept: the worker ``index`` of the configuration before may still run.

    Standard output is told once that the worker serves, and from then on that its loop turns.

    Raises:
        ConfigError: a model's settings, its files, the sealing key or the sockets' directory cannot be used.
    """
    catalog = Catalog(config.node, config.keep_alive, load_models(config.models, config.upstreams))
    for model in catalog:
        for note in model.notes:
            _log.warning("%s: %s", model.name, note)
    surfaces = _surfaces(config)
    _make_directory(config.sockets)
    # Everything loaded so far lives as long as the worker: the garbage collector need not look at it again.
    gc.freeze()
    # A large request makes up to 200,000 objects, none of them garbage. To look for some after each 700, as is the
    # default, takes a third of its parsing.
    gc.set_threshold(50_000, 10, 10)
    # The loop shares the interpreter with the threads that render prompts: hand over quickly.
    sys.setswitchinterval(0.001)
    # To hand the few pieces of a short prompt to threads of the tokenizers library takes longer than to encode them.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    elsewhere = Elsewhere(catalog, surfaces)
    # The last moment at which this process has one thread.
    forks = Forks(elsewhere.work, Prepare.seconds)
    uvloop.run(_serve(config, index, place, catalog, surfaces, forks, in_forks(forks, elsewhere)))


def _make_directory(sockets: Path) -> None:
    try:
        sockets.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"sockets: {error}") from error


async def _serve(
    config: Config,
    index: int,
    place: int,
    catalog: Catalog,
    surfaces: dict[str, Surface],
    forks: Forks,
    prepare_large: PrepareLarge,
) -> None:
    ends = ends_of_a_worker()
    async with forks, decoding_processes(config.images) as decoders, grammar_processes() as grammars:
        processes = _Processes(prepare_large, decoders, grammars)
        await _serve_until(ends, config, index, place, catalog, surfaces, processes)


async def _serve_until(
    ends: Ends,
    config: Config,
    index: int,
    place: int,
    catalog: Catalog,
    surfaces: dict[str, Surface],
    processes: _Processes,
) -> None:
    life = new_life()
    metrics, recent = open_metrics_of(config, place), note_recent_of(config, place)
    traces = exporting_of(config, index)
    with (
        lanes_of_a_worker(processes.prepare_large) as preparation,
        # Apart, so that large images do not hold up the prompts of other requests.
        ThreadPoolExecutor(max_workers=2, thread_name_prefix="images") as threads,
    ):
        images = ImageLoader(config.images, processes.decoders, threads)
        contracts = Contracts(config.triton.address, partial(envoys_way, config))
        health = Health(_signs(config, place), contracts, partial(requests_way, config))
        keys, resting = UpstreamKeys(config.upstreams), Resting()
        async with (
            accounts_of(config, surfaces, life, partial(note_store, metrics)) as accounts,
            AsyncExitStack() as beside,
        ):
            admission, storing = (accounts.admission, accounts.storing) if accounts else (None, None)
            performers = make_performers(
                preparation,
                processes.grammars,
                admission,
                images,
                threads,
                storing=storing,
                idempotency=accounts.idempotency if accounts else None,
                log=accounts.log if accounts else None,
                directing=accounts.directing if accounts else None,
                limits=config.images,
                worker=life,
            )
            server = config.triton.upstream_server
            upstream = Client(server, _UPSTREAM_LIMITS) if server is not None else None
            known_wires = wires(upstream) if upstream is not None else WIRES
            tracing = traces.tracing if traces is not None else None
            observers: list[Observer] = [AccessLog(), BrokenCharacters(), contracts, health, resting]
            observers += [CountExchanges(metrics), recent]
            if tracing is not None:
                # First: it knows the id of a trace that begins here.
                observers.insert(0, tracing)
            sessions = Sessions(
                keys.read_into(catalog), surfaces, performers, observers, wires=known_wires, tracer=tracing
            )
            await beside.enter_async_context(serve_admin(config, accounts, sessions))
            if storing is not None and index == 0:
                await storing.look_at_keys()
            resting.sessions = sessions
            await _look_at_models(contracts, health, sessions)
            service = await _listen(config, index, sessions, accounts.authorization if accounts else None)
            background = [
                asyncio.create_task(sessions.tick_forever()),
                asyncio.create_task(contracts.keep(sessions)),
                asyncio.create_task(health.keep(sessions)),
                asyncio.create_task(resting.keep()),
                asyncio.create_task(keys.keep(sessions)),
                asyncio.create_task(beat_forever(tell_ready(), config.watchdog)),
                asyncio.create_task(Sampling(metrics, recent, sessions, preparation, accounts).run_forever()),
            ]
            if await ends.first() is ends.retired:
                metrics.set(table.WORKERS, 0)
                # What it tells is of the past.
                await beside.aclose()
                await retire(service, sessions, ends.stop)
            end_within(config.drain)
            if ends.stop.is_set():
                await drain(service, sessions, config.drain)
            await close(service, sessions)
            if accounts is not None:
                accounts.admission.stop()
                accounts.patience.stop()
            await sessions.settled()
            if upstream is not None:
                await upstream.close()
            if traces is not None:
                await traces.close(_LAST_SPANS_SECONDS)
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)


def _surfaces(config: Config) -> dict[str, Surface]:
    sealer = Sealer(*read_sealing_keys(config.sealing_key)) if config.sealing_key else None
    settings = {name: getattr(config.surfaces, name) for name in SURFACES}
    return {
        name: replace(surface, settings=settings[name], sealer=sealer, stores=config.stores and name == "bureau")
        for name, surface in SURFACES.items()
        if settings[name] is not None
    }


def _signs(config: Config, place: int) -> Signs:
    """What the workers know of the models; raises :class:`ConfigError` where they cannot tell each other."""
    try:
        return Signs(config.health, place, time.monotonic())
    except OSError as error:
        raise ConfigError(f"sockets: {error}") from error


async def _look_at_models(contracts: Contracts, health: Health, sessions: Sessions) -> None:
    """Find out which models answer: a worker that takes another's place refuses nobody out of ignorance."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_FIRST_LOOK_SECONDS):
            await contracts.look(sessions)
            await health.begin(sessions)


async def _listen(
    config: Config, index: int, sessions: Sessions, authorization: AuthorizationService | None
) -> Serving:
    path = config.new_socket(os.getpid())
    path.unlink(missing_ok=True)
    methods = {CHECK: authorization.answer} if authorization else {}
    service = await TRANSPORTS[config.transport](path, sessions, methods)
    _log.info("worker %d listens", index)
    return service


def tell_ready() -> int:
    """Tell the supervisor that this worker serves, and show it the stacks on demand; the pipe for the heartbeat."""
    faulthandler.register(STACKS_SIGNAL)
    pipe = os.dup(sys.stdout.fileno())
    # A supervisor that has died reads nothing; that it has is seen on standard input.
    with suppress(BrokenPipeError):
        os.write(pipe, READY)
    # What anything else prints is no message to the supervisor.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    os.set_blocking(pipe, False)
    return pipe
