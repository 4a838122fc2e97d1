"""The supervisor: runs the workers of the configuration in force, and puts another in force without ending a stream.

On SIGHUP, and when one of the configuration's files has changed, a second fleet is started with what stands there now,
beside the one that serves. When all its workers listen, their sockets take the places of the others, which then serve
the streams that they have and end. Where the file cannot be used, or one of the workers refuses it, nothing changes.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from contextlib import nullcontext, suppress
from itertools import count
from pathlib import Path

from sidecar.config.changes import change, with_store_url
from sidecar.config.load import ConfigError, load
from sidecar.config.models import Config
from sidecar.server.fleet import REFUSED, STOP_MARGIN_SECONDS, Fleet
from sidecar.server.handing import written
from sidecar.server.watched import Watched, contents, files_of
from sidecar.telemetry.metrics import files

# Between two looks at the files.
_LOOK_SECONDS = 1.0
# For the workers of another configuration to load their models.
_TRIAL_SECONDS = 600.0
# How often a configuration is tried whose workers end in their trial, as where memory runs out, without refusing it.
_TRIALS = 3
# What a terminal sends to all processes is for the supervisor alone.
_NOT_FOR_WORKERS = {signal.SIGINT, signal.SIGHUP}

_log = logging.getLogger(__name__)


async def supervise(config: Config, path: Path) -> int:
    """Run the workers until SIGTERM or SIGINT, then let them drain; a second signal ends them at once.

    ``path`` is the configuration's file, which SIGHUP has loaded again. Returns the exit status: 0 after a signal,
    :data:`~sidecar.server.fleet.REFUSED` or :data:`~sidecar.server.fleet.FAILED`.
    """
    watched = Watched(files_of(config, path))
    try:
        config = with_store_url(config)
        metrics = files.claim(config.metrics)
    except BlockingIOError:
        print(f"sockets: another sidecar runs in {config.sockets}", file=sys.stderr)
        return REFUSED
    except (ConfigError, OSError) as error:
        print(error if isinstance(error, ConfigError) else f"sockets: {error}", file=sys.stderr)
        return REFUSED
    _warn_of_content(config)
    with metrics or nullcontext():
        supervisor = Supervisor(config, path, watched, keeps_metrics=metrics is not None)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, supervisor.stop)
        loop.add_signal_handler(signal.SIGHUP, supervisor.reload_soon)
        return await supervisor.run()


class Supervisor:
    """The fleets of one sidecar: one in force, and those before it whose streams go on."""

    def __init__(self, config: Config, path: Path, watched: Watched, *, keeps_metrics: bool) -> None:
        """``watched`` are the files of ``config``, ``path`` first."""
        self._config = config
        self._path = path
        self._watched = watched
        self._contents = watched.contents
        self._keeps_metrics = keeps_metrics
        self._places: set[int] = set()
        self._runs: dict[Fleet, asyncio.Task[int]] = {}
        self._over: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._asked = asyncio.Event()
        self._stopping = False
        self._in_force = self._fleet(config)
        self._note_loaded()

    async def run(self) -> int:
        """Run until ``stop``, or until it makes no sense; the exit status."""
        self._begin(self._in_force)
        watching = asyncio.create_task(self._watch())
        status = await self._over
        watching.cancel()
        if not self._stopping:
            self.stop()
        await asyncio.gather(*self._runs.values())
        return status

    def stop(self) -> None:
        """Let all workers drain; when called again, end them at once."""
        self._stopping = True
        for fleet in self._runs:
            fleet.stop()

    def reload_soon(self) -> None:
        """Load the configuration again."""
        self._asked.set()

    async def _watch(self) -> None:
        """Reload on demand, and when the files have changed."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._asked.wait(), _LOOK_SECONDS)
            if self._asked.is_set():
                self._asked.clear()
                self._watched.note()
                await self._reload()
            elif self._watched.changed():
                if self._watched.contents != self._contents:
                    await self._reload()
                elif not self._loaded:
                    _log.info("what stands in the configuration's files is what is in force again")
                    self._note_in_force()

    async def _reload(self) -> None:
        """Put in force what stands in the files; say why where it cannot be."""
        try:
            found = contents([self._path])
            loaded = load(self._path)
            watched = Watched(files_of(loaded, self._path))
            if watched.contents[:1] != found:
                # Another has been written meanwhile.
                return self._asked.set()
            made = change(self._config, with_store_url(loaded))
            refusal = await self._try(made.config)
        except ConfigError as error:
            refusal = str(error)
        except Exception as error:
            # The next one is to be loaded all the same.
            _log.exception("a fault of the sidecar's own")
            refusal = f"{type(error).__name__} in the supervisor"
        if self._stopping:
            return None
        if refusal:
            return self._note_refused(refusal)
        self._config, self._watched, self._contents = made.config, watched, watched.contents
        logging.getLogger("sidecar").setLevel(made.config.log_level.upper())
        _log.info("the configuration has been loaded; changed: %s", ", ".join(made.changed) or "no key")
        _warn_of_content(made.config)
        if made.waiting:
            _log.warning("changed too, but counts from the next start only: %s", ", ".join(made.waiting))
        return self._note_loaded()

    async def _try(self, config: Config) -> str:
        """Let workers with ``config`` take over; why they do not, or nothing."""
        for left in reversed(range(_TRIALS)):
            fleet = self._fleet(config, on_trial=True)
            words = await self._trial(fleet)
            ended = bool(fleet.refusal) and not fleet.refused
            if not (ended and left) or self._stopping:
                break
            self._note_refused(words)
        return words

    async def _trial(self, fleet: Fleet) -> str:
        """Start the workers of ``fleet`` and let them take over; why they did not and have all ended, or nothing."""
        running, complete = self._begin(fleet), asyncio.create_task(fleet.complete())
        try:
            await asyncio.wait({running, complete}, timeout=_TRIAL_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:
            listening = complete.done() and not running.done()
            complete.cancel()
        if not (listening and fleet.accept()):
            if not running.done():
                fleet.stop()
                # What they hold may be what the next ones lack.
                await asyncio.wait({running})
            return fleet.refusal or f"not all workers came to listen in {_TRIAL_SECONDS:g} s"
        before, self._in_force = self._in_force, fleet
        before.retire()
        return ""

    def _note_loaded(self) -> None:
        self._loaded_at = time.time()
        self._note_in_force()

    def _note_in_force(self) -> None:
        self._loaded = True
        if self._keeps_metrics:
            with suppress(OSError):
                files.note_loaded(self._config.metrics, self._loaded_at)

    def _note_refused(self, words: str) -> None:
        self._loaded = False
        _log.error("the configuration cannot be loaded, what was in force stays: %s", "; ".join(words.splitlines()))
        if self._keeps_metrics:
            with suppress(OSError):
                files.note_refused(self._config.metrics)

    def _begin(self, fleet: Fleet) -> asyncio.Task[int]:
        async def run() -> int:
            try:
                status = await fleet.run()
            finally:
                del self._runs[fleet]
            if fleet is self._in_force and not self._over.done():
                self._over.set_result(status)
            return status

        task = self._runs[fleet] = asyncio.create_task(run())
        return task

    def _fleet(self, config: Config, *, on_trial: bool = False) -> Fleet:
        """The workers of ``config``, each in a place of its own: that names its metrics."""
        places: dict[int, int] = {}
        sockets: dict[int, Path] = {}

        async def start(index: int) -> Process:
            place = places[index] = next(place for place in count() if place not in self._places)
            self._places.add(place)
            worker = await _start(config, self._path, index, place)
            sockets[index] = config.new_socket(worker.pid)
            return worker

        def listens(index: int, worker: Process) -> None:
            # At once: nobody who connects finds no socket.
            sockets[index].replace(config.socket(index))

        def ended(index: int) -> None:
            if index in sockets:
                # Of one that never took its place.
                sockets.pop(index).unlink(missing_ok=True)
            place = places.pop(index)
            self._places.discard(place)
            if self._keeps_metrics:
                files.forget_gauges(config.metrics, place)

        stop_seconds = config.drain + STOP_MARGIN_SECONDS
        return Fleet(config.workers, stop_seconds, config.watchdog, start, ended, listens=listens, on_trial=on_trial)


def _warn_of_content(config: Config) -> None:
    otlp = config.telemetry.otlp
    if otlp.content and otlp.endpoint is not None:
        _log.warning("telemetry.otlp.content is on: what clients send and models answer goes to %s", otlp.endpoint)


async def _start(config: Config, path: Path, index: int, place: int) -> Process:
    arguments = ("-m", "sidecar", "worker", "--config", str(path), "--index", str(index), "--place", str(place))
    # They are born with these blocked.
    signal.pthread_sigmask(signal.SIG_BLOCK, _NOT_FOR_WORKERS)
    try:
        # Workers read their standard input: when the supervisor dies, it ends, and so do they.
        worker = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdin=PIPE, stdout=PIPE)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _NOT_FOR_WORKERS)
    assert worker.stdin is not None
    worker.stdin.write(written(config))
    return worker
