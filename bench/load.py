"""The load: a fixed number of requests over a fixed number of streams, each observed token by token."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from bench.figures import Observation


@dataclass(frozen=True)
class Load:
    """``requests`` requests of ``tokens`` tokens over ``streams`` concurrent streams.

    The streams start one after the other over ``ramp`` seconds, so that they do not tick together. What has not
    ended after ``limit`` seconds has failed. ``steady`` is when all streams run, in seconds after the start: what a
    token costs is measured then, without what requests cost. It is ``None`` where the whole run is meant.
    """

    streams: int
    requests: int
    tokens: int
    ramp: float
    limit: float
    steady: tuple[float, float] | None = None


class Client(Protocol):
    """Sends one request and fills its observation until the answer has ended."""

    async def stream(self, seen: Observation, tokens: int) -> None:
        """Ask for ``tokens`` tokens.

        Raises:
            OSError: the connection broke.
        """

    def close(self) -> None:
        """Give up the connection, and with it a request that still runs."""


async def run(load: Load, connect: Callable[[], Awaitable[Client]]) -> list[Observation]:
    """Play a load; every stream has a client of its own, which it uses for one request after the other."""
    observations: list[Observation] = []

    async def one_after_the_other(delay: float) -> None:
        await asyncio.sleep(delay)
        client = await connect()
        try:
            while len(observations) < load.requests:
                seen = Observation(time.monotonic())
                observations.append(seen)
                try:
                    await client.stream(seen, load.tokens)
                except OSError as error:
                    seen.failure = str(error)
                    client = await connect()
        finally:
            client.close()

    try:
        async with asyncio.timeout(load.limit), asyncio.TaskGroup() as streams:
            for position in range(load.streams):
                streams.create_task(one_after_the_other(load.ramp * position / load.streams))
    except TimeoutError:
        # What was cut off is told by its observation.
        pass
    return observations
