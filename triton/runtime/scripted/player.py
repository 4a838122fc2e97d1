"""Plays scripts: a task per request on one event loop, and one task that watches all of them for cancellation."""

import asyncio
import os
import threading
from collections import deque
from collections.abc import Coroutine
from typing import Any

from flavours.generation import Generation, pb_utils

from .event_log import EventLog
from .script import Crash, Fail, Hang, Script, Send, Sleep, Step

# Asking Triton whether a request was cancelled takes some 50 microseconds. At this rate a handful of requests is asked
# every 2 ms, and some hundreds several times per 100 ms, without using up the loop.
_ROUND_SECONDS = 0.002
_QUESTIONS_PER_ROUND = 12


class Cancelled(Exception):
    """The client of the request being played has gone."""


class Performance:
    """One script being played."""

    def __init__(self, script: Script, generation: Generation, log: EventLog) -> None:
        self.generation = generation
        self.cancelled = asyncio.Event()
        self._script = script
        self._log = log
        self._left = generation.output_limit

    async def run(self) -> None:
        """Play to the end, to an error, to the output limit or to the cancellation, whichever comes first."""
        generation = self.generation
        try:
            for step in self._script.steps:
                if not await self._take(step):
                    return
                if self._left == 0:
                    break
            else:
                if self._script.end_id and generation.end_id >= 0:
                    self._send((generation.end_id,))
            generation.finish("stop" if self._left else "length")
            self._log.write("finished", generation, output_tokens=generation.output_limit - self._left)
        except Cancelled:
            self._log.write("cancelled", generation, output_tokens=generation.output_limit - self._left)
            generation.close()

    async def _take(self, step: Step) -> bool:
        """Take one step; false when it ended the request."""
        match step:
            case Send(ids):
                await self._pause(0)
                self._send(ids)
            case Sleep(seconds):
                await self._pause(seconds)
            case Hang():
                await self._pause(None)
            case Crash():
                os._exit(1)
            case Fail(message, final_separately):
                self.generation.fail(message, pb_utils.TritonError.INTERNAL, final=not final_separately)
                if final_separately:
                    self.generation.close()
                self._log.write("error", self.generation, message=message)
                return False
        return True

    def _send(self, ids: tuple[int, ...]) -> None:
        kept = ids[: self._left]
        self._left -= len(kept)
        self.generation.send(kept)

    async def _pause(self, seconds: float | None) -> None:
        """Let others run for some seconds, or for ever.

        Raises:
            Cancelled: as soon as the request is.
        """
        try:
            async with asyncio.timeout(seconds):
                await self.cancelled.wait()
        except TimeoutError:
            return
        raise Cancelled


class Player:
    """An event loop in a thread of its own; its methods may be called from any other thread."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._playing: deque[Performance] = deque()
        self._somebody_plays = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._loop.call_soon(self._spawn, self._watch())
        self._thread = threading.Thread(target=self._loop.run_forever, name="player", daemon=True)
        self._thread.start()

    def play(self, script: Script, generation: Generation) -> None:
        """Start a script and return."""
        performance = Performance(script, generation, self._log)
        self._loop.call_soon_threadsafe(self._spawn, self._perform(performance))

    def close(self) -> None:
        """Stop the loop. Triton finalizes a model after its last request has ended."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        # The loop keeps only weak references to its tasks.
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _perform(self, performance: Performance) -> None:
        self._playing.append(performance)
        self._somebody_plays.set()
        try:
            await performance.run()
        except Exception as error:
            # Without an answer its client would wait for ever.
            performance.generation.fail(f"The script failed: {error}", pb_utils.TritonError.INTERNAL)
        finally:
            self._playing.remove(performance)
            if not self._playing:
                self._somebody_plays.clear()

    async def _watch(self) -> None:
        while True:
            await self._somebody_plays.wait()
            for _ in range(min(len(self._playing), _QUESTIONS_PER_ROUND)):
                self._playing.rotate(-1)
                if self._playing[-1].generation.cancelled():
                    self._playing[-1].cancelled.set()
            await asyncio.sleep(_ROUND_SECONDS)
